#!/usr/bin/python3
"""make bench-inspect: what it costs to look into HTTPS requests, beside mitmproxy and squid, in
turns.

In: the build directory (WARD_BUILD, or build/); root, for network namespaces. Out: a table on
standard output, build/bench/inspect.json and, with --doc, docs/bench-inspect.md. Two namespaces
with a cable: in the one a real nginx with TLS, in the other everything else, so that what is
measured crosses no other network. inspect-load (C) is the client for all of them; inspect_peers.py
starts the relays. In each round every way gets its turn; what is printed are medians over the
rounds, and their ratios.

"ward" ends TLS, reads, decides about and writes anew each request and answer. "ward, with a secret"
has a grant for the host: each request goes through ward-keys, which looks through all of it for
every form of the secret. All ways verify the server's certificate.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import inspect_peers  # noqa: E402
import net_peers  # noqa: E402
import turns  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from wrap_markdown import wrap  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
LIMIT_S = 90
# what inspect-load measures, and how much of it
WORDS = {"wait": 400, "rate": 4000, "fresh": 800, "down": 256, "up": 256}
COLUMNS = [("rate", "requests", "/s", "{:.0f}"), ("cpu_us", "relay CPU", "µs/request", "{:.0f}"),
           ("wait", "answer p50", "µs", "{:.0f}"),
           ("fresh", "connections", "/s", "{:.0f}"), ("down", "download", "MiB/s", "{:.0f}"),
           ("up", "upload", "MiB/s", "{:.0f}"),
           ("pss_mb", "memory", "MB PSS", "{:.1f}"), ("idle_mb", "idle", "MB PSS", "{:.1f}")]
IDLE_S = 7    # ward gives memory back when nothing has happened for five


def pss_mb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(re.search(r"^Pss:\s+(\d+)",
                                   pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
    return total / 1024


def one_turn(place, way, word, count, idle):
    """The number, the relay's processor seconds, its memory at the end, and after a rest (None: not
    looked at)."""
    argv, env, relays = way
    with turns.client(argv(word, count), place, LIMIT_S, env) as process:
        pids = relays(process)
        before = net_peers.cpu_seconds(pids)
        number = float(turns.go(process, LIMIT_S)[0])
        cpu, memory = net_peers.cpu_seconds(pids) - before, pss_mb(pids)
        if not idle:
            return number, cpu, memory, None
        time.sleep(IDLE_S)
        return number, cpu, memory, pss_mb(pids)


def measure(place, rounds, only):
    """{name: {note, word: [numbers], cpu_us: [], pss_mb: [], failed: [why]}} and {name: how to get
    it}."""
    results = {}
    with contextlib.ExitStack() as stack:
        ways, missing = turns.begin(stack, inspect_peers.WAYS, place, only)
        for name, note, _, _ in ways:
            results[name] = {"note": note, "cpu_us": [], "pss_mb": [], "idle_mb": [], "failed": [],
                             **{word: [] for word in WORDS}}
        for at in range(rounds):
            for word, all_of_it in WORDS.items():
                for name, _, way, share in ways:
                    count = max(int(all_of_it * share) // 16 * 16, 16)
                    try:
                        number, cpu, pss, idle = one_turn(place, way, word, count, word == "rate"
                                                          and name != "direct" and at == 0)
                    except (OSError, RuntimeError, ValueError) as e:
                        results[name]["failed"].append(f"round {at + 1}, {word}: {e}")
                        continue
                    results[name][word].append(number)
                    if word == "rate" and name != "direct":
                        results[name]["cpu_us"].append(cpu / count * 1e6)
                        results[name]["pss_mb"].append(pss)
                        results[name]["idle_mb"] += [idle] if idle else []
    return results, missing


def summarise(results, missing, conditions):
    ways = {}
    for name, row in results.items():
        ways[name] = {"note": row["note"], "failed": row["failed"]}
        for key, _, _, _ in COLUMNS:
            if row[key]:
                best = min if key in ("wait", "cpu_us", "pss_mb", "idle_mb") else max
                ways[name][key] = statistics.median(row[key])
                ways[name][f"{key}_best"] = best(row[key])
    return {"conditions": conditions, "ways": ways, "absent": missing, "bars": bars(ways)}


def bars(ways):
    """What the bars say, where both sides were measured: of the medians, and of the best of
    each."""
    def of(what, unit, number, bar, more):
        values = []
        for suffix in ("", "_best"):
            with contextlib.suppress(KeyError, ZeroDivisionError):
                values.append(number(lambda name, key, s=suffix: ways[name][key + s]))
        if not values:
            return []
        return [{"what": what, "unit": unit, "number": values[0], "of_best": values[-1], "bar": bar,
                 "more": more,
                 "holds": values[0] >= bar if more else values[0] <= bar}]

    secret = "ward, with a secret"
    return (of("requests a second, of mitmproxy's", "x",
               lambda w: w("ward", "rate") / w("mitmproxy", "rate"), 2.5, True) +
            of("CPU a request, of mitmproxy's", "x",
               lambda w: w("ward", "cpu_us") / w("mitmproxy", "cpu_us"), 0.5, False) +
            of("added to an answer, warm server, p50", "ms",
               lambda w: (w("ward", "wait") - w("direct", "wait")) / 1000, 0.6, False) +
            of("upload with a secret, of that without", "x",
               lambda w: w(secret, "up") / w("ward", "up"), 0.9, True) +
            of("download with a secret, of that without", "x",
               lambda w: w(secret, "down") / w("ward", "down"), 0.9, True) +
            of("memory, busy", "MB", lambda w: w("ward", "pss_mb"), 10, False) +
            of("memory, with a secret, idle", "MB", lambda w: w(secret, "idle_mb"), 10, False) +
            of("memory, with a secret, busy", "MB", lambda w: w(secret, "pss_mb"), 10, False))


def text(summary):
    c = summary["conditions"]
    lines = [f"looking into HTTPS: medians of {c['rounds']} rounds, interleaved; {c['processors']} "
             f"processors ({c['processor']}) shared by client, server and "
             f"relay; Linux {c['kernel']}; load before: "
             f"{c['load_before']:.1f}{'; ' + c['note'] if c['note'] else ''}",
             "  " + " " * 20 + "".join(f"{heading + ' ' + unit:>22}"
                                       for _, heading, unit, _ in COLUMNS)]
    for name, row in summary["ways"].items():
        lines.append(f"  {name:20}" + "".join(f"{form.format(row[key]) if key in row else '-':>22}"
                                              for key, _, _, form in COLUMNS))
        lines += [f"  {'':20}  failed: {why}" for why in row["failed"]]
    lines += [f"  {name:20}  absent; get it with: {how}" for name, how in summary["absent"].items()]
    for bar in summary["bars"]:
        lines.append(f"  {bar['what']:42} {bar['number']:7.2f} {bar['unit']:3} "
                     f"({bar['of_best']:.2f} of the best)  bar {'>=' if bar['more'] else '<='} "
                     f"{bar['bar']}: "
                     f"{'holds' if bar['holds'] else 'MISSED'}")
    return "\n".join(lines)


DOC_HEAD = """# What it costs to look into requests

