"""What a server may read otherwise than ward: paths, methods and places of a grant; a secret that
comes back, or leaves, in pieces of which none is one."""
import json
import os

from harness import by_turns
from harness.creds import SECRET, secret_file
from harness.world import serve, trusted_world

PORT = 9447
FILE = f"the beginning {SECRET} and the end of a file that has a secret in it"

# Sends back what it was asked for, and a file whose parts can be asked for.
SERVER = r"""
import base64, hashlib, http.server, json, re, ssl, struct, sys, time, zlib
FILE = sys.argv[3].encode()
def inflate(body):
    out = b""
    while body:
        z = zlib.decompressobj(31)
        out += z.decompress(body)
        body = z.unused_data
    return out
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        out = b""
        while n := int(self.rfile.readline(), 16):
            out += self.rfile.read(n)
            self.rfile.readline()
        self.rfile.readline()
        return out
    def talk(self):
        "A websocket that sends back what it gets; for ? its secret."
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        for field in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                      ("Sec-WebSocket-Accept",
                       base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
            self.send_header(*field)
        self.end_headers()
        while head := self.rfile.read(2):
            mask, n = self.rfile.read(4), head[1] & 127
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
            text = self.headers["Authorization"].encode() if text == b"?" else text
            self.wfile.write(bytes([0x81, len(text)]) + text)
            self.wfile.flush()
    def chunk(self, bytes):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(bytes), bytes))
        self.wfile.flush()
    def early(self):
        "Says what it was asked through a buffer of 4096 bytes, and only then reads the body."
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        text = ("query=%s\nauth=%s\n" % (self.path, self.headers["Authorization"])).encode()
        self.chunk(text[:4096])
        self.body()
        self.chunk(text[4096:])
        self.chunk(b"")
    def piece(self, kind, i):
        now = b"%.3f" % time.time()
        if kind == "dots":
            return b"."
        if kind == "beyond":
            return now + "\u4e16".encode()
        if kind == "events":    # whose last byte could be one of a secret's
            for _ in range(1000):
                now += b" "
                head = struct.pack(">II", len(now) + 16, 0)
                message = head + struct.pack(">I", zlib.crc32(head)) + now
                if 48 <= zlib.crc32(message) & 255 <= 57:
                    return message + struct.pack(">I", zlib.crc32(message))
        return {0: self.headers["Authorization"][:47], 7: self.headers["Authorization"][47:]
                + "."}.get(i, "").encode()
    def drip(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.amazon.eventstream" if kind == "events"
                         else "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(24 if kind == "dots" else 8):
            if piece := self.piece(kind, i):
                self.chunk(piece)
            time.sleep(0.3)
        self.chunk(b"")
    def answer(self):
        if self.path.startswith("/a/early"):
            return self.early()
        body = self.body()
        if self.path.startswith("/a/drip/"):
            return self.drip(self.path[8:])
        if self.headers.get("Content-Encoding") == "gzip":
            body = inflate(body)
        with open(sys.argv[1] + "/seen", "a") as f:
            f.write(json.dumps([self.command, self.path, list(self.headers.items()),
                                body.decode("latin-1")]) + "\n")
        if self.path == "/a/ws":
            return self.talk()
        if self.path.startswith("/slow"):	# what it is asked for, and never the rest
            self.send_response(200)
            self.send_header("Content-Length", str(200 + len(self.path)))
            self.end_headers()
            self.wfile.write(b"y" * 190 + self.path[5:].replace("LINE", "\n").encode())
            self.wfile.flush()
            self.rfile.read(1)	# until the program has gone
            self.close_connection = True
            return
        # a part that is not counted in bytes; one that is shorter than it says
        if self.path in ("/a/rows", "/a/lies"):
            self.send_response(206)
            self.send_header("Content-Range", "0-24/99" if self.path == "/a/rows"
                             else "bytes 0-999/2000")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"parts")
            return
        text, part = (FILE,
                      self.headers.get("Range")) if self.path.startswith("/a/file") else (
                          b"fine", None)
        ends = [int(x) for x in re.findall(r"\d+", part or "")]
        kind = "text/plain"
        placed = None
        if len(ends) == 2:
            placed = "bytes %d-%d/%d" % (ends[0], min(ends[1], len(text) - 1), len(text))
            text = text[ends[0]:ends[1] + 1]
        elif len(ends) == 1:
            first = max(len(text) - ends[0], 0) if "=-" in part else ends[0]
            placed = "bytes %d-%d/%d" % (first, len(text) - 1, len(text))
            text = text[first:]
        elif ends:
            text, kind = b"--B\r\n\r\n" + b"\r\n--B\r\n\r\n".join(text[a:b + 1]
                                                                  for a, b in zip(ends[::2],
                                                                                  ends[
                                                                                      1::2])) + b"\r\n--B--", "multipart/byteranges; boundary=B"
        self.send_response(206 if ends else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        if placed:
            self.send_header("Content-Range", placed)
        self.end_headers()
        for at in range(0, len(text), 7):
            self.wfile.write(text[at:at + 7])
            self.wfile.flush()
    do_GET = do_POST = do_PUT = do_DELETE = answer
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9447), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/server.pem", sys.argv[2] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

CLIENT = r"""
import http.client, json, os, socket, ssl, sys, time, zlib
token = os.environ.get("API_KEY", "")
connection = None
def raw(method, target, fields=(), body=b""):
    "A request whose bytes nobody cleans up; a body that is a list goes in pieces."
    global connection
    connection = connection or ssl.create_default_context().wrap_socket(
        socket.create_connection(("web.test", 9447), 20), server_hostname="web.test")
    head = "".join("%s: %s\r\n" % f for f in fields)
    connection.sendall(("%s %s HTTP/1.1\r\nHost: web.test:9447\r\n%s\r\n"
                        % (method, target, head)).encode())
    for piece in body if isinstance(body, list) else [body]:
        connection.sendall(piece)
        if isinstance(body, list):
            time.sleep(0.1)
    r = http.client.HTTPResponse(connection, method=method)
    r.begin()
    got = (r.status, r.read().decode("latin-1"))
    if r.will_close:
        connection.close()
        connection = None
    return got
