#!/usr/bin/python3
"""make bench, the network: what a connection through the gateway costs, beside a direct one and
beside other relays, in turns.

In: the build directory (WARD_BUILD, or build/). Out: a table on standard output,
build/bench/net.json and net.svg. net-load (C) is server and client; net_peers.py starts the relays;
net_report.py makes table and picture. In each round every way gets its turn, so that what else the
machine does hits all alike; what is printed are medians over the rounds, and their ratios.

What is compared: from accept to close, over this machine's loopback. ward reaches the server as a
host service, in mode tcp: the name is resolved inside, by ward's own resolver and before the clock
runs; nothing is asked upstream, and the bytes are not looked at (a rule for TLS or HTTP reads the
first packet in addition). The proxies' figures include their CONNECT. Client, server and relay
share the processors. All use the host's congestion control, and the client says which. Relay CPU is
the time of all the relay's processes.
"""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import net_peers  # noqa: E402
import net_report  # noqa: E402
import turns  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
LIMIT_S = 60
# what net-load measures, and how much of it
WORDS = {"ttfb": 400, "rate": 8000, "down": 1024, "up": 1024}
IDLE = 2000


def client(argv, place):
    return turns.client(argv, place, LIMIT_S)


def go(process):
    """Lets it measure: the number, its own processor time, its congestion control."""
    number, cpu, control = turns.go(process, LIMIT_S)
    return float(number), float(cpu), control


def one_turn(place, way, word, count):
    argv, relays = way
    with client(argv(word, count), place) as process:
        before = net_peers.cpu_seconds(relays(process))
        number, _, control = go(process)
        return number, net_peers.cpu_seconds(relays(process)) - before, control


def measure(place, rounds, only):
    """{name: {note, word: [numbers], cpu: [seconds a GiB], failed: [why]}} and {name: how to get
    it}."""
    results = {}
    with contextlib.ExitStack() as stack:
        ways, missing = turns.begin(stack, net_peers.WAYS, place, only)
        for name, note, _, _ in ways:
            results[name] = {"note": note, "cpu": [], "failed": [], "control": "",
                             **{word: [] for word in WORDS}}
        for at in range(rounds):
            for word, all_of_it in WORDS.items():
                for name, _, way, share in ways:
                    count = max(int(all_of_it * share), 64)
                    try:
                        number, cpu, control = one_turn(place, way, word, count)
                    except (OSError, RuntimeError, ValueError) as e:
                        results[name]["failed"].append(f"round {at + 1}, {word}: {e}")
                        continue
                    results[name][word].append(number)
                    results[name]["control"] = control
                    if word in ("down", "up") and name != "direct":
                        results[name]["cpu"].append(cpu * 1024 / count)
    return results, missing


def start_cost(place, rounds):
    """Milliseconds of `ward run -- true` without and with a network, in turns."""
    without = place.base / "without.yaml"
    without.write_text("version: 1\n")
    times = {without: [], place.policy: []}
    for _ in range(rounds):
        for policy, found in times.items():
            began = time.perf_counter()
            subprocess.run([place.ward, "run", "-p", policy, "--", "/bin/true"], cwd=place.work,
                           check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            found.append((time.perf_counter() - began) * 1000)
    off, on = times[without], times[place.policy]
    return {"without_ms": statistics.median(off), "with_ms": statistics.median(on),
            "without_min_ms": min(off), "with_min_ms": min(on)}


def pss_bytes(pids):
    return sum(int(re.search(r"^Pss:\s+(\d+)",
                             pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1]) * 1024
               for pid in pids)


def memory(place):
    """The gateway's share of memory after one connection, and what each of many idle ones adds;
    only root may see it."""
    with net_peers.ward(place) as (argv, relays), client(argv("idle", IDLE), place) as process:
        found = {"processes": len(relays(process))}
        if os.geteuid() == 0:
            found["pss_bytes"] = pss_bytes(relays(process))
        go(process)
        if os.geteuid() == 0:
            found["bytes_per_idle"] = (pss_bytes(relays(process)) - found["pss_bytes"]) / IDLE
        return found


def conditions(rounds):
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"rounds": rounds, "processors": os.cpu_count(), "processor": model[1]
            if model else platform.machine(), "kernel": platform.release().split("-")[0],
            "load_before": os.getloadavg()[0], "as": "as root" if os.geteuid() == 0
            else "as an ordinary user"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 7)))
    parser.add_argument("--only", action="append", help="a way by its name; may be repeated")
    parser.add_argument("--note", default="", help="what else is to be said about the conditions")
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build")).resolve()
    summary = {"conditions": {**conditions(args.rounds), "note": args.note}}
    with tempfile.TemporaryDirectory(prefix="ward-bench-") as base:
        place = net_peers.Place(base, build)
        with subprocess.Popen([place.load, "serve", str(place.port)],
                              stdout=subprocess.PIPE) as server:
            try:
                server.stdout.readline()
                results, missing = measure(place, args.rounds, args.only)
                summary.update(start=start_cost(place, 100), memory=memory(place))
            finally:
                server.kill()
    summary.update(ways=net_report.summarise(results), absent=missing)
    summary["bars"] = net_report.bars(summary)
    out = build / "bench"
    out.mkdir(exist_ok=True)
    (out / "net.json").write_text(json.dumps(summary, indent=1) + "\n")
    (out / "net.svg").write_text(net_report.svg(summary))
    print(net_report.text(summary))
    print(f"written: {out}/net.json {out}/net.svg")
    return 0 if net_report.sound(summary) else 1


if __name__ == "__main__":
    sys.exit(main())
