"""Programs that mean harm to what looks into requests: each flood is held while a plain request
beside it is answered, and the gateway's memory stays bounded."""
import json
import os
import shutil
import threading
import time

from harness import slow, timeout
from harness.creds import below, secret_file
from harness.world import HERE, policy, serve, trusted_world

FLOOD = r"""
import gzip, json, socket, ssl, struct, sys, time, urllib.request
SCALE = int(sys.argv[1])
PORT = 9445
plain = ssl.create_default_context()
def context():
    c = ssl.create_default_context()
    c.set_alpn_protocols(["h2"])
    return c
h2 = context()
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I",
                                                                              stream) + payload
def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
def head(path=b"/sum", post=False):
    return (b"\x83" if post else b"\x82") + b"\x87" + literal(b":path",
                                                              path) + literal(b":authority",
                                                                              b"web.test:9445")
def connect(c=h2):
    s = c.wrap_socket(socket.create_connection(("web.test", PORT), 20), server_hostname="web.test")
    s.settimeout(20)
    if c is h2:
        assert s.selected_alpn_protocol() == "h2"
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
    return s
def probe():
    began = time.monotonic()
    urllib.request.urlopen(f"https://web.test:{PORT}/open/probe", timeout=30, context=plain).read()
    return time.monotonic() - began
def push(s, parts):
    "Sends; True: the other side ended it."
    try:
        for part in parts:
            s.sendall(part)
        return False
    except OSError:
        return True
def ended(s):
    try:
        while s.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True
def say(name, what):
    print(json.dumps([name, what, round(probe(), 2)]), flush=True)

def many(n, make):
    out = []
    for _ in range(n):
        out.append(make())
    return out

# streams that are opened and taken back at once
sockets = many(4 * SCALE, connect)
over = [push(s, (frame(1, 5, 2 * i + 1, head(b"/open/x")) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08")
                 for i in range(3000))) or ended(s) for s in sockets]
say("rapid reset", all(over))
# a head that never ends
sockets = many(4 * SCALE, connect)
over = [push(s,
             (frame(1, 1, 1, head()) if i == 0 else frame(9, 0, 1, literal(b"x%d" % i, b"y" * 100))
              for i in range(5000))) or ended(s) for s in sockets]
say("continuation", all(over))
# empty frames of a head
sockets = many(2, connect)
over = [push(s, [frame(1, 1, 1, head())] + [frame(9, 0, 1) * 1000] * 20) or ended(s)
        for s in sockets]
say("empty continuation", all(over))
# one byte that means four thousand
bomb = b"\x40\x04bomb\x7f\x81\x1e" + b"b" * 4000
sockets = many(10 * SCALE, connect)
for s in sockets:
    push(s, [frame(1, 5, 1, head() + bomb + b"\xbe" * 8000)])
say("bomb", len(sockets))
# settings and pings that want an answer each, unread
sockets = many(2, connect)
over = [push(s, (frame(6, 0, 0, b"12345678") * 500 + frame(4, 0, 0) * 500 for _ in range(100)))
        for s in sockets]
say("pings", len(sockets))
# a thousand streams on one connection, whatever the other side says it takes
s = connect()
push(s, [b"".join(frame(1, 5, 2 * i + 1, head(b"/size?n=60000")) for i in range(1000))])
got, want, at = b"", {"answers": set(), "refused": set()}, 0
s.settimeout(20)
try:
    while len(want["answers"] | want["refused"]) < 1000:
        more = s.recv(1 << 16)
        if not more:
            break
        got += more
        while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
            n, kind, flags, stream = int.from_bytes(got[:3],
                                                    "big"), got[3], got[4], int.from_bytes(
                                                        got[5:9], "big")
            if kind == 3:
                want["refused"].add(stream)
            elif kind == 0 and flags & 1:
                want["answers"].add(stream)
            if kind == 0 and n:
                s.sendall(frame(8, 0, 0, struct.pack(">I", n)))
            got = got[9 + n:]
except OSError as error:
    print(json.dumps(["error", repr(error), len(want["answers"])]))
say("thousand streams", [len(want["answers"]) >= 100, len(want["answers"]) + len(want["refused"])])
# streams beyond what is taken: each refusal is a frame, and nobody reads them
s = connect()
over = push(s, (b"".join(frame(1, 5, 2 * i + 1, b"\x82") for i in range(k, k + 1000))
                for k in range(0, 1000000, 1000)))
say("refused, unread", over)
# streams whose answers nobody reads: windows are never opened
sockets = many(5 * SCALE, connect)
for s in sockets:
    push(s,
         [frame(8, 0, 0, struct.pack(">I", 1 << 30))
          + b"".join(frame(1, 5, 2 * i + 1, head(b"/size?n=10000000")) for i in range(100))])
time.sleep(0.5)
say("unread", len(sockets))
# bodies that take for ever, in both versions
sockets += many(20 * SCALE, lambda: connect(plain))
for s in sockets[5 * SCALE:]:
    push(s, [b"POST /sum HTTP/1.1\r\nHost: web.test:9445\r\nContent-Length: 1000000\r\n\r\n"
             + b"x" * 1000])
slow = many(2 * SCALE, connect)
for s in slow:
    push(s, [b"".join(frame(1, 4, 2 * i + 1, head(post=True)) + frame(0, 0, 2 * i + 1, b"x" * 500)
                      for i in range(100))])
say("slow bodies", len(sockets) + len(slow))
# TLS that begins and does not go on
def half():
    s = socket.create_connection(("web.test", PORT), 20)
    s.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 100)
    return s
loris = many(50 * SCALE, half)
say("half a greeting", len(loris))
# chunks of one byte
s = connect(plain)
push(s, [b"POST /sum HTTP/1.1\r\nHost: web.test:9445\r\nTransfer-Encoding: chunked\r\n\r\n"]
     + [b"1\r\nx\r\n" * 1000] * 100)
push(s, [b"0\r\n\r\n"])
got = b""
while b"100000 " not in got:
    got += s.recv(65536)
say("small chunks", True)
"""


