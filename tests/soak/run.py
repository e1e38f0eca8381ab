#!/usr/bin/python3
"""make soak: many runs and many detached sandboxes in a row must leave nothing behind; prints a
table of what was counted.

In: the build directory (WARD_BUILD, or build/), RUNS (2000) and CYCLES (500). As root everything is
done twice, as root and as the ordinary user of the tests. The counts: processes that descend from
this one, mounts, control groups, namespaces that any process or mount holds, files in ward's
directories and in the workspace, unix sockets, shared memory, and the descriptors of a ward-box and
its ward-init that serve as many execs. Counts of what other users of the machine do (mounts,
control groups, namespaces) are taken only of what can be ward's. Exit 1 when something grew.
"""
import argparse
import os
import pathlib
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from harness import leaks  # noqa: E402
from harness.scene import scenes  # noqa: E402


def kernel_net_namespaces():
    """How many network namespaces the kernel has in all, or None where that cannot be read."""
    try:
        with open("/proc/slabinfo") as f:
            for line in f:
                if line.startswith("net_namespace "):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def progress(what, done, total):
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{what}: {done} of {total}", end=end, file=sys.stderr, flush=True)


def repeat(what, total, function):
    began = time.monotonic()
    for i in range(total):
        function(i)
        progress(what, i + 1, total)
    return time.monotonic() - began


def descriptors(pids):
    total = 0
    for pid in pids:
        try:
            total += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            pass
    return total


def table(title, seconds, before, after):
    """Prints one; returns whether nothing grew."""
    print(f"\n{title} ({seconds:.1f} s)\n  {'what':<28}{'before':>8}{'after':>8}")
    for name in before:
        verdict = "" if after[name] <= before[name] else "   LEAKED"
        print(f"  {name:<28}{before[name]:>8}{after[name]:>8}{verdict}")
    return all(after[name] <= before[name] for name in before)


def soak_runs(scene, total):
    def one(i):
        scene.ward("run", "--", "/bin/sh", "-c", "sleep 60 & setsid sleep 60 & echo x > /tmp/x"
                   if i % 10 == 0 else ":")
    one(0)	# the state directory is made once
    before, spaces = scene.count(), kernel_net_namespaces()
    seconds = repeat(f"{scene.who}: runs", total, one)
    after = scene.settle(before)
    fine = table(f"{scene.who}: {total} runs", seconds, before, after)
    if spaces is not None:
        print(f"  {'net namespaces (kernel)':<28}{spaces:>8}{kernel_net_namespaces():>8}   for "
              "information: others make some too")
    return fine


def soak_cycles(scene, total):
    """Detached: create, exec, kill, remove."""
    def one(i):
        name = scene.ward("run", "-d", "--name", f"soak{i}", "--", "/bin/sleep", "600")
        scene.ward("exec", f"soak{i}", "/bin/true")
        scene.ward("kill", f"soak{i}")
        scene.ward("wait", f"soak{i}", check=False)
        scene.ward("rm", f"soak{i}")
        assert name
    one(0)
    before = scene.count()
    seconds = repeat(f"{scene.who}: detached sandboxes", total, one)
    return table(f"{scene.who}: {total} detached sandboxes: create, exec, kill, remove", seconds,
                 before,
                 scene.settle(before))


def soak_execs(scene, total):
    """One sandbox that serves many execs: its supervisor and its first process keep no descriptor
    and no child."""
    clean = scene.count()
    scene.ward("run", "-d", "--name", "long", "--", "/bin/sleep", "6000")
    scene.ward("exec", "long", "/bin/true")

    def count():
        return {**scene.count(),
                "descriptors of its processes": descriptors(leaks.descendants(os.getpid()))}
    time.sleep(1)	# its guardian comes a moment later
    before = count()
    seconds = repeat(f"{scene.who}: execs", total,
                     lambda i: scene.ward("exec", "long", "/bin/true"))
    after = scene.settle(before, count)
    fine = table(f"{scene.who}: {total} execs in one sandbox", seconds, before, after)
    scene.ward("kill", "long")
    scene.ward("wait", "long", check=False)
    scene.ward("rm", "long")
    return table(f"{scene.who}: and after its end", 0, clean, scene.settle(clean)) and fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", 2000)))
    parser.add_argument("--cycles", type=int, default=int(os.environ.get("CYCLES", 500)))
    parser.add_argument("--only", choices=("root", "user"), help="as one of them only")
    args = parser.parse_args()
    fine = True
    with scenes(os.environ.get("WARD_BUILD", TOP / "build"), args.only) as people:
        for scene in people:
            for function, total in ((soak_runs, args.runs), (soak_cycles, args.cycles),
                                    (soak_execs, args.cycles)):
                if total:
                    fine = function(scene, total) and fine
    print("\nnothing was left behind" if fine else "\nsomething was left behind")
    return 0 if fine else 1


sys.exit(main())
