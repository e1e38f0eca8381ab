#!/usr/bin/python3
"""From an answer to the call going on, and what asking costs.

Needs root: it works in two network namespaces of its own, with a cable between them, and a server
on documentation addresses at the other end. A program in a sandbox connects, the question is
answered with `ward approve`, and the program says when it got the server's first byte. The time of
the answer is that of its event. The second table is a run whose policy has an ask rule that is
never used beside one without, in turns. --json prints both as one object.

usage: bench/approve.py [--build DIR] [--rounds N] [--json]
"""
import argparse
import datetime
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PORT = 5432
CLIENT = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], 5432))
s.sendall(b"x")
s.recv(1)
print(time.clock_gettime(time.CLOCK_REALTIME), flush=True)
"""


def address(i):
    return f"198.51.100.{i + 1}"


def serve():
    def one(connection):
        with connection:
            if connection.recv(1):
                connection.sendall(b"y")
    listener = socket.create_server(("0.0.0.0", PORT), backlog=64)
    print("ready", flush=True)
    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


class Bench:
    def __init__(self, ward, place, rounds):
        self.ward, self.place, self.rounds = ward, place, rounds
        self.env = {**os.environ, "WARD_STATE_DIR": str(place / "state"),
                    "WARD_RUNTIME_DIR": str(place / "run")}
        for name in ("state", "run", "ws"):
            (place / name).mkdir(mode=0o700)
        (place / "ws" / "client.py").write_text(CLIENT)

    def run(self, *words):
        done = subprocess.run([self.ward, *words], env=self.env, cwd=self.place / "ws",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"ward {' '.join(words)}: {done.stderr}")
        return done.stdout

    def policy(self, ask):
        rules = [{"host": "198.51.100.0/24", "ports": [PORT], "mode": "tcp", "ask": ask}]
        path = self.place / f"policy-{ask}.json"
        path.write_text(json.dumps({"version": 1, "network": {
            "mode": "restricted", "egress_allowlist": rules}, "approvals": {"mode": "ask"}}))
        return str(path)

    def question(self):
        for _ in range(1000):
            found = json.loads(self.run("approve", "--json"))["questions"]
            if found:
                return found[0]
            time.sleep(0.01)
        raise SystemExit("nothing is asked")

    def answers(self, how, first):
        """Milliseconds of each round."""
        box = self.run("run", "-d", "-p", self.policy(True)).strip()
        took = []
        for i in range(self.rounds):
            with subprocess.Popen([self.ward, "exec", box, "/usr/bin/python3", "client.py",
                                   address(first + i)], env=self.env, cwd=self.place / "ws",
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as p:
                q = self.question()
                self.run("approve", q["id"], how)
                got = float(p.communicate(timeout=30)[0])
            lines = self.run("audit", "show", box, "--json", "--kind", "approval").splitlines()
            last = [e for e in map(json.loads, lines) if e["kind"] == "approval.answer"][-1]
            at = datetime.datetime.fromisoformat(last["time"].replace("Z", "+00:00"))
            took.append(1000 * (got - at.timestamp()))
        self.end()
        return took

    def end(self):
        subprocess.run([self.ward, "kill", "--all"], env=self.env, cwd=self.place / "ws",
                       stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def starts(self):
        """Milliseconds of a run of true, by policy, in turns."""
        took = {False: [], True: []}
        for _ in range(self.rounds):
            for ask in took:
                began = time.monotonic()
                self.run("run", "-p", self.policy(ask), "--", "true")
                took[ask].append(1000 * (time.monotonic() - began))
        return took


def numbers(took):
    return {"least_ms": round(min(took), 2), "median_ms": round(statistics.median(took), 2),
            "most_ms": round(max(took), 2)}


def cable(pid, count):
    """From here to the server's namespace."""
    def ip(*words, inside=False):
        subprocess.run([*(["nsenter", "-t", str(pid), "-n"] if inside else []), "ip", *words],
                       check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", str(pid))
    ip("addr", "add", "192.0.2.1/24", "dev", "here")
    ip("link", "set", "here", "up")
    ip("addr", "add", "192.0.2.2/24", "dev", "there", inside=True)
    ip("link", "set", "there", "up", inside=True)
    for i in range(count):
        ip("addr", "add", f"{address(i)}/32", "dev", "there", inside=True)
    ip("route", "add", "198.51.100.0/24", "via", "192.0.2.2")


def measure(o):
    """What main() prints."""
    with tempfile.TemporaryDirectory() as place:
        b = Bench(os.path.join(o.build, "src/cli/ward"), pathlib.Path(place), o.rounds)
        try:
            found = {how[2:]: numbers(b.answers(how, i * o.rounds))
                     for i, how in enumerate(("--once", "--run"))}
            found.update({f"start_{'with' if ask else 'without'}_ask": numbers(took)
                          for ask, took in b.starts().items()})
            return found
        finally:
            b.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if not 1 <= o.rounds <= 100:
        parser.error("--rounds: from 1 to 100")
    if os.geteuid() != 0:
        raise SystemExit("this needs root: it makes a network namespace")
    if o.serve:
        serve()
    if not o.inside:
        os.execvp("unshare", ["unshare", "-n", "-m", sys.executable, __file__, *sys.argv[1:],
                              "--inside"])
    with subprocess.Popen(["unshare", "-n", sys.executable, __file__, "--serve"],
                          stdout=subprocess.PIPE) as server:
        try:
            server.stdout.readline()
            cable(server.pid, 2 * o.rounds)
            found = measure(o)
        finally:
            server.kill()
    if o.json:
        print(json.dumps(found))
        return
    print(f"{'':20}{'least':>10}{'median':>10}{'most':>10}   ms of {o.rounds} rounds")
    for name, row in found.items():
        print(f"{name:20}" + "".join(f"{value:10.2f}" for value in row.values()))


if __name__ == "__main__":
    main()
