#!/usr/bin/python3
"""bench/mcp.py: what `ward mcp serve` costs: tools/list, and tools/call of `true` in a fresh
sandbox, on standard input and output and over HTTP, beside `ward run -- true`.

In: the build directory (--build, or build/). Out: a table of medians with the bar of each figure;
exit status 1 when a bar is missed, on a machine that is otherwise idle. --json: one object. The
kinds take turns, so that what else the machine does meets all of them.

usage: bench/mcp.py [--build DIR] [--rounds N] [--json]
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BARS = {"tools/list": 5, "tools/call": 6}  # milliseconds, the median on an idle machine
TOOLS = {"version": 1, "tools": {"true": {
    "description": "Does nothing.", "run": ["true"], "scope": {},
    "nature": {"private_data": False, "untrusted_content": False, "communicates_outside": False,
               "destructive": False}}}}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}}


class Lines:
    """A client on standard input and output."""

    def __init__(self, ward, env, place):
        self.id = 0
        self.process = subprocess.Popen([ward, "mcp", "serve", "-f", "tools.yaml"], cwd=place,
                                        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", INITIALIZE)

    def ask(self, method, params):
        self.id += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method,
                                             "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Http:
    """A client over HTTP, on one connection."""

    def __init__(self, ward, env, place):
        self.id = 0
        self.process = subprocess.Popen([ward, "mcp", "serve", "-f", "tools.yaml", "--http", "0",
                                         "--json"], cwd=place, env=env, stdout=subprocess.PIPE)
        said = json.loads(self.process.stdout.readline())
        self.connection = http.client.HTTPConnection(said["url"].split("/")[2])
        self.headers = {"Authorization": f"Bearer {said['token']}",
                        "Content-Type": "application/json",
                        "Accept": "application/json, text/event-stream"}
        self.ask("initialize", INITIALIZE)

    def ask(self, method, params):
        self.id += 1
        self.connection.request("POST", "/mcp", json.dumps({
            "jsonrpc": "2.0", "id": self.id, "method": method, "params": params}), self.headers)
        response = self.connection.getresponse()
        if session := response.headers["mcp-session-id"]:
            self.headers["Mcp-Session-Id"] = session
        return json.loads(response.read())["result"]

    def end(self):
        self.process.terminate()
        self.process.wait()


def call(client):
    if client.ask("tools/call", {"name": "true"})["isError"]:
        raise SystemExit("the call failed")


def measure(ward, place, env, rounds):
    clients = {"stdio": Lines(ward, env, place), "http": Http(ward, env, place)}
    kinds = {"ward run -- true": lambda: subprocess.run([ward, "run", "--", "true"], cwd=place,
                                                        env=env, check=True)}
    for name, client in clients.items():
        kinds[f"tools/list {name}"] = lambda c=client: c.ask("tools/list", {})
        kinds[f"tools/call {name}"] = lambda c=client: call(c)
    took = {name: [] for name in kinds}
    for i in range(rounds + 3):
        for name, run in kinds.items():
            began = time.perf_counter()
            run()
            if i >= 3:
                took[name].append((time.perf_counter() - began) * 1000)
    for client in clients.values():
        client.end()
    return {name: {"p50": statistics.median(times), "least": min(times)}
            for name, times in took.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ward = os.path.join(options.build, "src/cli/ward")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        env = {**os.environ, "WARD_STATE_DIR": str(place / "state"),
               "WARD_RUNTIME_DIR": str(place / "run")}
        for part in ("state", "run", "ws"):
            (place / part).mkdir(mode=0o700)
        (place / "ws" / "tools.yaml").write_text(json.dumps(TOOLS))
        found = measure(ward, place / "ws", env, options.rounds)
    if options.json:
        print(json.dumps(found))
    missed = 0
    for kind, times in found.items():
        bar = BARS.get(kind.split()[0])
        bad = bar is not None and times["p50"] > bar
        missed += bad
        if not options.json:
            print(f"{kind:18} {times['p50']:7.2f} ms (least {times['least']:.2f})"
                  + (f"  at most {bar}: {'missed' if bad else 'met'}" if bar else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
