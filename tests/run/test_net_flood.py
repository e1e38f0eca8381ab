"""Floods from inside: connections that idle, that begin a greeting and never end it, that do not
read. The gateway stays small and goes on serving; who asks for more than there is gets refused, and
what was open stays open.

`make test` has a small dose of each; the full one runs with --slow.
"""
import os
import re
import subprocess
import sys

from harness import serial, slow, timeout, users
from harness.world import World, policy, serve

RULES = ["web.test:443", "web.test:80", "db.test:9000", "db.test:5432"]

# a server that holds thousands: echoes, and sends without end to who says FLOOD
SERVER = r"""
import resource, select, socket
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 9000))
s.listen(4096)
p = select.epoll()
p.register(s, select.EPOLLIN)
held, floods, block = {}, set(), bytes(65536)
while True:
    for fd, what in p.poll():
        if fd == s.fileno():
            c, _ = s.accept()
            c.setblocking(False)
            held[c.fileno()] = c
            p.register(c, select.EPOLLIN)
            continue
        try:
            if what & select.EPOLLOUT:
                held[fd].send(block)
                continue
            data = held[fd].recv(65536)
            if not data:
                raise ConnectionError
            if data == b"FLOOD":
                p.modify(fd, select.EPOLLIN | select.EPOLLOUT)
            else:
                held[fd].send(data)
        except BlockingIOError:
            pass
        except OSError:
            held.pop(fd).close()
"""

# lines in, one line out each: KIND COUNT SIZE opens and keeps connections; probe; drop; ask
INSIDE = r"""
import os, resource, socket, sys, time
EACH = 3000
resource.setrlimit(resource.RLIMIT_NOFILE, [resource.getrlimit(resource.RLIMIT_NOFILE)[1]] * 2)
def echo(host="db.test", port=5432):
    began = time.monotonic()
    with socket.create_connection((host, port), 30) as s:
        s.sendall(b"hello")
        assert s.recv(5) == b"hello"
    with socket.create_connection(("web.test", 80), 30) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in s.recv(4096)
    return time.monotonic() - began
def hello(n):
    "The beginning of a ClientHello that never ends, of n bytes."
    body = b"\x01\x00\xf0\x00\x03\x03" + bytes(
        32) + b"\0" + b"\0\x02\x13\x01\x01\0" + b"\xef\xd5\x33\x33\xef\xd1" + bytes(n)
    out = b""
    while body:
        out += b"\x16\x03\x01" + len(body[:16000]).to_bytes(2, "big") + body[:16000]
        body = body[16000:]
    return out[:n]
FIRST = {"idle": lambda n: b"x", "hello": hello, "head": lambda n: b"GET / HTTP/1.1\r\n"
         b"Host: web.test\r\n" + (b"X-Y: " + b"y" * 500 + b"\r\n") * (n // 507),
         "silent": lambda n: b"", "mute": lambda n: b"FLOOD"}
WHERE = {"idle": ("db.test", 9000), "mute": ("db.test", 9000), "hello": ("web.test", 443),
         "head": ("web.test", 80), "silent": ("web.test", 80)}
def hold(kind, count, size, out):
    held, open_now = [], 0
    for i in range(count):
        try:
            s = socket.create_connection(WHERE[kind], 30)
            if kind == "mute":
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.settimeout(0.2 if kind in ("hello", "head") else 30)
            held.append(s)
            s.sendall(FIRST[kind](size))
            if kind == "idle" and s.recv(1) != b"x":
                continue
            open_now += 1
        except OSError:
            pass
    os.write(out, b"%d\n" % open_now)
    while os.read(0, 1):	# until it is told to ask each of them again, or to end
        alive = 0
        for s in held:
            try:
                s.sendall(b"z")
                alive += s.recv(1) == b"z"
            except OSError:
                pass
        os.write(out, b"%d\n" % alive)
    os._exit(0)
workers = []
def start(kind, count, size):
    while count > 0:
        down, up = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.dup2(down[0], 0)
            os.close(down[1])
            for _, to, _ in workers:
                os.close(to)
            hold(kind, min(count, EACH), size, up[1])
        os.close(down[0]), os.close(up[1])
        workers.append((kind, down[1], os.fdopen(up[0])))
        count -= EACH
for line in sys.stdin:
    word, *more = line.split()
    if word == "probe":
        try:
            print("%.3f" % echo(), flush=True)
        except (OSError, AssertionError) as error:
            print(repr(error), flush=True)
    elif word == "ask":	# the idle ones: is each still there
        asked = [w for w in workers if w[0] == "idle"]
        for _, to, _ in asked:
            os.write(to, b"?")
        print(sum(int(w[2].readline()) for w in asked), flush=True)
    elif word == "drop":
        for _, to, _ in workers:
            os.close(to)
        workers.clear()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        print("dropped", flush=True)
    else:
        before = len(workers)
        start(word, int(more[0]), int(more[1]))
        print(sum(int(w[2].readline()) for w in workers[before:]), flush=True)
"""


