#!/usr/bin/python3
"""make bench-wasm: the start of a WASI module under `isolation: wasm` beside its runtime alone.

In: the build directory (WARD_BUILD, or build/) with wasm-tree in it (tools/wasm_tree.sh: WasmEdge of Debian 13), --rounds N, --doc. Out: a table; with --doc docs/bench-wasm.md. Root, because the runtime alone runs by chroot in that tree. What is run prints one line. Rounds
alternate, the first is not counted. Compared is wall time, or, where others keep the processors busy (the load is above their number), processor time of everything that was started; the exit status is 1 when the least or the median is above the bound. ward's side also makes a sandbox and an overlay of the tree, and both run code that was compiled ahead of time.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BOUND = 1.3
SOURCE = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


def prepare(work, tree, ward, env):
    """The module, compiled by WasmEdge itself and, by the first run, by ward; returns name -> command."""
    (work / "hello.c").write_text(SOURCE)
    compiler = shutil.which("clang-14") or "clang"
    subprocess.run([compiler, "--target=wasm32-wasi", "-O2", "-s", "-o", work / "hello.wasm", work / "hello.c"], check=True)
    place = pathlib.Path(tempfile.mkdtemp(dir=tree / "tmp"))
    inside = "/" + str(place.relative_to(tree))
    shutil.copy(work / "hello.wasm", place)
    subprocess.run(["chroot", tree, "wasmedge", "compile", f"{inside}/hello.wasm", f"{inside}/hello.so"], check=True, stdout=subprocess.DEVNULL)
    wasm = [ward, "run", "--isolation", "wasm"]
    commands = {
        "wasmedge, compiled": ["chroot", tree, "/usr/bin/wasmedge", "--dir", f".:{inside}", f"{inside}/hello.so"],
        "ward, WasmEdge's library, compiled": [*wasm, "--image", tree, "--", "hello.wasm"],
        "ward, WasmEdge's library, interpreted": [*wasm, "--image", tree, "--set", "wasm.compile=false", "--", "hello.wasm"],
        "ward, the program wasmedge in a native sandbox": [ward, "run", "--image", tree, "--", "/usr/bin/wasmedge", "--dir", ".:.", "hello.wasm"],
    }
    if os.path.exists("/usr/bin/node"):
        commands["ward, node (no wall of its own)"] = [*wasm, "--set", "wasm.runtime=node", "--", "hello.wasm"]
    commands["ward, native, /bin/true"] = [ward, "run", "--", "/bin/true"]
    for command in commands.values():
        subprocess.run(command, check=True, cwd=work, env=env, stdout=subprocess.DEVNULL)
    return commands, place


def measure(commands, rounds, work, env):
    """name -> list of (wall, processor time) in ms."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=work, env=env, stdout=subprocess.DEVNULL)
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


def table(times, kind):
    """Lines of Markdown, and whether the bound holds for wall (0) or processor time (1)."""
    base = times["wasmedge, compiled"]
    lines = ["| what | wall, least | median | ratios | processor, least | median | ratios |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, taken in times.items():
        cells = []
        for k in (0, 1):
            values, (least, middle) = [t[k] for t in taken], ratios(taken, base, k)
            cells += [f"{min(values):.1f} ms", f"{statistics.median(values):.1f} ms", f"{least:.2f}, {middle:.2f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines, max(ratios(times["ward, WasmEdge's library, compiled"], base, kind)) <= BOUND


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--doc", action="store_true")
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build"))
    ward, tree = build / "src/cli/ward", build / "wasm-tree"
    if os.geteuid() != 0 or not (tree / ".complete").exists():
        raise SystemExit(f"bench: needs root, and tools/wasm_tree.sh {tree}")
    work = pathlib.Path(tempfile.mkdtemp(prefix="ward-bench-wasm."))
    place = None
    try:
        env = {**os.environ, "WARD_STATE_DIR": str(work / "state"), "WARD_RUNTIME_DIR": str(work / "runtime")}
        (work / "ws").mkdir()
        commands, place = prepare(work / "ws", tree, ward, env)
        times = measure(commands, args.rounds, work / "ws", env)
        load = os.getloadavg()[0]
        busy = load > os.cpu_count()
        lines, holds = table(times, int(busy))
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if place:
            shutil.rmtree(place, ignore_errors=True)
    print("\n".join(lines))
    verdict = f"Bound: {BOUND} of the first line, by {'processor' if busy else 'wall'} time (load {load:.0f} on {os.cpu_count()} processors): {'held' if holds else 'missed'}."
    print(verdict)
    if args.doc:
        (TOP / "docs/bench-wasm.md").write_text(
            "# The start of a WASI module\n\n`make bench-wasm`, one line printed, " f"{args.rounds} rounds in turn; ratios of least and median to the first line. Wall times of a busy machine say little. "
            "WasmEdge 0.14.1 of Debian 13, whose library brings LLVM: loading that is nearly all of the time of the first line, and of the others but the second, where ward opens a copy of the library without its compiler.\n\n" + "\n".join(lines) + f"\n\n{verdict}\n")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
