"""Requests that are looked into, where one side has odd manners: a program that waits for 100
Continue, a server that ends its answer by closing, a program that hangs up. The server is
harness/odd_server.py."""
import json
import os
import sys

from harness import by_turns, timeout
from harness.creds import SECRET, secret_file
from harness.world import HERE, policy, serve, trusted_world

PORT, PLAIN = 9480, 9481

CLIENT = r"""
import json, os, socket, ssl, sys, time
context = ssl.create_default_context()
PORT, PLAIN = 9480, 9481
def connect(port=PORT):
    s = socket.create_connection(("web.test", port), 20)
    if port == PORT:
        s = context.wrap_socket(s, server_hostname="web.test", suppress_ragged_eofs=False)
    s.settimeout(25)
    return s
def say(name, *what):
    print(json.dumps([name, *what]), flush=True)
def request(path, *lines, method="GET", port=PORT, version="1.1"):
    return "\r\n".join([f"{method} {path} HTTP/{version}", f"Host: web.test:{port}", *lines, "",
                        ""]).encode()
def head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(1)
        if not more:
            return got
        got += more
    return got
def whole(path, port=PORT, version="1.1"):
    "The body of an answer: its size, and how it ended."
    s = connect(port)
    got = b""
    try:
        s.sendall(request(path, port=port, version=version))
        while more := s.recv(65536):
            got += more
            if got.endswith(b"\r\n0\r\n\r\n"):
                return got.count(b"w"), "last chunk"
        return got.count(b"w"), "end"
    except (OSError, ssl.SSLError) as error:
        return got.count(b"w"), type(error).__name__
"""


def start(t):
    world = trusted_world(t)
    logs = {}
    for port, mode in ((PORT, []), (PLAIN, ["plain"])):
        logs[port] = os.path.join(world.dir, f"odd{port}")
        serve(t, world, [sys.executable, os.path.join(HERE, "odd_server.py"), world.certificates,
                         str(port), logs[port], *mode], port)
    return world, lambda port=PORT: (t.read(logs[port]) or "").splitlines()


def inside(t, world, script, secret=False, **more):
    ws = t.workspace({"client.py": CLIENT + script})
    path = policy(t, [{"host": "web.test", "ports": [PORT], "mode": "inspect", **more},
                      {"host": "web.test", "ports": [PLAIN], "mode": "http",
                       "methods": ["GET", "PUT"], **more}])
    if secret:
        document = json.load(open(path))
        grants = [{"name": "key", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                   "header": "Authorization: Bearer {}"}]
        document["credentials"] = {"mode": "just_in_time", "grants": grants}
        t.write(os.path.dirname(path), {"ward.yaml": json.dumps(document)})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=120)
    t.equal(r.rc, 0, f"exit code ({r.err}, {r.out})")
    t.check(SECRET not in r.out, "the secret is inside")
    return {line[0]: line[1:] for line in map(json.loads, r.out.splitlines())}, r.report


EXPECT = r"""
for name, size, version in (("small", 10, "1.1"), ("large", 300000, "1.1"), ("old", 10, "1.0")):
    s = connect()
    s.sendall(request("/put", f"Content-Length: {size}", "Expect: 100-continue", method="PUT",
                      version=version))
    first = head(s).split(b"\r\n")[0].decode() if version == "1.1" else ""
    s.sendall(b"x" * size)
    say(name, first, head(s).split(b"\r\n")[0].decode())
    s.close()
"""


@timeout(120)
def test_expect(t):
    """Expect: 100-continue: where the body is held on its way (a grant's host, a body that decides)
    the gateway says to go on; elsewhere the server does."""
    world, log = start(t)
    go_on = {"small": ["HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"],
             "large": ["HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"], "old": ["", "HTTP/1.1 200 OK"]}
    said, _ = inside(t, world, EXPECT, secret=True)
    t.equal(said, go_on, "with a secret")
    t.equal([line for line in log() if "whole" in line], ["/put whole plain"] * 3,
            "what the server was asked: nobody waits for its word")
    said, _ = inside(t, world, EXPECT)
    t.equal(said, go_on, "without one")
    t.equal([line for line in log() if "whole" in line][3:], ["/put whole expected"] * 3,
            "the server has the word")


