"""Bodies and connections of requests that are looked into: whatever HTTP has, as it comes and in
bounded memory."""
import glob
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
    s = context.wrap_socket(socket.create_connection(("web.test", PORT), 20),
                            server_hostname="web.test")
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
    c.request("GET", "/plain", headers={"X-Hop": "1", "Connection": "keep-alive, X-Hop",
                                        "X-Stays": "2"})
    seen = json.loads(c.getresponse().read())
say("kept", [seen["connections"], "x-hop" in seen["headers"], seen["headers"]["x-stays"],
             seen["headers"]["host"]])
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
say("continue",
    [first.split(b"\r\n")[0].decode(),
     head(s).split(b"\r\n\r\n", 1)[1].decode().replace("\r\n", " ")])
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
s.sendall(b"GET /chat" + H + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
          b"x\r\nSec-WebSocket-Version: 13\r\n\r\n")
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
# programs that go away in the middle
for data in (b"POST /sum" + H + b"Content-Length: 1000000\r\n\r\n" + b"x" * 70000,
             b"POST /sum" + H + b"Transfer-Encoding: chunked\r\n\r\n4\r\nxx",
             b"GET /size?n=50000000" + H + b"\r\n", b"GET /size?n=50000000&length=1" + H + b"\r\n",
             b"GET /events" + H + b"\r\n", b"GET /pl"):
    s = connect()
    s.sendall(data)
    if data.startswith(b"GET /size"):
        s.recv(1000)
    s.close()
c.request("GET", "/plain")
say("after", c.getresponse().status)
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
    """Keep-alive, a pool, chunks, trailers, 100-continue, events, websockets, large bodies both
    ways, early answers, HTTP/1.0."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates,
                     "9444"], 9444)
    ws = t.workspace({"client.py": CLIENT})
    rules = [{"host": "web.test", "ports": [9444], "mode": "inspect", "websocket": True}]
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws,
                   report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    got = dict(json.loads(line) for line in r.out.splitlines())
    wanted = {"kept": [1, False, "2", "web.test:9444"], "pooled": 1, "trailers": [True, False],
              "echo": True, "events": True,
              "websocket": ["101", True], "upload": [True, True], "download": True,
              "download&length=1": True,
              "early": "HTTP/1.1 409 Conflict", "old": ["HTTP/1.1 200 OK", False], "head": 2,
              "after": 200, "many": []}
    for name, value in wanted.items():
        t.equal(got.get(name), value, name)
    t.equal(got["continue"][0], "HTTP/1.1 100 Continue", "the server's word")
    t.check("5 2cf24dba5fb0a30e" in got["continue"][1], f"the body behind it: {got['continue'][1]}")
    t.equal(r.report["denials"], [], "denials")


FLOODS = r"""
import json, socket, ssl, struct
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I",
                                                                              stream) + payload
def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
HEAD = b"\x82\x87" + literal(b":path", b"/events") + literal(b":authority", b"web.test:9445")
def flood(parts):
    "Sends until the other side has had enough; how many parts that took."
    s = context.wrap_socket(socket.create_connection(("web.test", 9445), 20),
                            server_hostname="web.test")
    assert s.selected_alpn_protocol() == "h2"
    s.settimeout(20)
    sent = 0
    try:
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
        for part in parts:
            s.sendall(part)
            sent += 1
        while s.recv(65536):	# its end
            pass
    except OSError as error:
        if isinstance(error, TimeoutError):
            return "never"
    return "ended"
resets = (frame(1, 5, 2 * i + 1, HEAD) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(5000))
print(json.dumps(["rapid reset", flood(resets)]), flush=True)
continued = (frame(1, 1, 1, HEAD) if i == 0 else frame(9, 0, 1, literal(b"x%d" % i, b"y" * 100))
             for i in range(20000))
print(json.dumps(["continuation", flood(continued)]), flush=True)
# then one byte for each 4000
bomb = b"\x40" + bytes([4]) + b"bomb" + b"\x7f\x81\x1e" + b"b" * 4000
big = (frame(1, 5, 1, HEAD + bomb + b"\xbe" * 4000) if i == 0 else frame(6, 0, 0, b"12345678")
       for i in range(20))
def small(s):
    return frame(7, 0, 0, b"\0" * 8)