def say(name, value):
    print(json.dumps([name, value]), flush=True)
"""


def start(t):
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER, "seen": ""})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "server.py"), world.dir,
                     world.certificates, FILE], PORT)
    return world


def run(t, world, grants, script, words=(), notes=None, env=None, **rule):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        json.dump({"version": 1,
                   "network": {"mode": "restricted",
                               "egress_allowlist": [{"host": "web.test", "ports": [PORT],
                                                     "mode": "inspect", **rule}]},
                   "credentials": {"mode": "just_in_time", "grants": grants}}, f)
    ws = t.workspace({"client.py": CLIENT + script})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", *words, cwd=ws,
                   report=True, env=env, timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    t.check(SECRET not in r.out + r.err, "the secret came back")
    if notes is not None:
        notes += r.report["notes"]
    return {line[0]: line[1] for line in map(json.loads, r.out.splitlines())}


def seen(t, world):
    return [json.loads(line)
            for line in (t.read(os.path.join(world.dir, "seen")) or "").splitlines()]


def test_paths_and_methods(t):
    """A path that leads elsewhere, another method in a header: whatever the server makes of it, the
    secret is not with it. Honest ones have it."""
    world = start(t)
    run(t, world, [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY", "paths": ["/a/*"], "methods": ["GET", "POST"]}], r"""
for path in ("/a/1", "/a/@scope%2fname?x=..%2f..", "/a/b%7ec"):
    say(path, raw("GET", path))
for path in ("/a/../evil", "/a/%2e%2e/evil", "/a/..%2fevil", "/a/%252e%252e/evil", "/a/..;/evil",
             "/a//../../evil"):
    say(path, raw("GET", path))
for field in ("X-HTTP-Method-Override", "X_HTTP_Method_Override", "X-Method-Override"):
    say(field, raw("GET", "/a/override", [(field, "DELETE")]))
say("parameter", raw("GET", "/a/override?_method=DELETE"))
say("own", raw("GET", "/a/override-fine", [("X-HTTP-Method-Override", "post")]))
say("connection", raw("GET", "/a/2", [("Connection", "authorization, keep-alive")]))
""")
    got = seen(t, world)
    t.check(len(got) >= 9, f"they came: {[g[1] for g in got]}")
    for method, path, fields, _ in got:
        has = SECRET in json.dumps(fields)
        t.equal(has, path in ("/a/1", "/a/@scope%2fname?x=..%2f..", "/a/b%7ec", "/a/override-fine",
                              "/a/2"), f"the secret is with {path} ({fields})")


def test_places(t):
    """The place of a secret in another spelling: what the program wrote there is gone, whichever
    the server would have taken."""
    world = start(t)
    run(t, world,
        [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"], "as": "API_KEY",
          "query": "api_key", "paths": ["/q"]},
         {"name": "two", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
          "header": "X-Api-Key: {}", "paths": ["/h"]}], r"""