class Flood:
    """A run that does what it is told, and the processes of its gateway."""

    def __init__(self, t, hard_limit=None, rules=RULES, **network):
        self.t = t
        self.world = World(t)
        serve(t, self.world, [sys.executable, "-c", SERVER], 9000)
        ws = t.workspace({"inside.py": INSIDE})
        limit = ["prlimit", f"--nofile={hard_limit}:{hard_limit}"] if hard_limit else []
        argv = [*self.world.wrap(ws), *limit, *users.setpriv(t.person), t.ward_path, "run", "-p",
                policy(t, rules, **network), "--report",
                os.path.join(ws, "report.json"), "--", "/usr/bin/python3", "inside.py"]
        self.process = t.popen(argv, root=True, stdin=subprocess.PIPE)
        t.check(self.say("probe").replace(".", "").isdigit(), "the first request")
        self.ws = ws

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().strip()
        if not answer:
            self.t.fail(f"the run has ended: {self.process.stderr.read().decode()}")
        self.t.say(f"{line}: {answer}")
        return answer

    def served(self, what, seconds=5):
        """A new request is answered, promptly."""
        answer = self.say("probe")
        self.t.check(answer.replace(".", "").isdigit() and float(answer) < seconds,
                     f"a new request beside {what}: {answer}")

    def gateway(self):
        with self.t.root(), open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return next(int(p) for p in f.read().split()
                        if open(f"/proc/{p}/comm").read().strip() == "ward-gateway")

    def memory(self):
        """Of front, in bytes."""
        with self.t.root(), open(f"/proc/{self.gateway()}/smaps_rollup") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Pss:"))

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        r = self.t.finish(self.process, ["ward run"])
        self.t.equal(r.rc, 0, f"exit code ({r.err})")
        return self.t.read(self.ws, "report.json")


    def waiting(self):
        """Bytes of the host's kernel that hold what came from servers and was not read yet; the
        first few may have more."""
        text = self.t.run("nsenter", "-t", str(self.world.home), "-n", "ss", "-tmnH", root=True).out
        return sum(sorted(int(n) for n in re.findall(r"skmem:\(r(\d+)", text))[:-20])


def idle(t, count):
    flood = Flood(t)
    before = flood.memory()
    t.equal(flood.say(f"idle {count} 0"), str(count), "idle connections")
    each = (flood.memory() - before) / count
    t.say(f"{each:.0f} bytes of the gateway's for each")
    t.check(each <= 4096 or "asan" in t.ward_path, f"{each:.0f} bytes for each idle connection")
    flood.served(f"{count} idle ones")
    t.equal(flood.say("ask"), str(count), "idle connections that are still there")
    flood.say("drop")
    flood.served("none")
    flood.end()


@timeout(120)
def test_idle(t):
    """Idle connections cost little and nobody anything else."""
    idle(t, 1000)


@slow
@serial
@timeout(300)
def test_idle_8000(t):
    """8,000 of them."""
    idle(t, 8000)


def loris(t, count, size, most, silent=None):
    """Many that begin and never end; small ones and large ones."""
    flood = Flood(t)
    for kind in ("silent", "hello", "head"):
        flood.say(f"{kind} {silent or count if kind == 'silent' else count} {size}")
        flood.served(f"{count} of kind {kind}")
    used = flood.memory()
    t.say(f"{used >> 20} MiB")
    t.check(used < most or "asan" in t.ward_path, f"the gateway has grown to {used >> 20} MiB")
    flood.end()


@timeout(120)
def test_slow_loris(t):
    loris(t, 400, 30000, 64 << 20)


@slow
@serial
@timeout(300)
def test_slow_loris_3000(t):
    """9,000 connections, most of which begin with up to 60 KB each: more than the gateway's
    memory."""
    loris(t, 4300, 60000, 100 << 20, 500)


def mute(t, count):
    """Clients that do not read while the server sends: what waits for them is bounded, others are
    served."""
    flood = Flood(t)
    t.equal(flood.say(f"mute {count} 0"), str(count), "connections")
    flood.served(f"{count} that do not read")
    used = flood.memory()
    waiting = flood.waiting()
    t.say(f"{used >> 10} KiB, {used // count} bytes each; {waiting >> 20} MiB wait in the kernel")
    t.check(used < (4 << 20) + (8 << 10) * count + (32 << 20) or "asan" in t.ward_path,
            f"the gateway has grown to {used >> 20} MiB")
    t.check(waiting < (400 << 10) * count,
            f"{waiting >> 20} MiB of the host's memory wait to be read")
    flood.end()


@timeout(120)
def test_mute(t):
    mute(t, 200)


@slow
@serial
@timeout(300)
def test_mute_5000(t):
    mute(t, 5000)


@timeout(120)
def test_out_of_descriptors(t):
    """There are as many connections as descriptors: a new one is refused at once, the old ones
    live, and there is room again later."""
    flood = Flood(t, hard_limit=1000)
    opened = int(flood.say("idle 600 0"))
    t.check(300 <= opened < 500, f"{opened} connections with 1,000 descriptors")
    answer = flood.say("probe")
    t.check("Reset" in answer or "Refused" in answer, f"one more: {answer}")
    t.equal(flood.say("ask"), str(opened), "old connections that are still there")
    flood.say("drop")
    t.wait_until(lambda: "Error" not in flood.say("probe"), 20, "there is no room again")
    t.contains(flood.end(), "reached its maximum of connections", "report")


@timeout(120)
def test_silent_give_way(t):
    """Those that have not said what they want yet give way to new ones."""
    flood = Flood(t, hard_limit=1000)
    flood.say("silent 1000 0")
    flood.served("as many silent ones as there are descriptors")
    flood.end()