print(json.dumps(["bomb of a table", flood(list(big) + [small(0)])]), flush=True)
crlf = [frame(1, 5, 1, b"\x82\x87" + literal(b":path", b"/open/DENIED")
              + literal(b":authority", b"web.test:9445") +
              literal(b"x", b"a\r\nTransfer-Encoding: chunked")), frame(7, 0, 0, b"\0" * 8)]
print(json.dumps(["crlf", flood(crlf)]), flush=True)
"""


@timeout(120)
def test_http2(t):
    """Streams are decided about one by one; bodies, trailers and a hundred streams at once pass;
    floods end their connection only."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates,
                     "9444"], 9444)
    with open(os.path.join(HERE, "h2_client.js")) as f:
        ws = t.workspace({"client.js": f.read(), "floods.py": FLOODS})
    paths = ["/open/*", "/trailers", "/sum", "/size", "/events", "/go"]
    rules = [{"host": "web.test", "ports": [9445], "methods": ["GET"], "paths": paths},
             {"host": "web.test", "ports": [9445], "methods": ["POST"], "paths": ["/sum"]},
             {"host": "web.test", "ports": [9444], "methods": ["GET"]}]
    script = "curl -sS --http1.1 -o /dev/null https://web.test:9445/open/first\nnode client.js https://web.test:9445\npython3 floods.py\n" \
             "for p in 9445 9444; do curl -sS --http2 -w '[\"curl %{local_port}\", \"%{http_version}\"]\\n' -o /dev/null https://web.test:$p/open/curl; done\n" \
             "curl -sS --http1.1 -w '[\"curl1\", \"%{http_version} %{http_code}\"]\\n' -o /dev/null https://web.test:9445/open/one\n"
    r = world.ward("run", "-p", policy(t, rules), "--", "/bin/sh", "-c", script, cwd=ws,
                   report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    lines = [json.loads(line) for line in r.out.splitlines()]
    got = dict(lines)
    wanted = {"get": [200, "2.0", "/open/a?x=1", "2", "web.test:9445"],
              "trailers": ["one two", "checked"], "bare": ["7", 1], "upload": True,
              "download": 8000000, "many": 0, "events": "data: first\n\ndata: second\n\n",
              "path": [403, "path", "refused"],
              "method": [403, "method"], "authority": [421, "wrong_host"],
              "refused body": [403, "path"], "bad path": [400, "path_bad"],
              "bomb": True, "after": 200, "rapid reset": "ended", "continuation": "ended",
              "bomb of a table": "ended", "crlf": "ended",
              "curl1": "1.1 200"}
    for name, value in wanted.items():
        t.equal(got.get(name), value, f"{name} ({r.err[:500]})")
    t.equal([value for name, value in lines if name.startswith("curl ")], ["2", "1.1"],
            "what the server speaks is what is offered")
    t.check(any(d["what"] == "DELETE /open/DENIED to web.test:9445" for d in r.report["denials"]),
            f"denials: {r.report['denials']}")


@timeout(60)
def test_git(t):
    """git clones and pushes over its smart protocol; a rule that has fetching only lets no push
    begin."""
    node, git = shutil.which("node"), shutil.which("git")
    if not node or not git:
        t.skip("no node or no git")
    world = trusted_world(t)
    repo = t.git_repo({"README": "over HTTPS\n", "big": "line\n" * 300000})
    for name in ("open.git", "read.git"):
        t.run(git, "clone", "-q", "--bare", repo, os.path.join(world.dir, name), check=True)
    serve(t, world, [node, os.path.join(HERE, "git_server.js"), world.certificates, "9446",
                     world.dir], 9446)
    host = {"host": "web.test", "ports": [9446]}
    rules = [{**host, "methods": ["GET"], "paths": ["/open.git/info/refs", "/read.git/info/refs"],
              "query": ["service=git-upload-pack"]},
             {**host, "methods": ["GET"], "paths": ["/open.git/info/refs"],
              "query": ["service=git-receive-pack"]},
             {**host, "methods": ["POST"],
              "paths": ["/open.git/git-*-pack", "/read.git/git-upload-pack"]}]
    script = """set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
cd /tmp
for r in open read; do
    git clone -q https://web.test:9446/$r.git
    (cd $r; seq 200000 > more; git add more; git commit -qm more; git push -q origin HEAD:refs/heads/agent && echo pushed $r || echo refused $r)
done
cat read/README
"""
    ws = t.workspace({})
    r = world.ward("run", "-p", policy(t, rules), "--", "/bin/sh", "-c", script, cwd=ws,
                   report=True, timeout=50)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    t.equal(r.out, "pushed open\nrefused read\nover HTTPS\n", f"what git did ({r.err})")
    with t.root():
        t.check(not [line for line in (t.read(os.path.join(world.dir, "requests"))
                                       or "").splitlines() if "/read.git" in line
                     and "receive" in line],
                "a push never reached the server")
        t.contains(t.run(git, "-c", "safe.directory=*", "-C", os.path.join(world.dir, "open.git"),
                         "show-ref", root=True).out, "refs/heads/agent", "what was pushed")


HASTY = r"""
const session = require('http2').connect('https://web.test:9445');
session.on('error', () => {});
for (const path of ['/size?n=10000000', '/events'])
    session.request({ ':path': path }).on('error', () => {}).on('response', () => setTimeout(() => session.destroy(), 300));
"""


def test_broken_off_streams_are_on_record(t):
    """A connection that a program ends in the middle of its answers has asked for all of them."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [9445], "methods": ["GET"]}]), "--",
                   "/usr/bin/env", "node", "hasty.js",
                   cwd=t.workspace({"hasty.js": HASTY}), timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    events = [json.loads(line)
              for path in glob.glob(os.path.join(t.state_dir, "audit/runs/*.jsonl"))
              for line in open(path)]
    t.equal(sorted((e["url"].rsplit("/", 1)[1], e["status"]) for e in events
                   if e["kind"] == "net.http"), [("events", 200), ("size", 200)],
            "requests on record")


LONG = r"""
const session = require('http2').connect('https://web.test:9445');
const asked = [['GET', '/plain'], ['G'.repeat(32), '/plain/long'], ['G'.repeat(33), '/plain/longer'], ['G'.repeat(500), '/plain/longest']];
let left = asked.length;
session.on('error', () => process.exit(1));
for (const [method, path] of asked) {
    const stream = session.request({ ':method': method, ':path': path });
    stream.on('response', headers => console.log(method.length, headers[':status']));
    stream.on('error', () => {});
    stream.on('close', () => --left || session.close());
    stream.resume().end();
}
"""


def test_no_method_hides_its_request(t):
    """A method that is longer than HTTP/1's may be, so that nothing else of the request is left to
    tell, does not pass in HTTP/2 either."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [9445], "mode": "inspect"}]), "--",
                   "/usr/bin/env", "node", "long.js",
                   cwd=t.workspace({"long.js": LONG}), report=True, timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    events = [json.loads(line)
              for path in glob.glob(os.path.join(t.state_dir, "audit/runs/*.jsonl"))
              for line in open(path)]
    passed = sorted(e["url"].rsplit("/", 1)[1] for e in events if e["kind"] == "net.http"
                    and e["action"] == "allow")
    t.equal(passed, ["long", "plain"], f"requests on record ({r.out})")
    t.equal(sorted(line.split()[0] for line in r.out.splitlines() if line.endswith(" 400")),
            ["33", "500"], f"refused ({r.out})")


TAKEN_BACK = r"""
import socket, ssl, struct, time
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I",
                                                                              stream) + payload
def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
def head(stream, path):
    return frame(1, 5, stream, b"\x82\x87" + literal(b":path", path)
                 + literal(b":authority", b"web.test:9445"))
s = context.wrap_socket(socket.create_connection(("web.test", 9445), 20),
                        server_hostname="web.test")
s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
time.sleep(0.5)
for first, path, together in ((1, b"/events?never", True), (3, b"/events/late", False),
                              (5, b"/events?never", True)):
    back = frame(3, 0, first, struct.pack(">I", 8))
    s.sendall(head(first, path) + back if together else head(first, path))
    time.sleep(0.5)
    if not together:
        s.sendall(back)
s.sendall(head(7, b"/events/closed"))
time.sleep(0.5)
"""


def test_streams_that_are_taken_back(t):
    """A request that a program takes back before it was sent on is none that the server has heard;
    one that it takes back later is."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [9445], "methods": ["GET"]}]), "--",
                   "/usr/bin/python3", "back.py",
                   cwd=t.workspace({"back.py": TAKEN_BACK}), timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    events = [json.loads(line)
              for path in glob.glob(os.path.join(t.state_dir, "audit/runs/*.jsonl"))
              for line in open(path)]
    t.equal(sorted(e["url"].split("9445", 1)[1] for e in events if e["kind"] == "net.http"),
            ["/events/closed", "/events/late"], "requests on record")