def watch(process, peaks, stop):
    """Notes the memory (PSS) of each of the gateway's processes that read what comes from
    inside."""
    while not stop.is_set():
        for pid, name in below(process.pid):
            if name in ("ward-gateway", "ward-keys"):
                try:
                    with open(f"/proc/{pid}/smaps_rollup") as rollup:
                        peaks.setdefault(name,
                                         []).append(next(int(line.split()[1]) * 1024
                                                         for line in rollup
                                                         if line.startswith("Pss:")))
                except (OSError, StopIteration):
                    pass
        time.sleep(0.1)


def flood(t, scale, most, grants=()):
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    ws = t.workspace({"flood.py": FLOOD})
    rules = [{"host": "web.test", "ports": [9445], "methods": ["GET", "POST"]}]
    path = policy(t, rules)
    document = json.load(open(path))
    if grants:
        document["credentials"] = {"mode": "just_in_time", "grants": list(grants)}
    with open(path, "w") as f:
        json.dump(document, f)
    argv = t.ward_argv("run", "-p", path, "--", "/usr/bin/python3", "flood.py", str(scale),
                       wrap=world.wrap(ws))
    process = t.popen(argv, root=True)
    peaks, stop = {}, threading.Event()
    with t.root():
        watcher = threading.Thread(target=watch, args=(process, peaks, stop))
        watcher.start()
        out, err = process.communicate(timeout=280)
        stop.set()
        watcher.join()
    t.equal(process.returncode, 0, f"exit code ({out} {err})")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    got = {name: what for name, what, _ in lines}
    for name, value in {"rapid reset": True, "continuation": True, "empty continuation": True,
                        "thousand streams": [True, 1000], "refused, unread": True,
                        "small chunks": True}.items():
        t.equal(got.get(name), value, f"{name} ({out} {err})")
    t.equal(len(lines), 11, f"floods ({out})")
    t.check(all(seconds < 10 for _, _, seconds in lines), f"a request beside them: {lines}")
    t.equal(set(peaks), {"ward-gateway", "ward-keys"} if grants else {"ward-gateway"},
            "who was seen")
    for name, sizes in peaks.items():
        t.say(f"{name}: at most {max(sizes) >> 10} KiB in {len(sizes)} looks; {lines}")
        t.check(max(sizes) < most or "asan" in t.ward_path,
                f"{name} has grown to {max(sizes) >> 20} MiB")


@timeout(120)
def test_floods(t):
    """Rapid reset, heads without end, bombs, a thousand streams, answers that nobody reads, bodies
    and greetings that never end."""
    flood(t, 1, 64 << 20)


@timeout(120)
def test_floods_with_a_grant(t):
    """The same at a host that a secret goes to: ward-keys reads all that is let through, and stays
    as small."""
    flood(t, 1, 64 << 20,
          [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
            "as": "API_KEY"}])


@slow
@timeout(300)
def test_floods_many(t):
    """The same, with more of each."""
    flood(t, 5, 200 << 20)
