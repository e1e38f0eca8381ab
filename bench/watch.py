#!/usr/bin/env python3
"""What watch rules cost in a build that starts many programs and opens many files.

bench/watch.py [--ward PATH] [--rounds N]

Compiles twenty small files and copies and removes each, in a sandbox, with policies by turns.
Prints the processor time of the whole run (the sandbox and its supervisor), and how much more than
without rules that is: the median of the quotients of the rounds, and of the least times.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile

POLICIES = {
    "no rules": {},
    "denials, hosts, bytes, idle": {"watch": {"rules": [
        {"name": "a", "count": "denials", "above": 1000, "within_seconds": 60},
        {"name": "b", "count": "new_hosts", "above": 100},
        {"name": "c", "count": "bytes_out", "above": "100Mi"},
        {"name": "d", "count": "idle_cpu", "above": 6000}]}},
    "execs": {"watch": {"rules": [
        {"name": "a", "count": "execs", "above": 100000, "within_seconds": 60}]}},
    "files changed, deleted, encrypted": {"watch": {"rules": [
        {"name": "a", "count": "files_deleted", "above": 100000, "within_seconds": 60},
        {"name": "b", "count": "files_changed", "above": 100000, "within_seconds": 60},
        {"name": "c", "count": "files_encrypted", "above": 100000, "within_seconds": 60}]}},
    "files_read": {"watch": {"rules": [
        {"name": "a", "count": "files_read", "above": 100000, "within_seconds": 60}]}},
}
WORK = ("for i in $(seq 20); do cc -O0 -c a$i.c -o a$i.o; cp a$i.c b$i.c; rm b$i.c; done")
SOURCE = ("#include <stdio.h>\n#include <stdlib.h>\n"
          "int f{0}(int x) {{ return printf(\"%d\", x); }}\n")


def run(ward, directory, policy):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([ward, "run", "-q", "-p", policy, "--", "sh", "-c", WORK], check=True,
                   cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ward", default="build/src/cli/ward")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    ward = os.path.abspath(options.ward)
    with tempfile.TemporaryDirectory() as top:
        directory = os.path.join(top, "project")
        os.mkdir(directory)
        for i in range(1, 21):
            with open(os.path.join(directory, f"a{i}.c"), "w") as f:
                f.write(SOURCE.format(i))
        files = {}
        for number, (name, policy) in enumerate(POLICIES.items()):
            files[name] = os.path.join(top, f"{number}.json")
            with open(files[name], "w") as f:
                f.write(json.dumps({"version": 1, **policy}))
        times = {name: [] for name in POLICIES}
        for _ in range(options.rounds):
            for name in POLICIES:
                times[name].append(run(ward, directory, files[name]))
    base = times["no rules"]
    for name, found in times.items():
        more = statistics.median(a / b for a, b in zip(found, base)) - 1
        least = min(found) / min(base) - 1
        print(f"{name:34} {statistics.median(found) * 1000:7.0f} ms {100 * more:+6.1f} % "
              f"(least {100 * least:+.1f} %)")


if __name__ == "__main__":
    main()
