#!/usr/bin/python3
"""make fault: kills ward, ward-box, ward-init and OCI runtimes with SIGKILL at random moments of
start, run, exec, apply and stop.

In: the build directory (WARD_BUILD, or build/), --points N (100) moments per person, --seed to see
one again. After each kill: the next commands work, no process, mount, control group or socket is
left, every file of the workspace is the old or the new one and nothing else lies there, and a
review that was being applied can be completed. Each moment is one line on failure; the last line is
"N passed, N failed[, N skipped]".
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from harness import leaks  # noqa: E402
from harness.scene import scenes  # noqa: E402

CHANGED = 40		# files that the reviewed run changes, makes and removes


class Broken(Exception):
    """What was found after a kill."""


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def kill_one(names):
    """Kills one process below this one that has one of the names; returns its name, None if there
    is none."""
    found = [(pid, comm(pid)) for pid in leaks.descendants(os.getpid())]
    found = [(pid, name) for pid, name in found if name in names]
    if not found:
        return None
    pid, name = random.choice(found)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return name


def killed_at(scene, words, targets, longest_s):
    """Starts ward and kills one of the targets a random time later; the time is spread so that
    early moments are as likely as late ones. Returns (what was killed, when, exit code)."""
    wait_s = longest_s * random.random() ** 2
    process = scene.start(*words)
    time.sleep(wait_s)
    name = kill_one(targets)
    if name is None and process.poll() is None:
        process.kill()
        name = "ward"
    try:
        process.communicate(timeout=30)
    except Exception:
        process.kill()
        raise Broken("ward hangs after the kill") from None
    return name or "nothing", wait_s, process.returncode


def new_content(i):
    return f"new {i}\n" * 200


def during_run(scene):
    script = ("i=0; while [ $i -lt 200 ]; do echo $i > made; mv made kept; i=$((i+1)); done; "
              "sleep 0.02")
    got = killed_at(scene, ["run", "--", "/bin/sh", "-c", script],
                    ("ward", "init", "ward-guardian"), 0.06)
    for name in os.listdir(scene.directory / "ws"):
        if name not in ("made", "kept"):
            raise Broken(f"{name} in the workspace")
    return got


def during_start_of_a_box(scene):
    return killed_at(scene, ["run", "-d", "--name", "box", "--", "/bin/sleep", "600"],
                     ("ward", "ward-box", "init"), 0.05)


def with_a_box(scene, words, longest_s):
    scene.ward("run", "-d", "--name", "box", "--", "/bin/sh", "-c",
               "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    return killed_at(scene, words, ("ward", "ward-box", "init"), longest_s)


def during_exec(scene):
    return with_a_box(scene, ["exec", "box", "/bin/sh", "-c", "sleep 0.02; echo x"], 0.05)


def during_stop(scene):
    return with_a_box(scene, ["stop", "--timeout", "1", "box"], 0.03)


def runtimes():
    """The OCI runtimes that this machine has."""
    return [r for r in ("runc", "crun") if shutil.which(r, path="/usr/sbin:/usr/bin")]


def during_oci(scene):
    """The runtime, its own children, and what is around and inside the container."""
    runtime = random.choice(runtimes())
    options = ["--isolation", "oci", "--set", f"oci.runtime={runtime}"]
    script = ("i=0; while [ $i -lt 200 ]; do echo $i > made; mv made kept; i=$((i+1)); done; "
              "sleep 0.02")
    return killed_at(scene, ["run", *random.choice((options, [*options, "-d", "--name", "box"])),
                             "--", "/bin/sh", "-c", script],
                     ("ward", "ward-box", "init", "ward-guardian", "runc", "runc:[1:CHILD]",
                      "runc:[2:INIT]", "exe", "crun"), 0.15)


def prepare_review(scene):
    """A run whose changes wait: some files changed, some made, some removed. Returns what may be
    there after it, by name."""
    ws = scene.directory / "ws"
    may_be = {}
    for i in range(CHANGED):
        (ws / f"changed{i}").write_text("old\n")
        (ws / f"removed{i}").write_text("old\n")
        may_be[f"changed{i}"] = {"old\n", new_content(i)}
        may_be[f"removed{i}"] = {"old\n", None}
        may_be[f"made{i}"] = {None, new_content(i)}
    for path in ws.iterdir():
        os.chown(path, scene.person.pw_uid, scene.person.pw_gid)
    script = "\n".join(f"rm removed{i}; i=0; {{ while [ $i -lt 200 ]; do echo new {i}; i=$((i+1)); "
                       f"done; }} > made{i}; cat made{i} > changed{i}"
                       for i in range(CHANGED))
    scene.ward("run", "--review", "--", "/bin/sh", "-c", script)
    return may_be


def look_at_files(scene, may_be, only_new=False):
    ws = scene.directory / "ws"
    for name, contents in may_be.items():
        try:
            content = (ws / name).read_text()
        except FileNotFoundError:
            content = None
        if content not in contents or (only_new and content == "old\n"):
            raise Broken(f"{name} is {'absent' if content is None else repr(content[:40])}")
    for name in os.listdir(ws):
        # that one goes with the next command
        if name not in may_be and (only_new or not name.startswith(".ward-apply-")):
            raise Broken(f"{name} in the workspace")


def during_apply(scene):
    may_be = prepare_review(scene)
    got = killed_at(scene, ["apply"], ("ward",), 0.04)
    look_at_files(scene, may_be)
    rc, out, err = scene.call("apply")
    if rc not in (0, 1, 125):
        raise Broken(f"the next apply: exit {rc} {out}{err}")
    look_at_files(scene, may_be, only_new=True)
    for name in may_be:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scene.directory / "ws" / name)
    return got


MOMENTS = (during_run, during_start_of_a_box, during_exec, during_stop, during_apply, during_oci)


def tidy(scene, before):
    """The next commands work, and take away what was left."""
    rc, out, err = scene.call("ps", "-a", "--json")
    if rc:
        raise Broken(f"ward ps: exit {rc} {err}")
    for box in json.loads(out)["sandboxes"]:
        if box["state"] not in ("running", "starting", "ending", "dead",
                                "paused") and not box["state"].startswith("ended"):
            raise Broken(f"a sandbox is {box['state']}")
    rc, _, err = scene.call("rm", "--all", "--force")
    if rc:
        raise Broken(f"ward rm: exit {rc} {err}")
    rc, _, err = scene.call("run", "--", "/bin/true")
    if rc:
        raise Broken(f"the next run: exit {rc} {err}")
    for name in ("made", "kept"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scene.directory / "ws" / name)
    after = scene.settle(before)
    if any(after[name] > before[name] for name in before):
        # what is half made may be being made for ten seconds: only a later command takes it away
        scene.call("recover")
        after = scene.settle(before)
    left = [f"{name}: {before[name]} -> {after[name]}" for name in before
            if after[name] > before[name]]
    if left:
        lying = [os.path.relpath(os.path.join(top, name), scene.directory)
                 for place in ("state", "runtime")
                 for top, dirs, names in os.walk(scene.directory / place) for name in dirs + names]
        below = [leaks.describe(pid) for pid in leaks.descendants(os.getpid())]
        raise Broken(f"left behind: {', '.join(left)}; {below} {lying}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--points", type=int, default=int(os.environ.get("POINTS", 100)),
                        help="kills per person")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", choices=("root", "user"), help="as one of them only")
    parser.add_argument("--moment", help="only moments whose name contains this")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    print(f"seed {seed}")
    moments = [m for m in MOMENTS if not args.moment or args.moment in m.__name__]
    passed = failed = skipped = 0
    if during_oci in moments and not runtimes():
        moments.remove(during_oci)
        skipped = 1
        print("skipped: during_oci: neither runc nor crun is installed")
    counts = {}
    with scenes(os.environ.get("WARD_BUILD", TOP / "build"), args.only) as people:
        for scene in people:
            scene.ward("run", "--", "/bin/true")
            scene.ward("run", "-d", "--name", "first", "--", "/bin/true")
            scene.ward("wait", "first")
            scene.ward("rm", "first")
            prepare_review(scene)
            scene.ward("apply")
            for path in (scene.directory / "ws").iterdir():
                path.unlink()
            before = scene.count()
            for i in range(args.points):
                moment = moments[i % len(moments)]
                name, when = "nothing", 0
                try:
                    name, when, _ = moment(scene)
                    tidy(scene, before)
                    passed += 1
                except Broken as error:
                    failed += 1
                    print(f"FAIL {scene.who}: {moment.__name__}, {name} killed after "
                          f"{when * 1000:.1f} ms: {error}", flush=True)
                    before = scene.count()
                counts[(moment.__name__, name)] = counts.get((moment.__name__, name), 0) + 1
    for (moment, name), n in sorted(counts.items()):
        print(f"  {moment:<24}{name:<16}{n:>5}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


sys.exit(main())
