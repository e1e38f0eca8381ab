"""Bodies and connections of requests that are looked into: whatever HTTP has, as it comes and in bounded memory."""
import json
import os
import shutil

from harness import timeout
from harness.world import HERE, policy, serve, trusted_world

CLIENT = r"""
import hashlib, http.client, json, os, socket, ssl, sys, threading
context = ssl.create_default_context()
PORT = 9444
def connect():
    s = context.wrap_socket(socket.create_connection(("web.test", PORT), 20), server_hostname="web.test")
    s.settimeout(20)
    return s
def say(what, value):
    print(json.dumps([what, value]), flush=True)
def head(s):
    got = b""
    while b"\r\n\r\n" not in got:
        more = s.recv(65536)
        assert more, got
        got += more
    return got
H = b" HTTP/1.1\r\nHost: web.test:9444\r\n"
# one connection, many requests
c = http.client.HTTPSConnection("web.test", PORT, timeout=20, context=context)
for i in range(3):
    c.request("GET", "/plain", headers={"X-Hop": "1", "Connection": "keep-alive, X-Hop", "X-Stays": "2"})
    seen = json.loads(c.getresponse().read())
say("kept", [seen["connections"], "x-hop" in seen["headers"], seen["headers"]["x-stays"], seen["headers"]["host"]])
# another connection of the program, the same of ours
c2 = http.client.HTTPSConnection("web.test", PORT, timeout=20, context=context)
c2.request("GET", "/plain")
say("pooled", json.loads(c2.getresponse().read())["connections"])
s = connect()
s.sendall(b"GET /trailers" + H + b"TE: trailers\r\nConnection: close\r\n\r\n")
got = b""
while more := s.recv(65536):
    got += more
say("trailers", [b"\r\n0\r\nX-Sum: checked\r\n\r\n" in got, b"Trailer: " in got])
# a body in chunks, and one that waits for the server's word
s = connect()
s.sendall(b"POST /sum" + H + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
first = head(s)
s.sendall(b"5\r\nhello\r\n0\r\n\r\n")
say("continue", [first.split(b"\r\n")[0].decode(), head(s).split(b"\r\n\r\n", 1)[1].decode().replace("\r\n", " ")])
# as it comes: each piece is answered before the next is sent
s = connect()
s.sendall(b"POST /echo" + H + b"Transfer-Encoding: chunked\r\n\r\n4\r\nping\r\n")
got = head(s)
while b"ping" not in got:
    got += s.recv(65536)
s.sendall(b"4\r\npong\r\n0\r\n\r\n")
while b"pong" not in got:
    got += s.recv(65536)
say("echo", True)
s = connect()
s.sendall(b"GET /events" + H + b"\r\n")
got = head(s)
while b"first" not in got:
    got += s.recv(65536)
c2.request("GET", "/go")
c2.getresponse().read()
while b"second" not in got:
    got += s.recv(65536)
say("events", True)
# a websocket
s = connect()
s.sendall(b"GET /chat" + H + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n")
got = head(s)
while b"hello" not in got:
    got += s.recv(100)
s.sendall(b"\x00raw bytes\xff")
back = b""
while len(back) < 11:
    back += s.recv(100)
say("websocket", [got.split(b" ")[1].decode(), back == b"\x00raw bytes\xff"])
# large ones
block = os.urandom(1 << 16)
size = 1 << 24
c.putrequest("POST", "/sum")
c.putheader("Content-Length", str(size))
c.endheaders()
want = hashlib.sha256()
for _ in range(size // len(block)):
    c.send(block)
    want.update(block)
got = c.getresponse().read().decode().split()
say("upload", [int(got[0]) == size, got[1] == want.hexdigest()])
for length in ("", "&length=1"):
    c.request("GET", f"/size?n={size}{length}")
    r, n = c.getresponse(), 0
    while part := r.read(1 << 16):
        n += len(part)
    say("download" + length, n == size)
# an answer before the body is there
s = connect()
s.sendall(b"POST /early" + H + b"Content-Length: 100000\r\n\r\n" + b"x" * 1000)
say("early", head(s).split(b"\r\n")[0].decode())
s = connect()
s.sendall(b"GET /plain HTTP/1.0\r\nHost: web.test:9444\r\n\r\n")
got = b""
while more := s.recv(65536):
    got += more
say("old", [got.split(b"\r\n")[0].decode(), b"chunked" in got])
s = connect()
s.sendall(b"HEAD /plain" + H + b"\r\nGET /plain" + H + b"Connection: close\r\n\r\n")
got = b""
while more := s.recv(65536):
    got += more
say("head", got.count(b"HTTP/1.1 200"))
# many at once
def one(i, out):
    try:
        k = http.client.HTTPSConnection("web.test", PORT, timeout=30, context=context)
        k.request("POST", "/sum", body=b"x" * i)
        out[i] = k.getresponse().read().decode().split()[0]
    except Exception as error:
        out[i] = repr(error)
out = {}
threads = [threading.Thread(target=one, args=(i, out)) for i in range(60)]
[x.start() for x in threads]
[x.join() for x in threads]
say("many", [i for i in range(60) if out.get(i) != str(i)])
"""


@timeout(120)
def test_http1(t):
    """Keep-alive, a pool, chunks, trailers, 100-continue, events, websockets, large bodies both ways, early answers, HTTP/1.0."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9444"], 9444)
    ws = t.workspace({"client.py": CLIENT})
    rules = [{"host": "web.test", "ports": [9444], "mode": "inspect", "websocket": True}]
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws, report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    got = dict(json.loads(line) for line in r.out.splitlines())
    wanted = {"kept": [1, False, "2", "web.test:9444"], "pooled": 1, "trailers": [True, False], "echo": True, "events": True,
              "websocket": ["101", True], "upload": [True, True], "download": True, "download&length=1": True,
              "early": "HTTP/1.1 409 Conflict", "old": ["HTTP/1.1 200 OK", False], "head": 2, "many": []}
    for name, value in wanted.items():
        t.equal(got.get(name), value, name)
    t.equal(got["continue"][0], "HTTP/1.1 100 Continue", "the server's word")
    t.check("5 2cf24dba5fb0a30e" in got["continue"][1], f"the body behind it: {got['continue'][1]}")
    t.equal(r.report["denials"], [], "denials")
