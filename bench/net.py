#!/usr/bin/python3
"""bench/net.py: what a connection through the gateway costs, beside a direct one over the host's loopback, in turns.

In: the build directory (WARD_BUILD, or build/). Out: a table on standard output and build/bench/net.json. net-load is server
and client; inside it reaches the server under a name of host_services, in mode tcp. Rounds alternate, so that what else the
machine does hits both alike; medians are printed, and their ratio.
"""
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
PORT = 39001
ROUNDS = 7
# name, net-load's word, count, unit, whether more is better, the bar for ward/direct
ROWS = [("first byte", "ttfb", 500, "us", False, 2.8), ("connections", "rate", 4000, "/s", True, 0.45),
        ("download", "down", 1024, "MiB/s", True, 0.55), ("upload", "up", 1024, "MiB/s", True, None)]


def start_cost(ward, work, policy):
    """Milliseconds that a network adds to `ward run -- true`."""
    times = {False: [], True: []}
    for _ in range(60):
        for on in times:
            began = time.perf_counter()
            subprocess.run([ward, "run", *(["-p", policy] if on else []), "--", "/bin/true"], cwd=work, check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times[on].append((time.perf_counter() - began) * 1000)
    return statistics.median(times[False]), statistics.median(times[True])


def measure(ward, work, policy, load):
    results = {row[0]: ([], []) for row in ROWS}
    for _ in range(ROUNDS):
        for name, word, count, *_ in ROWS:
            direct = subprocess.run([load, word, "127.0.0.1", str(PORT), str(count)], check=True, capture_output=True, text=True)
            through = subprocess.run([ward, "run", "-p", policy, "--", "./net-load", word, "bench", str(PORT), str(count)], cwd=work,
                                     check=True, capture_output=True, text=True)
            results[name][0].append(float(direct.stdout))
            results[name][1].append(float(through.stdout))
    return results


def main():
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build"))
    ward, load = build / "src/cli/ward", build / "bench/net-load"
    report = {}
    with tempfile.TemporaryDirectory(prefix="ward-bench-") as base:
        work = pathlib.Path(base) / "work"
        work.mkdir()
        shutil.copy(load, work)
        policy = pathlib.Path(base) / "policy.yaml"
        policy.write_text(f'version: 1\nnetwork: {{mode: restricted, host_services: ["bench=127.0.0.1:{PORT}"]}}\n')
        server = subprocess.Popen([load, "serve", str(PORT)], stdout=subprocess.PIPE)
        try:
            server.stdout.readline()
            results = measure(ward, work, policy, load)
            without, with_network = start_cost(ward, work, policy)
        finally:
            server.kill()
            server.wait()
    print(f"{'':14}{'direct':>12}{'ward':>12}{'ratio':>8}{'bar':>8}")
    for name, _, _, unit, more, bar in ROWS:
        direct, through = (statistics.median(values) for values in results[name])
        report[name] = {"direct": direct, "ward": through, "ratio": through / direct, "unit": unit, "bar": bar}
        text = "" if bar is None else f"{'>=' if more else '<='} {bar}"
        print(f"{name:14}{direct:12.1f}{through:12.1f}{through / direct:8.2f}{text:>8} {unit}")
    report["start"] = {"without": without, "with": with_network, "unit": "ms"}
    print(f"{'start':14}{without:12.2f}{with_network:12.2f}{with_network - without:+8.2f}{'<= 1.2':>8} ms")
    (build / "bench").mkdir(exist_ok=True)
    (build / "bench/net.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
