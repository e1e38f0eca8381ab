#!/usr/bin/python3
"""bench/serve.py: what ward serve costs, beside a bare fork and exec in the same run.

In: the build directory (WARD_BUILD, or build/), --rounds, --pool, --clients, --idle, --user. Out: a
table: from the request to create a sandbox to the first byte that `echo` writes in it, through the
HTTP API, from a pool and started cold; `1 + 1` in a warm Python; creates with run and kill a
second; memory of idle sandboxes. Candidates alternate round by round, so that a busy machine is as
busy for each. Exit status 1 when a median is above --bar-ms or --bar-python (0: no bar).
"""
import argparse
import base64
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

OURS = ("wardd", "ward-box", "ward-envd", "ward-init", "ward-guardian")


class Client:
    """One connection that is kept; answers are read as they come."""

    def __init__(self, port, key):
        self.key = key
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = b""

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise OSError("the server has closed the connection")
        self.bytes += got

    def until(self, mark):
        while mark not in self.bytes:
            self.more()
        head, _, self.bytes = self.bytes.partition(mark)
        return head

    def exactly(self, n):
        while len(self.bytes) < n:
            self.more()
        head, self.bytes = self.bytes[:n], self.bytes[n:]
        return head

    def chunks(self):
        while size := int(self.until(b"\r\n"), 16):
            yield self.exactly(size)
            self.exactly(2)
        self.exactly(2)

    def ask(self, method, path, body=b"", **fields):
        """Status and body, the latter as pieces where its length is unknown."""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in fields.items())
        self.socket.sendall(head.encode() + b"\r\n" + body)
        answer = self.until(b"\r\n\r\n").decode().lower()
        length = re.search(r"content-length: (\d+)", answer)
        status = int(answer.split()[1])
        if "transfer-encoding: chunked" in answer:
            return status, self.chunks()
        return status, self.exactly(int(length[1])) if length else b""

    def create(self, template="base"):
        body = json.dumps({"templateID": template, "timeout": 600}).encode()
        status, answer = self.ask("POST", "/v2/sandboxes", body, X_API_KEY=self.key,
                                  Content_Type="application/json")
        if status != 201:
            raise OSError(f"create: {status} {answer!r}")
        return json.loads(answer)

    def inside(self, box, port):
        return {"E2b_Sandbox_Id": box["sandboxID"], "E2b_Sandbox_Port": port,
                "X_Access_Token": box["envdAccessToken"]}

    def echo(self, box):
        """The time of the first byte that echo wrote."""
        body = json.dumps({"process": {"cmd": "/bin/echo", "args": ["hi"]},
                           "stdin": False}).encode()
        status, pieces = self.ask("POST", "/process.Process/Start",
                                  struct.pack(">BI", 0, len(body)) + body,
                                  Content_Type="application/connect+json",
                                  **self.inside(box, 49983))
        first, text = None, b""
        for piece in pieces:
            text += piece
            if first is None and b'"stdout"' in text:
                first = time.perf_counter()
        if status != 200 or base64.b64encode(b"hi\n") not in text:
            raise OSError(f"echo: {status} {text!r}")
        return first

    def python(self, box):
        status, pieces = self.ask("POST", "/execute", b'{"code": "1 + 1"}',
                                  **self.inside(box, 49999))
        text = b"".join(pieces) if not isinstance(pieces, bytes) else pieces
        if status != 200 or b'"text": "2"' not in text:
            raise OSError(f"1 + 1: {status} {text!r}")

    def kill(self, box):
        self.ask("DELETE", f"/sandboxes/{box['sandboxID']}", X_API_KEY=self.key)