@by_turns
@timeout(120)
def test_ended_by_closing(t):
    """An answer that ends with its connection: whole if the server said so, an error if it was cut,
    with and without a secret, with and without TLS."""
    world, _ = start(t)
    script = ('for v in ("1.1", "1.0"):\n    for path in ("/whole", "/cut"):\n        say(path + '
              'v, *whole(path, version=v))\n        say("plain " + path + v, *whole(path, '
              'PLAIN, v))\n')
    for secret in (False, True):
        said, _ = inside(t, world, script, secret=secret)
        for version, end in (("1.1", "last chunk"), ("1.0", "end")):
            for where in ("", "plain "):
                t.equal(said[f"{where}/whole{version}"], [5000, end],
                        f"{where}whole, HTTP/{version}, secret {secret}")
                size, how = said[f"{where}/cut{version}"]
                t.check(how != end,
                        f"{where}cut, HTTP/{version}, secret {secret}: {size} bytes, then {how}")


HANG_UP = r"""
for path in ("/wait", "/stream", "/ws"):
    s = connect()
    more = ("Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13") if path == "/ws" else ()
    s.sendall(request(path, *more))
    if path != "/wait":
        head(s)
    time.sleep(0.5)
    s.close()
    # the one slot that there is
    end, opened = time.monotonic() + 8, False
    while not opened and time.monotonic() < end:
        try:
            connect().close()
            opened = True
        except (OSError, ssl.SSLError):
            time.sleep(0.1)
    say(path, opened)
"""


@by_turns
@timeout(120)
def test_hang_up(t):
    """A program that hangs up frees its slot and the server's connection: before the answer, in the
    middle of one, in a websocket."""
    world, log = start(t)
    for secret in (False, True):
        before = len(log())
        said, _ = inside(t, world, HANG_UP, secret=secret, connection_limit=1, websocket=True)
        t.equal(said, {"/wait": [True], "/stream": [True], "/ws": [True]},
                f"room for the next, secret {secret}")
        left = {line.split()[0]: float(line.split()[2]) for line in log()[before:]
                if " left " in line}
        for path in ("/wait", "/stream", "/ws"):
            t.check(path in left and left[path] < 6,
                    f"{path}, secret {secret}: the server saw the end after {left.get(path)} s")


# Its queue is full: whoever connects waits.
STUCK_SERVER = r"""
import socket, time
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind(("0.0.0.0", 9482))
listening.listen(0)
held = []
for i in range(4):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", 9482))
    held.append(s)
time.sleep(1000)
"""

HANG_UP_EARLY = r"""
for name in ("asked", "silent"):
    for closing in ("close", "reset"):
        s = socket.create_connection(("web.test", 9482), 20)
        s.settimeout(2)
        try:
            if name == "asked":
                s = context.wrap_socket(s, server_hostname="web.test")
                s.sendall(request("/wait", port=9482))
        except OSError:
            pass	# the greeting may wait for the server, too
        time.sleep(0.5)
        if closing == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
        end, began, opened = time.monotonic() + 8, time.monotonic(), False
        while not opened and time.monotonic() < end:
            try:
                connect().close()
                opened = True
            except (OSError, ssl.SSLError):
                time.sleep(0.1)
        say(name + " " + closing, opened)
"""


@timeout(120)
def test_hang_up_while_connecting(t):
    """A program that hangs up while its server is still being connected to frees its slot, of which
    there is one."""
    world, _ = start(t)
    serve(t, world, [sys.executable, "-c", STUCK_SERVER], 9482)
    ws = t.workspace({"client.py": CLIENT + HANG_UP_EARLY})
    path = policy(t,
                  [{"host": "web.test", "ports": [PORT, 9482], "mode": "inspect",
                    "connection_limit": 1}])
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.err}, {r.out})")
    said = dict(map(json.loads, r.out.splitlines()))
    t.equal(said, {f"{name} {closing}": True for name in ("asked", "silent")
                   for closing in ("close", "reset")}, "room for the next")


@by_turns
@timeout(120)
def test_half_closed(t):
    """In the clear a program may say that it has no more to say, and still listen; one that has
    gone is found out."""
    world, log = start(t)
    said, _ = inside(t, world, r"""
s = connect(PLAIN)
s.sendall(request("/whole", port=PLAIN))
s.shutdown(socket.SHUT_WR)
got = b""
while more := s.recv(65536):
    got += more
say("half", got.count(b"w"))
s = connect(PLAIN)
s.sendall(request("/wait", port=PLAIN))
time.sleep(0.5)
s.close()
end = time.monotonic() + 20
opened = False
while not opened and time.monotonic() < end:
    try:
        s = connect(PLAIN)
        s.sendall(request("/whole", port=PLAIN))
        opened = s.recv(5) == b"HTTP/"
    except OSError:
        time.sleep(0.3)
say("gone", opened)
""", connection_limit=1)
    t.equal(said, {"half": [5000], "gone": [True]}, "who listens, and who does not")
    t.check(any(line.startswith("/wait left") for line in log(PLAIN)),
            f"the server's connection was ended: {log(PLAIN)}")
