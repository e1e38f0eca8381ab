#!/usr/bin/env python3
"""What the journal costs: a start with and without it, a fork and exec loop at level exec, events
written and verified a second.

Runs interleaved and prints medians, minima and their ratios. Exits 1 where something misses what is
promised: basic within 1.10 of none on the start, exec within 1.25 of basic, 20,000 events a second
from 50 writers, 300,000 a second verified. On a busy machine look at the minima.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("WARD_BUILD",
                                    pathlib.Path(__file__).resolve().parent.parent / "build"))
WARD, LOAD, TRUE = BUILD / "src/cli/ward", BUILD / "bench/journal-load", "/bin/true"
RUNS, LOOPS, FORKS, WRITERS, EACH, MANY = 200, 7, 300, 50, 2000, 1000000
LOOP = (f"import os\nfor _ in range({FORKS}):\n p = os.fork()\n if not p:\n  os.execv('/bin/true', "
        "['true'])\n os.waitpid(p, 0)\n")


def took(*argv):
    began = time.perf_counter()
    subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def compare(name, one, other, times, most):
    """Runs both in turn; False if other costs more than most of one by median and by minimum."""
    got = {"one": [], "other": []}
    for i in range(times):
        for which, argv in (("one", one), ("other", other))[::1 if i % 2 else -1]:
            got[which].append(took(*argv))
    median = statistics.median(got["other"]) / statistics.median(got["one"])
    least = min(got["other"]) / min(got["one"])
    print(f"{name}: ratio of medians {median:.3f}, of minima {least:.3f} (at most {most})")
    return min(median, least) <= most


def rate(name, events, seconds, least):
    print(f"{name}: {events / seconds:,.0f} events a second (at least {least:,})")
    return events / seconds >= least


def main():
    with tempfile.TemporaryDirectory() as state, tempfile.TemporaryDirectory() as ws:
        os.environ["WARD_STATE_DIR"] = state
        os.chdir(ws)
        run = [WARD, "run", "--set"]
        good = compare("start, basic beside none", [*run, "audit.journal=none", "--", TRUE],
                       [*run, "audit.journal=default", "--", TRUE], RUNS, 1.10)
        good &= compare("fork and exec, exec beside basic",
                        [*run, "audit.level=basic", "--", "/usr/bin/python3", "-c", LOOP],
                        [*run, "audit.level=exec", "--", "/usr/bin/python3", "-c", LOOP],
                        LOOPS, 1.25)
        good &= compare("fork and exec, full beside basic",
                        [*run, "audit.level=basic", "--", "/usr/bin/python3", "-c", LOOP],
                        [*run, "audit.level=full", "--", "/usr/bin/python3", "-c", LOOP],
                        LOOPS, 1.6)
        began = time.perf_counter()
        writers = [subprocess.Popen([LOAD, f"20200101-000000-w{i}", str(EACH)])
                   for i in range(WRITERS)]
        if any([w.wait() for w in writers]):
            return 1
        good &= rate(f"written by {WRITERS} at once", WRITERS * EACH,
                     time.perf_counter() - began, 20000)
        took(LOAD, "20200101-000000-many", MANY)
        good &= rate("verified", MANY, took(WARD, "audit", "verify", "20200101-000000-many"),
                     300000)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