class Server:
    def __init__(self, ward, user, *options):
        self.state = tempfile.mkdtemp(prefix="bench-serve-")
        as_user = []
        if user:
            shutil.chown(self.state, user)
            as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        self.process = subprocess.Popen(
            [*as_user, ward, "serve", "--dev", "--listen", "127.0.0.1:0", "--state", self.state,
             "--max", "4000", "--quota", "4000", *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        text = ""
        while not (found := re.search(r"API_URL=\S+:(\d+) .*KEY=(\S+)", text)):
            line = self.process.stdout.readline()
            if not line:
                sys.exit("ward serve does not start")
            text += line
        self.port, self.key = int(found[1]), found[2]

    def client(self):
        return Client(self.port, self.key)

    def wait_full(self, size, template="base"):
        c, end = self.client(), time.monotonic() + 120
        row = f'ward_pool_sandboxes{{template="{template}"}} {size}\n'.encode()
        while row not in c.ask("GET", "/metrics", X_API_KEY=self.key)[1]:
            if time.monotonic() > end:
                sys.exit("the pool does not fill")
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.state, ignore_errors=True)


def bare():
    """From posix_spawn to the first byte of echo, in milliseconds."""
    read, write = os.pipe()
    begin = time.perf_counter()
    pid = os.posix_spawn("/bin/echo", ["echo", "hi"], {},
                         file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.read(read, 1)
    end = time.perf_counter()
    os.waitpid(pid, 0)
    os.close(read)
    os.close(write)
    return 1000 * (end - begin)


def latency(ward, user, rounds):
    """{what: milliseconds of each round}"""
    pooled = Server(ward, user, "--pool", "base=4,code-interpreter-v1=1", "--warm",
                    "code-interpreter-v1=python")
    cold = Server(ward, user)
    times = {"bare fork and exec": [], "from a pool": [], "from a pool: create alone": [],
             "cold": [], "1 + 1 in a warm Python": []}
    pooled.wait_full(1, "code-interpreter-v1")
    time.sleep(2)
    warm = pooled.client()
    box = warm.create("code-interpreter-v1")
    warm.python(box)
    for _ in range(rounds):
        pooled.wait_full(4)
        times["bare fork and exec"].append(bare())
        for server, name in ((pooled, "from a pool"), (cold, "cold")):
            c = server.client()
            begin = time.perf_counter()
            made = c.create()
            middle = time.perf_counter()
            times[name].append(1000 * (c.echo(made) - begin))
            if server is pooled:
                times["from a pool: create alone"].append(1000 * (middle - begin))
            c.kill(made)
        begin = time.perf_counter()
        warm.python(box)
        times["1 + 1 in a warm Python"].append(1000 * (time.perf_counter() - begin))
    pooled.stop()
    cold.stop()
    return times


def work(port, key, count):
    c = Client(port, key)
    for _ in range(count):
        box = c.create()
        c.echo(box)
        c.kill(box)


def rate(server, clients, each):
    """Creates with run and kill a second."""
    workers = [multiprocessing.Process(target=work, args=(server.port, server.key, each))
               for _ in range(clients)]
    begin = time.perf_counter()
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if any(w.exitcode for w in workers):
        sys.exit("a client has failed")
    return clients * each / (time.perf_counter() - begin)


def own_memory():
    """KiB of PSS of ward's processes, by name."""
    out = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name = (path / "cmdline").read_bytes().split(b"\0")[0].decode().split("/")[-1]
            pss = re.search(r"^Pss: +(\d+)", (path / "smaps_rollup").read_text(), re.M)
        except OSError:
            continue
        name = name.lstrip(".")
        if name in OURS and pss:
            out[name] = out.get(name, 0) + int(pss[1])
    return out


def available():
    return int(re.search(r"MemAvailable: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])


def memory(ward, user, idle):
    """KiB a sandbox: PSS by process, and what the machine has less."""
    server = Server(ward, user)
    c = server.client()
    before, machine = own_memory(), available()
    for _ in range(idle):
        c.create()
    time.sleep(3)
    after = own_memory()
    each = {name: (after[name] - before.get(name, 0)) / idle for name in after}
    each["together"] = sum(each.values())
    each["the machine has less"] = (machine - available()) / idle
    server.stop()
    return each


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=100)
    p.add_argument("--pool", type=int, default=200, help="sandboxes of the burst")
    p.add_argument("--clients", type=int, default=4)
    p.add_argument("--idle", type=int, default=100)
    p.add_argument("--user", help="run the server as this user")
    p.add_argument("--bar-ms", type=float, default=0, help="from a pool, median")
    p.add_argument("--bar-python", type=float, default=0, help="1 + 1, median, milliseconds")
    a = p.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    ward = str(pathlib.Path(os.environ.get("WARD_BUILD", root / "build")) / "src/cli/ward")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; milliseconds")
    print(f"{'to the first byte of echo':34}{'min':>8}{'p50':>8}{'p99':>8}{'x bare':>8}")
    medians = {}
    times = latency(ward, a.user, a.rounds)
    base = statistics.median(times["bare fork and exec"])
    for name, values in times.items():
        values.sort()
        medians[name] = statistics.median(values)
        last = values[min(len(values) - 1, int(0.99 * len(values)))]
        print(f"{name:34}{values[0]:8.2f}{medians[name]:8.2f}{last:8.2f}"
              f"{medians[name] / base:8.1f}")
    server = Server(ward, a.user, "--pool", f"base={a.pool}")
    server.wait_full(a.pool)
    print(f"\ncreate, run and kill a second: {rate(server, a.clients, a.pool // a.clients):.0f} "
          f"from a pool of {a.pool}", end="")
    server.stop()
    server = Server(ward, a.user)
    print(f", {rate(server, a.clients, 40 // a.clients):.0f} cold")
    server.stop()
    print(f"\nKiB of each of {a.idle} idle sandboxes")
    for name, kib in memory(ward, a.user, a.idle).items():
        print(f"{name:34}{kib:8.0f}")
    bad = (a.bar_ms and medians["from a pool"] > a.bar_ms) or \
        (a.bar_python and medians["1 + 1 in a warm Python"] > a.bar_python)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
