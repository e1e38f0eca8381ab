#!/usr/bin/python3
"""Writes docs/bench-net.md and docs/bench-net.svg from build/bench/net.json: the page says what was
measured, never what was hoped for."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import net_report  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from wrap_markdown import wrap  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent

HEAD = """# What a connection through the gateway costs

![bars: download, upload, first byte, connections and relay CPU of ward and of other relays](bench-net.svg)

`make bench-net` measures it anew and `bench/net_doc.py` makes this page of the result. Medians; `x` is the ratio to the direct way, in the same run.

{where}

"""

TAIL = """
## How it is measured

One program (`bench/net_load.c`) is client and server. *direct* connects over the host's loopback. In each round every way has its turn at each of the
measurements, so that what else the machine does hits all alike; slow ways get a smaller load. First byte: the median of connections made one after
another, from `connect()` to the first byte of the answer. Connections: eight threads that connect, send a byte, receive one and close. Download and upload:
one connection, 1 GiB. Relay CPU: user and system time of all the relay's processes (for ward both of the gateway's) over both transfers.

- ward reaches the server as a host service, in mode `tcp`. Its name is resolved inside, by ward's own resolver, before the clock runs; nothing is asked of a
  DNS server, and the bytes are not looked at. A rule for TLS or HTTP reads the first packet in addition, and a name of the allow-list is looked up once per its time to live.
- ward's journal is on, as it is by default: each connection is two events in it, which costs about 3 % of the processor time of a short one.
- *ward, no nf_tables* is what a kernel without them gets: a listening socket for each port instead of TPROXY.
- haproxy, squid and tinyproxy run on the host, beside the client: no sandbox, no namespace, no rules. squid, tinyproxy and srt are spoken to with CONNECT, which
  is one more round trip before the first byte. tinyproxy's log level keeps it from syncing its log after every line.
- pasta and slirp4netns carry a whole network namespace: *tap* through its router, *spliced* by pasta's short cut for the namespace's own loopback. No rules either.
- srt is the sandbox runtime as npm ships it: bubblewrap, two socat that fork for each connection, a proxy in Node.
- All sockets use the host's congestion control, which the client reports.

## What bounds it

A relay is two TCP connections: a short connection takes 10 segments on the direct way and 18.6 through ward (its last bytes and the end share one), and all
parties share the same processors. haproxy, which is one process without rules or sandbox, shows what that alone costs. About 15 % of the processor time
of a short connection is ward's own: the hop to the process that may connect and back, epoll, and the other calls that are not TCP's.
"""


def table(summary):
    lines = ["| | " + " | ".join(f"{heading}, {unit}"
                                 for _, heading, unit, _, _ in net_report.COLUMNS) + " |",
             "|---|" + "---:|" * len(net_report.COLUMNS)]
    for name, row in summary["ways"].items():
        cells = []
        for key, _, _, _, form in net_report.COLUMNS:
            times = f" ({row[f'{key}_x']:.2f}x)" if f"{key}_x" in row and name != "direct" else ""
            cells.append(form.format(row[key]) + times if key in row else "")
        mark = "**" if name == "ward" else ""
        lines.append(f"| {mark}{name}{mark}: {row['note']} | " + " | ".join(cells) + " |")
    lines += [f"| {name}: absent | " + " | " * (len(net_report.COLUMNS) - 1) + " |"
              for name in summary["absent"]]
    return "\n".join(lines) + "\n"


def promises(summary):
    lines = ["", "| what ward promises | measured | of the best | bar | |",
             "|---|---:|---:|---:|---|"]
    for bar in summary["bars"]:
        best = f"{bar['of_best']:g}" if "of_best" in bar else ""
        goal = f", goal {bar['goal']:g}" if bar["goal"] else ""
        lines.append(f"| {bar['what']} | {bar['number']:g} {bar['unit']} | {best} | "
                     f"{'at least' if bar['more'] else 'at most'} {bar['bar']:g}{goal} | "
                     f"{'holds' if bar['holds'] else '**missed**'} |")
    return "\n".join(lines) + "\n"


def failures(summary):
    rows = [f"- {name}: {why}" for name, row in summary["ways"].items() for why in row["failed"]]
    return "\nDid not come to an end, and is not counted:\n\n" + "\n".join(
        rows) + "\n" if rows else ""


def page(summary):
    return HEAD.format(where=net_report.where(summary)) + table(summary) + failures(
        summary) + promises(summary) + TAIL


def main():
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build"))
    summary = json.loads((build / "bench/net.json").read_text())
    (TOP / "docs/bench-net.md").write_text(wrap(page(summary)))
    (TOP / "docs/bench-net.svg").write_text(net_report.svg(summary))


if __name__ == "__main__":
    main()