say("q", raw("GET", "/q?api%5fkey=ATTACKERS&x=1&Api_Key=ATTACKERS;y=2;api_key=ATTACKERS"))
say("h", raw("GET", "/h", [("X_Api_Key", "ATTACKERS"), ("x-api-key", "ATTACKERS")]))
""")
    got = seen(t, world)
    t.equal([g[1] for g in got], [f"/q?x=1&y=2&api_key={SECRET}", "/h"], "targets")
    t.check("ATTACKERS" not in json.dumps(got), f"what the program wrote: {got}")
    t.equal([v for k, v in got[1][2] if k.lower().replace("_", "-") == "x-api-key"], [SECRET],
            "the header")


def test_pieces(t):
    """A file that has the secret, in parts; a body of several gzip members, each with half of the
    placeholder."""
    world = start(t)
    at = FILE.index(SECRET)
    got = run(t, world,
              [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                "as": "API_KEY", "paths": ["/a/*"]}], r"""
at, end = %d, %d
def part(a, b, field="Range"):
    return raw("GET", "/a/file", [(field, "bytes=%%s-%%s" %% (a, b))])
say("whole", raw("GET", "/a/file"))
say("before", part(0, at - 1))
say("first", part(0, at + 10))
say("last", part(at + 10, end + 30))
say("middle", part(at + 5, at + 20))
say("bytes", "".join(part(i, i)[1] for i in range(at, at + 8)))
say("threes", "".join(part(i, i + 2)[1] for i in range(at, at + 24, 3)))
say("behind", part(end, end + 20))
say("one", part(4, 4))
say("from", part(end + 4, ""))
say("tail", part("", 9))
say("beyond", part(end + 60, end + 70)[0])
say("again", raw("GET", "/a/2"))
say("several", raw("GET", "/a/file", [("Range", "bytes=%%d-%%d, %%d-%%d" %% (at, at + 9, at + 10, end))]))
half = [zlib.compressobj(6, zlib.DEFLATED, 31) for _ in range(2)]
half = [z.compress(x) + z.flush() for z, x in zip(half, (b'{"a": "' + token[:20].encode(), token[20:].encode() + b'"}'))]
say("members", raw("POST", "/b", [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")],
                   [b"%%x\r\n%%s\r\n" %% (len(h), h) for h in half] + [b"0\r\n\r\n"])[0])
""" % (at, at + len(SECRET)))
    for name in ("first", "last", "middle", "bytes", "threes", "several", "whole"):
        text = got[name] if isinstance(got[name], str) else got[name][1]
        found = [SECRET[i:i + 6] for i in range(len(SECRET) - 5) if SECRET[i:i + 6] in text]
        t.equal(found, [], f"{name}: {text}")
    t.equal((got["bytes"], got["threes"]), ("x" * 8, "x" * 24), "parts that are small")
    t.equal(got["before"], [206, FILE[:at]], "an honest part")
    t.equal(got["behind"], [206, FILE[at + len(SECRET):at + len(SECRET) + 21]], "another")
    t.equal(got["several"][0], 200, "several parts are asked for as the whole")
    t.equal((got["one"], got["from"], got["tail"]),
            ([206, FILE[4]], [206, FILE[at + len(SECRET) + 4:]], [206, FILE[-9:]]), "more of them")
    t.equal((got["first"][1], got["middle"][1]), (FILE[:at] + "x" * 11, "x" * 16), "parts of it")
    t.equal((got["beyond"], got["again"][0]), (416, 200),
            "one that is not there, and what comes after it")
    t.contains(got["last"][1], "and the end of a file", "the rest of a part")
    t.equal(got["members"], 403, "a placeholder in two members")


def test_other_ranges(t):
    """What is written goes where it was meant to, and no part of a secret comes back by it; other
    units than bytes pass; a length that cannot be is an error."""
    world = start(t)
    at = FILE.index(SECRET)
    got = run(t, world,
              [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                "as": "API_KEY", "paths": ["/a/*"]}], r"""
say("clear", raw("PUT", "/a/f?comp=range", [("x-ms-range", "bytes=512-1023"), ("x-ms-write", "clear"), ("Content-Length", "0")])[0])
say("heroku", raw("GET", "/a/apps", [("Range", "id ]abc..; max=10")])[0])
say("rows", raw("GET", "/a/rows", [("Range-Unit", "items"), ("Range", "0-24")]))
say("lies", raw("GET", "/a/lies", [("Range", "bytes=0-599")])[0])
cut = ("Range", "bytes=%d-%d")
say("post", raw("POST", "/a/file", [cut, ("Content-Length", "0")]))
say("override", raw("GET", "/a/file", [cut, ("X-HTTP-Method-Override", "PUT")]))
""" % (at, at + 9))
    sent = {g[1]: dict(g[2]) for g in seen(t, world)}
    t.equal((got["clear"], sent["/a/f?comp=range"]["x-ms-range"]), (200, "bytes=512-1023"),
            "what is written")
    t.equal((got["heroku"], sent["/a/apps"]["Range"]), (200, "id ]abc..; max=10"), "another unit")
    t.equal((got["rows"], sent["/a/rows"]["Range"]), ([206, "parts"], "0-24"), "none said")
    t.equal((got["lies"], got["post"][0], got["override"][0]), (502, 502, 502), "what is refused")
    t.check(SECRET[:6] not in json.dumps(got), f"a part of the secret: {got}")


def test_a_signed_range(t):
    """Several parts at once are asked for as the whole, and what is signed is what is sent."""
    world = start(t)
    got = run(t, world,
              [{"name": "aws", "source": "env:AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY",
                "hosts": ["web.test"], "sigv4": "eu-west-1/*"}], r"""
names = "host;range;x-amz-content-sha256;x-amz-date"
signed = [("X-Amz-Date", "20260102T030405Z"), ("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"),
          ("Authorization", "AWS4-HMAC-SHA256 Credential=%s/20260102/eu-west-1/s3/aws4_request, SignedHeaders=%s, Signature=00" % (os.environ["AWS_ACCESS_KEY_ID"], names))]
say("several", raw("GET", "/several", signed + [("Range", "bytes=0-1,4-5")])[0])
say("one", raw("GET", "/one", signed + [("Range", "bytes=0-1")])[0])
""", env={"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET})
    t.equal(got, {"several": 200, "one": 200}, "answers")
    sent = {g[1]: dict(g[2]) for g in seen(t, world)}
    t.contains(sent["/several"]["Authorization"],
               "SignedHeaders=host;x-amz-content-sha256;x-amz-date,", "without the range")
    t.contains(sent["/one"]["Authorization"],
               "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,", "with it")


def test_paths_with_slashes(t):
    """A path with %2F has the secret where the grant names both of its readings; where one is
    missing, somebody is told."""
    world = start(t)
    grants = [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
               "as": "API_KEY", "paths": ["/p/g%2Fr/*", "/p/g/r/*", "/one%2fonly"]}]
    notes = []
    run(t, world, grants, r"""
for path in ("/p/g%2Fr/1", "/p/g%2fr/2", "/p/g/r/3", "/one%2Fonly", "/one%2Fonly?again"):
    say(path, raw("GET", path)[0])
say("moved", raw("GET", "/p/g/r/4", [("X-Original-URL", "/evil")])[0])
""", notes=notes)
    t.equal([g[1] for g in seen(t, world) if SECRET in json.dumps(g[2])],
            ["/p/g%2Fr/1", "/p/g%2fr/2", "/p/g/r/3"], "the secret is with them")
    t.equal(len(seen(t, world)), 6, "all came")
    t.equal(len([n for n in notes if n.startswith("credentials: api was not injected into")]), 1,
            f"told once: {notes}")


WAITS = r"""
import sys
def begin(guess):
    c = ssl.create_default_context().wrap_socket(socket.create_connection(("web.test", 9447), 20),
                                                 server_hostname="web.test")
    c.sendall(("GET /slow%s HTTP/1.1\r\nHost: web.test:9447\r\n\r\n" % guess).encode())
    return c
def come(c, seconds, got):
    "What has come of the body after some silence."
    c.settimeout(seconds)
    try:
        while piece := c.recv(1000):
            got += piece
    except TimeoutError:
        pass
    return got, len(got.split(b"\r\n\r\n", 1)[-1])
connections = [begin(guess) for guess in sys.argv[1:2]]
first = [come(connections[0], 0.3, b"")]
for guess in sys.argv[2:]:	# each is looked at soon after it was asked for
    connections.append(begin(guess))
    first.append(come(connections[-1], 0.3, b""))
later = [come(c, 0.3 if i else 2, got)
         for i, (c, (got, _)) in enumerate(zip(reversed(connections), reversed(first)))][::-1]
for guess, (_, soon), (_, late) in zip(sys.argv[1:], first, later):
    say(guess, [soon, late])
"""


@by_turns
def test_what_waits(t):
    """A server that sends guesses and pauses: how many bytes of them come, and when, says nothing
    about the secret. Whole lines do not wait unless they end like one of base64, and the rest not
    for ever."""
    world = start(t)
    guesses = [SECRET[:12], "Z" * 12, SECRET.encode().hex()[:12], "line-with.LINE", "line-withLINE"]
    got = run(t, world, [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                          "as": "API_KEY", "paths": ["/a/*"]}], WAITS, words=guesses)
    t.equal({tuple(got[g]) for g in guesses[:3]}, {(got[guesses[1]][0], 202)},
            f"bytes that came: {got}")
    t.check(got[guesses[1]][0] < 190, f"they wait: {got}")
    t.equal(got[guesses[3]], [201, 201], f"a whole line: {got}")
    t.check(got[guesses[4]][0] < 190 and got[guesses[4]][1] == 200,
            f"a line that base64 may go on behind: {got}")


SILENCE = r"""
import re, threading
def begin(method, target, fields=""):
    c = ssl.create_default_context().wrap_socket(socket.create_connection(("web.test", 9447), 20),
                                                 server_hostname="web.test")
    c.sendall(("%s %s HTTP/1.1\r\nHost: web.test:9447\r\n%s\r\n"
               % (method, target, fields)).encode())
    return c
def drip(kind):
    r = http.client.HTTPResponse(begin("GET", "/a/drip/" + kind))
    r.begin()
    started, all, came = time.time(), b"", []
    while piece := r.read1(4000):
        all += piece
        came.append([time.time() - started,
                     *(time.time() - float(x) for x in re.findall(rb"\d{9,}\.\d+", piece))])
    say(kind, [all.decode("latin-1"), came])
def early():
    target = "/a/early" + "p" * (4096 - len("query=/a/early\nauth=Bearer ") - len(token) + 1)
    c, got = begin("POST", target, "Transfer-Encoding: chunked\r\n"), b""
    c.sendall(b"3\r\nabc\r\n")
    c.settimeout(3)
    try:
        while piece := c.recv(9000):
            got += piece
    except TimeoutError:
        pass
    say("early", [got[-150:].decode(), len(got)])
    c.settimeout(20)
    c.sendall(b"0\r\n\r\n")
    while not got.endswith(b"\r\n0\r\n\r\n"):
        got += c.recv(9000)
    say("rest", got[-200:].decode())
threads = [threading.Thread(target=drip, args=(kind,))
           for kind in ("dots", "beyond", "events", "cut")] + [threading.Thread(target=early)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@by_turns
def test_silence(t):
    """A server that stops in the middle of the secret, because its program made it or by itself:
    not more than its first few letters come. What comes slowly comes all the same."""
    world = start(t)
    got = run(t, world,
              [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                "as": "API_KEY", "paths": ["/a/*"]}], SILENCE)
    t.check(SECRET[:9] not in got["early"][0] and got["early"][1] > 3000,
            f"the request is not complete: {got['early']}")
    t.check(SECRET[:9] not in got["rest"] and "x" * 30 in got["rest"], f"then it is: {got['rest']}")
    text, came = got["cut"]
    t.equal(text, "Bearer " + "x" * len(SECRET) + ".", "a server that pauses")
    t.check(len(came) == 3 and came[1][0] < 2, f"what waited went while it did: {came}")
    for kind in ("beyond", "events"):
        lags = [lag for piece in got[kind][1] for lag in piece[1:]]
        t.check(len(lags) == 8 and sorted(lags)[4] < 0.25, f"{kind} wait: {lags}")
    text, came = got["dots"]
    t.equal(text, "." * 24, "dots")
    t.check(4 < came[0][0] < 7, f"a server that is never silent: {came}")


SOCKET = r"""
c = ssl.create_default_context().wrap_socket(socket.create_connection(("web.test", 9447), 20), server_hostname="web.test")
c.sendall(b"GET /a/ws HTTP/1.1\r\nHost: web.test:9447\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
stream = c.makefile("rb")
say("status", stream.readline().split()[1].decode())
while stream.readline().strip():
    pass
def message(text):
    c.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode())
    n = stream.read(2)[1]
    return stream.read(n).decode()
for text in %r:
    say(text, message(text))
"""


def test_a_websocket(t):
    """Each message comes when it is whole, whatever it ends in; what has the secret comes without;
    nothing is compressed."""
    world = start(t)
    texts = ["hello", "?", SECRET[:12], "again"]
    got = run(t, world, [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                          "as": "API_KEY", "paths": ["/a/*"]}], SOCKET % texts, websocket=True)
    t.equal(got, {"status": "101", "hello": "hello", "?": "Bearer " + "x" * len(SECRET),
                  SECRET[:12]: SECRET[:12], "again": "again"}, "messages")
    t.check("deflate" not in json.dumps(seen(t, world)), "compression was asked for")