`make bench-inspect` measures it anew and writes this page. Medians of {rounds} rounds, interleaved, on {processors} processors ({processor}) that client, server and relay
share; Linux {kernel}; load before: {load_before:.1f}{note}.

"""

DOC_TAIL = """
## How it is measured

Two network namespaces with a cable; in one a real nginx with TLS 1.3, in the other client and relay. One client (`bench/inspect_load.c`) for all ways: HTTP/1.1 over
TLS, the server's certificate verified. *Requests*: eight kept connections, answers of 1 KiB, all connections open and warm before the clock runs. *Relay CPU*: user and system
time of all the relay's processes during that, by request; *memory*: their PSS at its end, and *idle* seven seconds later. *Answer p50*: one kept connection, one request after another. *Connections*: a new
connection and one request each, eight at a time; programs inside resume no session. *Download* and *upload*: one connection, bodies of 16 MiB.

- ward's client is in a sandbox and knows of no proxy; mitmproxy's and squid's are beside them and send CONNECT before the clock runs (*connections*: within it).
- *ward* reads each request, decides about method, path, query and headers, and writes it anew; its two processes are `ward-gateway` and `ward-dial`. *With a secret*,
  `ward-keys` looks through everything that leaves for every form of it, and puts it into the header that the grant names; `ward-secrets` is counted, too.
