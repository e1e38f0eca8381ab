#!/usr/bin/python3
"""make bench-review: what a run under review costs beside a direct one, and what diff and apply
cost.

In: the build directory (WARD_BUILD, or build/), --files N of the checkout (20,000), --changes N
(100,000), --runs N. Out: a table. The exit status is 1 when the start under review is more than 1
ms slower than the direct one. The start is what ward itself measures up to the moment when the
command runs; runs alternate, and the least of each kind is compared, because other load only ever
adds.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BOUND_MS = 1.0


def start_ms(ward, ws, env, *options):
    """Milliseconds from ward's beginning to the command's."""
    r = subprocess.run([ward, "run", "-v", "--json", *options, "--", "/bin/true"], cwd=ws, env=env,
                       check=True, stderr=subprocess.PIPE,
                       text=True)
    for step in json.loads(r.stderr.strip().splitlines()[-1])["steps"]:
        if step["by"] == "ward" and step["name"] == "the command":
            return step["at_us"] / 1000
    raise SystemExit("ward tells no steps")


def compare_starts(ward, ws, env, runs):
    kinds = {"direct": [], "review": ["--review"]}
    times = {name: [] for name in kinds}
    for _ in range(runs):
        for name, options in kinds.items():
            times[name].append(start_ms(ward, ws, env, *options))
    for name, taken in times.items():
        print(f"  start, {name:<7} least {min(taken):8.2f} ms   median "
              f"{statistics.median(taken):8.2f} ms")
    over = min(times["review"]) - min(times["direct"])
    print(f"  review over direct: {over:+.2f} ms (bound {BOUND_MS:.1f} ms)")
    return over <= BOUND_MS


def timed(label, ward, ws, env, *words):
    begun = time.monotonic()
    subprocess.run([ward, *words], cwd=ws, env=env, check=True, stdout=subprocess.DEVNULL)
    print(f"  {label:<34} {time.monotonic() - begun:8.2f} s")


def many_changes(ward, ws, env, changes):
    script = (f"import os\nfor i in range({changes} // 100):\n os.mkdir(f'n{{i}}')\n"
              " for k in range(100):\n"
              "  open(f'n{i}/f{k}', 'w').write(str(k))\n")
    timed(f"a run that makes {changes} files", ward, ws, env, "run", "--review", "--", "python3",
          "-c", script)
    for label, words in (("diff", ["diff"]), ("diff --stat", ["diff", "--stat"]),
                         ("apply", ["apply"])):
        timed(label, ward, ws, env, *words)
    timed("a run that removes them again", ward, ws, env, "run", "--review", "--", "sh", "-c",
          "rm -r n*")
    timed("apply", ward, ws, env, "apply")


def main():
    parser = argparse.ArgumentParser(description="What a run under review costs.")
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--changes", type=int, default=100000, help="0: leave that part out")
    parser.add_argument("--runs", type=int, default=60)
    args = parser.parse_args()
    ward = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build")) / "src/cli/ward"
    base = pathlib.Path(tempfile.mkdtemp(prefix="ward-bench."))
    env = {**os.environ, "WARD_STATE_DIR": str(base / "state")}
    try:
        ws = base / "ws"
        for i in range(args.files):
            if i % 100 == 0:
                (ws / f"d{i // 100}").mkdir(parents=True)
            (ws / f"d{i // 100}" / f"f{i}").write_text("x\n")
        print(f"a checkout of {args.files} files")
        fine = compare_starts(ward, ws, env, args.runs)
        if args.changes:
            many_changes(ward, ws, env, args.changes)
    finally:
        shutil.rmtree(base)
    return 0 if fine else 1


sys.exit(main())
