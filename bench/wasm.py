#!/usr/bin/python3
"""make bench-wasm: the start of a WASI module under `isolation: wasm` beside its runtime alone.

In: the build directory (WARD_BUILD, or build/) with wasm-tree in it (tools/wasm_tree.sh: WasmEdge
of Debian 13), --rounds N, --doc. Out: a table for root and one for an ordinary user; with --doc
docs/bench-wasm.md. Started by root, who becomes the user; the runtime alone is started by the
tree's own loader, so that both can. What is run prints one line. Rounds alternate, the first is not
counted. Compared are wall time and the processor time of everything that was started; where others
keep the processors busy (the load is above their number) only the latter counts. The exit status is
1 when the least or the median is above the bound. ward's side also makes a sandbox and an overlay
of the tree, and both run code that was compiled ahead of time.
"""
import argparse
import os
import pathlib
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from wrap_markdown import wrap  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
BOUND = 1.3
SOURCE = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


def prepare(work, tree, ward, env, person):
    """The module, compiled by WasmEdge itself and, by the first run, by ward; returns name ->
    command."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    alone = [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries,
             tree / "usr/bin/wasmedge"]
    (work / "hello.c").write_text(SOURCE)
    compiler = shutil.which("clang-14") or "clang"
    subprocess.run([compiler, "--target=wasm32-wasi", "-O2", "-s", "-o", work / "hello.wasm",
                    work / "hello.c"], check=True)
    subprocess.run([*alone, "compile", work / "hello.wasm", work / "hello.so"], check=True,
                   stdout=subprocess.DEVNULL)
    for path in (work.parent, work, work / "hello.wasm", work / "hello.so"):
        os.chown(path, person.pw_uid, person.pw_gid)
    wasm = [ward, "run", "--isolation", "wasm"]
    commands = {
        "wasmedge, compiled": [*alone, "--dir", ".:.", "hello.so"],
        "ward, WasmEdge's library, compiled": [*wasm, "--image", tree, "--", "hello.wasm"],
        "ward, WasmEdge's library, interpreted": [*wasm, "--image", tree, "--set",
                                                  "wasm.compile=false", "--", "hello.wasm"],
        "ward, the program wasmedge in a native sandbox": [ward, "run", "--image", tree, "--",
                                                           "/usr/bin/wasmedge", "--dir", ".:.",
                                                           "hello.wasm"],
    }
    if os.path.exists("/usr/bin/node"):
        commands["ward, node (no isolation of its own)"] = [*wasm, "--set", "wasm.runtime=node",
                                                            "--", "hello.wasm"]
    commands["ward, native, /bin/true"] = [ward, "run", "--", "/bin/true"]
    for command in commands.values():
        subprocess.run(command, check=True, cwd=work, env=env, stdout=subprocess.DEVNULL,
                       user=person.pw_uid, group=person.pw_gid, extra_groups=[])
    return commands


def measure(commands, rounds, work, env, person):
    """name -> list of (wall, processor time) in ms."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=work, env=env, stdout=subprocess.DEVNULL,
                                       user=person.pw_uid, group=person.pw_gid, extra_groups=[])
            _, status, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise SystemExit(f"bench: {name} ended with {process.returncode}")
            times[name].append((wall * 1000, (used.ru_utime + used.ru_stime) * 1000))
    return times


def ratios(ours, base, kind):
    ours, base = [t[kind] for t in ours], [t[kind] for t in base]
    return min(ours) / min(base), statistics.median(ours) / statistics.median(base)


def table(times, kinds):
    """Lines of Markdown, and whether the bound holds for these: wall (0), processor time (1)."""
    base = times["wasmedge, compiled"]
    lines = ["| what | wall, least | median | ratios | processor, least | median | ratios |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, taken in times.items():
        cells = []
        for k in (0, 1):
            values, (least, middle) = [t[k] for t in taken], ratios(taken, base, k)
            cells += [f"{min(values):.1f} ms", f"{statistics.median(values):.1f} ms",
                      f"{least:.2f}, {middle:.2f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines, all(max(ratios(times["ward, WasmEdge's library, compiled"], base, kind)) <= BOUND
                      for kind in kinds)


def bench(build, rounds, person):
    """Times of one who runs them: name -> list of (wall, processor time)."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="ward-bench-wasm."))
    try:
        env = {"PATH": os.environ["PATH"], "HOME": str(work), "WARD_STATE_DIR": str(work / "state"),
               "WARD_RUNTIME_DIR": str(work / "runtime")}
        for name in ("ws", "state", "runtime"):
            (work / name).mkdir(mode=0o700)
            os.chown(work / name, person.pw_uid, person.pw_gid)
        commands = prepare(work / "ws", build / "wasm-tree", build / "src/cli/ward", env, person)
        return measure(commands, rounds, work / "ws", env, person)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--doc", action="store_true")
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build"))
    tree = build / "wasm-tree"
    if os.geteuid() != 0 or not (tree / ".complete").exists():
        raise SystemExit(f"bench: needs root, and tools/wasm_tree.sh {tree}")
    people, parts, holds = {"root": pwd.getpwuid(0)}, [], True
    try:
        people["an ordinary user"] = pwd.getpwnam("wardtest")	# whom make test makes
    except KeyError:
        print("bench: there is no user wardtest: root alone", file=sys.stderr)
    for who, person in people.items():
        times = bench(build, args.rounds, person)
        load = os.getloadavg()[0]
        busy = load > os.cpu_count()
        lines, fine = table(times, (1,) if busy else (0, 1))
        verdict = (f"Bound: {BOUND} of the first line, by "
                   f"{'processor time (wall time is not judged' if busy else 'wall and processor time ('}{', ' if busy else ''}load {load:.0f} on {os.cpu_count()} processors): {'held' if fine else 'missed'}.")
        parts.append(f"## As {who}\n\n" + "\n".join(lines) + f"\n\n{verdict}\n")
        holds = holds and fine
    print("\n".join(parts))
    if args.doc:
        (TOP / "docs/bench-wasm.md").write_text(wrap(
            "# The start of a WASI module\n\n`make bench-wasm`, one line printed, "
            f"{args.rounds} rounds in turn; ratios of least and median to the first line. Wall "
            "times of a busy machine say little. "
            "WasmEdge 0.14.1 of Debian 13, whose library brings LLVM: loading that is nearly all "
            "of the time of each line but the last two.\n\n" + "\n".join(parts)))
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