- The bar of a tenth is for looking through what passes; what stands here is more: the process of its own with the bytes copied there, too. By `perf` the scanner itself takes
  about 4 % of the relay's processor time in an upload, and less than 1 % where requests are small.
- mitmproxy runs without an interface and without scripts; squid bumps every connection, caches and logs nothing. Both make a certificate once and keep it.
"""


def document(summary):
    c = dict(summary["conditions"])
    c["note"] = "; " + c["note"] if c["note"] else ""
    out = [DOC_HEAD.format(**c),
           "| | " + " | ".join(f"{heading}, {unit}" for _, heading, unit, _ in COLUMNS) + " |\n",
           "|---|" + "---:|" * len(COLUMNS) + "\n"]
    for name, row in summary["ways"].items():
        bold = "**" if name == "ward" else ""
        out.append(f"| {bold}{name}{bold}: {row['note']} | "
                   + " | ".join(form.format(row[key]) if key in row else ""
                                for key, _, _, form in COLUMNS) + " |\n")
    out += [f"\nNot measured: {name} ({how}).\n" for name, how in summary["absent"].items()]
    out.append("\n| what ward promises | measured | of the best | bar | |\n"
               "|---|---:|---:|---:|---|\n")
    out += [f"| {b['what']} | {b['number']:.2f} {b['unit']} | {b['of_best']:.2f} | at "
            f"{'least' if b['more'] else 'most'} {b['bar']} | "
            f"{'holds' if b['holds'] else '**missed**'} |\n"
            for b in summary["bars"]]
    return "".join(out) + DOC_TAIL


def finish(summary, doc):
    summary["bars"] = bars(summary["ways"])
    print(text(summary))
    if doc:
        (TOP / "docs" / "bench-inspect.md").write_text(wrap(document(summary)))
    sys.exit(1 if any(row["failed"] for row in summary["ways"].values())
             or "ward" not in summary["ways"] else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 5)))
    parser.add_argument("--only", action="append", help="a way by its name; may be repeated")
    parser.add_argument("--note", default="", help="what else is to be said about the conditions")
    parser.add_argument("--doc", action="store_true", help="write docs/bench-inspect.md, too")
    parser.add_argument("--again", action="store_true",
                        help="measure nothing: print (and write) what the last run has found")
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build")).resolve()
    out = build / "bench" / "inspect.json"
    if args.again:
        finish(json.loads(out.read_text()), args.doc)
    if os.geteuid() != 0:
        sys.exit("bench/inspection.py: needs root, for the namespaces with nginx in one of them")
    inspect_peers.enter_namespaces()
    conditions = {"rounds": args.rounds, "processors": os.cpu_count(),
                  "kernel": os.uname().release.split("-")[0], "load_before": os.getloadavg()[0],
                  "processor": (re.search(r"model name\s*:\s*(.*)",
                                          pathlib.Path("/proc/cpuinfo").read_text())
                                or [0, os.uname().machine])[1], "note": args.note}
    with tempfile.TemporaryDirectory(prefix="ward-bench-") as base, inspect_peers.Place(
        base, build) as place:
        summary = summarise(*measure(place, args.rounds, args.only), conditions)
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(summary, indent=1) + "\n")
    finish(summary, args.doc)


if __name__ == "__main__":
    main()
