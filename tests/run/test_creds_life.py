"""Secrets through their whole life: a value that was granted once is known until the run ends, on
connections that are open, too; and several grants of one request."""
import base64
import json
import os
import re
import shutil

from harness import by_turns
from harness.creds import SECRET, secret_file
from harness.world import HERE, serve, trusted_world

PORT, H2_PORT = 9449, 9446

# Keeps every credential that it ever saw, and says them all when it is asked to, in several ways.
SERVER = r"""
import base64, hashlib, http.server, json, os, ssl, sys, threading, time
known = []
def note(what):
    with open(sys.argv[1] + "/seen", "a") as f:
        f.write(json.dumps(what) + "\n")
def lines(value, width, end):
    text = base64.b64encode(value.encode()).decode()
    return end.join(text[at:at + width] for at in range(0, len(text), width))
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def frame(self, first, bytes):
        n = len(bytes)
        self.wfile.write(bytearray([first, n]) + bytes
                         if n < 126 else bytearray([first, 126, n >> 8, n & 255]) + bytes)
        self.wfile.flush()
    def talk(self):
        "A websocket: for ? everything that it knows, in two frames of one message; else what it got."
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        for field in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                      ("Sec-WebSocket-Accept",
                       base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
            self.send_header(*field)
        self.end_headers()
        while head := self.rfile.read(2):
            n = head[1] & 127
            n = int.from_bytes(self.rfile.read(2), "big") if n == 126 else n
            mask = self.rfile.read(4)
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n))).decode()
            note(["message", head[0], text])
            if head[0] & 8:     # a ping
                continue
            said = (" ".join(known) if text == "?" else text).encode()
            half = len(said) - 5
            self.frame(0x01, said[:half])
            self.frame(0x80, said[half:])
    def stream(self, kind):
        "Says something, and everything that it knows when there is a file: in chunks of a few bytes."
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        def chunk(text):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))
            self.wfile.flush()
        chunk("data: begun\n\n")
        while not os.path.exists(sys.argv[1] + "/go"):
            time.sleep(0.05)
        text = "".join("data: %s\n\n" % value for value in known)
        for at in range(0, len(text), 7):
            chunk(text[at:at + 7])
        self.wfile.write(b"0\r\nX-Trailer: %s\r\n\r\n" % known[-1].encode())
        self.wfile.flush()
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("latin-1")
        value = (self.headers.get("Authorization") or "").replace("Bearer ", "")
        if value and value not in known:
            known.append(value)
        note([self.command, self.path, list(self.headers.items()), body])
        if self.path.endswith("/ws"):
            return self.talk()
        if self.path.endswith("/events"):
            return self.stream("text/event-stream")
        reason, kind, text = "OK", "text/plain", " ".join(known)
        if "/lines" in self.path:
            text = "".join(lines(known[-1], width, "\r\n") + "\r\n.\r\n"
                           + json.dumps({"key": lines("xx" + known[-1], width, "\n")}) + "\n"
                           for width in (4, 19, 64, 76))
        if "/reason" in self.path:
            reason, text = known[-1], ""
        data = text.encode()
        self.send_response(200, reason)
        if "/names" in self.path:
            self.send_header("X-" + known[-1].upper(), "y")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST = answer
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9449), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/server.pem", sys.argv[2] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

CLIENT = r"""
import base64, json, os, socket, ssl, sys, time
def say(name, value):
    print(json.dumps([name, value]), flush=True)
def connect():
    return ssl.create_default_context().wrap_socket(socket.create_connection(("web.test", 9449),
                                                                             20),
                                                    server_hostname="web.test")
def begin(c, target, fields=(), body=None):
    c.sendall(("%s %s HTTP/1.1\r\nHost: web.test:9449\r\n%s%s\r\n"
               % ("GET" if body is None else "POST", target, "".join(f + "\r\n" for f in fields),
"" if body is None else "Content-Length: %d\r\n" % len(body))).encode() + (body or b""))
    return c.makefile("rb")
def read_head(stream):
    lines = []
    while (line := stream.readline().decode("latin-1").rstrip("\r\n")):
        lines.append(line)
    return lines
def ask(target, fields=(), body=None):
    c = connect()
    stream = begin(c, target, fields, body)
    head = read_head(stream)
    length = [int(line.split(":")[1]) for line in head
              if line.lower().startswith("content-length:")]
    text = stream.read(length[0] if length else 0).decode("latin-1")
    c.close()
    return [head[0] if head else "", head[1:], text]
class Socket:
    def __init__(self, target):
        self.c = connect()
        self.stream = begin(self.c, target, ("Connection: Upgrade", "Upgrade: websocket",
                                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                                             "Sec-WebSocket-Version: 13"))
        self.status = read_head(self.stream)[0].split()[1]
    def frame(self, first, text, mask=b"\x11\x22\x33\x44"):
        n = len(text)
        head = bytes([first, 0x80 | n]) if n < 126 else bytes([first, 0xfe, n >> 8, n & 255])
        self.c.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text.encode())))
    def hear(self):
        text = b""
        while True:
            try:
                head = self.stream.read(2)
            except OSError:
                head = b""
            if len(head) < 2:
                return None
            n = head[1] & 127
            n = int.from_bytes(self.stream.read(2), "big") if n == 126 else n
            text += self.stream.read(n)
            if head[0] & 0x80:
                return text.decode("latin-1")
def wait(name):
    until = time.monotonic() + 60
    while not os.path.exists(name) and time.monotonic() < until:
        time.sleep(0.05)
"""


def start(t):
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER, "seen": ""})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "server.py"), world.dir,
                     world.certificates], PORT)
    return world


def seen(t, world):
    return [json.loads(line)
            for line in (t.read(os.path.join(world.dir, "seen")) or "").splitlines()]


def policy(t, grants, port=PORT, **credentials):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    rules = [{"host": name, "ports": [port], "mode": "inspect", "websocket": True}
             for name in ("web.test", "other.test")]
    with open(path, "w") as f:
        json.dump({"version": 1, "network": {"mode": "restricted", "egress_allowlist": rules},
                   "credentials": {"mode": "just_in_time", "grants": grants, **credentials}}, f)
    return path


def run(t, world, path, script, ws=None, **options):
    ws = ws or t.workspace({})
    t.write(ws, {"client.py": CLIENT + script})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=100, **options)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    return {line[0]: line[1] for line in map(json.loads, r.out.splitlines())}, r


def rotating(t, value="ROTATED{n}xSECRETxVALUExOFxTHISxGRANTx{n}{n}{n}", stop=10 ** 6):
    """A program that gives another value each time once there is a file "advance", up to a number
    of them; and the file with that number."""
    place = t.fresh_dir("secrets")
    t.write(place,
            {"count": "0", "give": f"#!/usr/bin/python3\nimport os\nplace = {place!r}\n"
             "n = int(open(place + '/count').read())\n"
             f"n = min(n + 1, {stop}) if not n or os.path.exists(place + '/advance') else n\n"
             f"open(place + '/count', 'w').write(str(n))\nprint({value!r}.replace('{{n}}', "
             "str(n)))\n"})
    os.chmod(place + "/give", 0o755)
    return place


LIFE = r"""
def fine(target):
    "Under load a value may have run out before the next one is there."
    for _ in range(60):
        if (status := ask(target)[0].split()[1]) == "200":
            break
        time.sleep(0.2)
    return status
say("status", [fine("/a/one")])
talk = Socket("/b/ws")
stream = connect()
events = begin(stream, "/b/events")
say("events", read_head(events)[0].split()[1])
open("ready", "w").close()
wait("go")
say("two", fine("/a/two"))
talk.frame(0x81, "?")
say("websocket", talk.hear())
came = b""
while not came.endswith(b"0\r\n\r\n") and (piece := events.readline()):
    came += piece
say("stream", came.decode("latin-1"))
say("answer", ask("/b/all")[2])
old = "ROTATED" + "1" + "xSECRETxVALUExOFxTHISxGRANTx" + "111"
say("old", [ask("/b/x", (), old.encode())[0].split()[1], ask("/b/x?k=" + old)[0].split()[1],
            ask("/b/x", ("X-%s: y" % old.lower(),))[0].split()[1],
            ask("/b/x", (), base64.encodebytes(b"y" + old.encode() * 3))[0].split()[1]])
talk.frame(0x81, old)
say("sent", talk.hear())
"""


@by_turns
def test_a_value_stays_secret(t):
    """A source that gives another value every second: each one that was granted is overwritten and
    stopped, on a websocket and a stream that were open before, too."""
    world = start(t)
    place = rotating(t, stop=5)
    grant = {"name": "api", "source": f"cmd:{place}/give", "hosts": ["web.test"], "paths": ["/a/*"],
             "ttl_seconds": 2}
    ws = t.workspace({"client.py": CLIENT + LIFE})
    process = t.popen(t.ward_argv("run", "-p", policy(t, [grant]), "--", "/usr/bin/python3",
                                  "client.py", wrap=world.wrap(ws)), cwd=ws, root=True)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")) or process.poll() is not None,
                 60, "the connections are not open")
    with t.root():
        t.write(place, {"advance": ""})
    t.wait_until(lambda: int(t.read(place, "count") or 0) >= 5 or process.poll() is not None, 60,
                 "the value does not change")
    t.check(process.poll() is None, "it ended before the last value came")
    with open(os.path.join(ws, "go"), "w"):
        pass
    with t.root():
        t.write(world.dir, {"go": ""})
    out, err = (text.decode() for text in process.communicate(timeout=100))
    t.equal(process.returncode, 0, f"exit code ({out} {err})")
    got = {line[0]: line[1] for line in map(json.loads, out.splitlines())}
    t.check("ROTATED" not in json.dumps({k: v for k, v in got.items()}),
            f"a value came back: {got}")
    for name in ("websocket", "stream", "answer"):
        t.check(got[name] and re.search("x{30}", got[name]),
                f"{name}: what came back is overwritten: {got[name]}")
    t.equal(got["old"], ["403"] * 4,
            "the first value in body, query, name of a header and base64 in lines")
    t.equal(got["sent"], None, "and in a message: the websocket is cut")
    requests = [line for line in seen(t, world) if line[0] in ("POST", "message")
                or "/b/x" in line[1]]
    t.check("ROTATED1x" not in json.dumps(requests) and "rotated1x" not in json.dumps(requests),
            f"the server got it from the program: {requests}")
    values = {value for line in seen(t, world)
              for name, value in (line[2] if isinstance(line[2], list) else [])
              if name == "Authorization"}
    t.check(len(values) >= 2, f"several values were used: {values}")


MESSAGES = r"""
token = os.environ["API_KEY"]
def try_message(*frames):
    talk = Socket("/a/ws")
    for first, text in frames:
        talk.frame(first, text)
    return talk.hear()
say("status", Socket("/a/ws").status)
say("hello", try_message((0x81, "hello")))
say("large", len(try_message((0x81, "z" * 40000)) or ""))
say("pieces", try_message((0x01, "one "), (0x89, "ping"), (0x80, "two")))
say("token", try_message((0x81, "my key is " + token)))
say("base64", try_message((0x81, base64.b64encode(token.encode()).decode())))
say("split", try_message((0x01, "my key is " + token[:20]), (0x00, token[20:30]),
                         (0x80, token[30:])))
say("ping", try_message((0x89, token), (0x81, "hello")))
say("binary", try_message((0x82, token)))
say("bits", try_message((0xc1, "hello")))
say("back", try_message((0x81, "?")))
"""


def test_messages_of_a_program(t):
    """What a program says on a websocket is looked through without its mask, whatever its frames: a
    placeholder cuts the connection, other messages arrive as they were."""
    world = start(t)
    grant = {"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
             "as": "API_KEY"}
    got, r = run(t, world, policy(t, [grant]), MESSAGES)
    t.equal([got[k] for k in ("status", "hello", "pieces")], ["101", "hello", "one two"],
            "messages")
    t.equal(got["large"], 40000, "a large one")
    t.equal({k: got[k] for k in ("token", "base64", "split", "ping", "binary", "bits")},
            dict.fromkeys(("token", "base64", "split", "ping", "binary", "bits")),
            "a placeholder, and what cannot be looked through")
    t.equal(got["back"], "x" * len(SECRET), "a secret in two frames of one message")
    t.check(SECRET not in r.out, "the secret came back")
    messages = json.dumps([line for line in seen(t, world) if line[0] == "message"])
    t.check("sk-proj-WARD" not in messages, f"the server got a placeholder: {messages[:300]}")
    t.check(any("websocket" in d["why"] for d in r.report["denials"]),
            f"the report: {r.report['denials']}")
    got, r = run(t, world, policy(t, [grant], leaks="strip"), MESSAGES)
    t.check(got["token"] and re.fullmatch("my key is x+", got["token"]), f"strip: {got['token']}")
    t.check(got["split"] and re.fullmatch("my key is x+", got["split"]),
            f"strip, in frames: {got['split']}")


FORMS = r"""
token = os.environ["API_KEY"]
say("first", ask("/a")[2])
say("lines", ask("/a/lines")[2])
say("names", ask("/a/names")[1])
say("reason", ask("/a/reason")[0])
name = [("X-%s: y" % token,), ("x-%s: y" % token.lower(),), (token.upper() + ": y",), ("x-" + token.encode().hex() + ": y",)]
say("sent-names", [ask("/a/x", fields)[0].split()[1] for fields in name])
broken = base64.b64encode(b"y" + token.encode()).decode()
bodies = [end.join(broken[at:at + width] for at in range(0, len(broken), width)) for width in (4, 19, 64) for end in ("\n", "\r\n", "\\n", "\\r\\n", "%0A")]
say("sent-lines", [ask("/a/x", (), text.encode())[0].split()[1] for text in bodies])
say("sent-path", [ask(path)[0].split()[1] for path in ("/a/" + token, "/a/%" + token[:1].encode().hex() + token[1:], "/a?k=" + token.replace("-", "%2d"), "/a?%s=1" % token)])
parts = "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\nx\r\n--b--\r\n" % token
say("sent-parts", ask("/a/x", ("Content-Type: multipart/form-data; boundary=b",), parts.encode())[0].split()[1])
c = connect()
stream = begin(c, "/a/x", ("Transfer-Encoding: chunked", "Content-Type: text/plain"))
c.sendall(b"5;%s\r\nhello\r\n0\r\n\r\n" % token.encode())
say("sent-extension", (stream.readline().decode().split() or ["", "none"])[1])
c = connect()
stream = begin(c, "/a/x", ("Transfer-Encoding: chunked", "Trailer: X-T", "Content-Type: text/plain"))
c.sendall(b"5\r\nhello\r\n0\r\nX-T: %s\r\n\r\n" % token.encode())
say("sent-trailer", (stream.readline().decode().split() or ["", "none"])[1])
say("fine", [ask("/a/x", ("X-Other: y",), b"aGVs\nbG8=\n" * 50)[0].split()[1], ask("/a/%7euser?a=%20b")[0].split()[1]])
"""


def test_places_and_lines(t):
    """Base64 in lines of any width and with any break, names of headers in any case, reason
    phrases, paths, parts, extensions and trailers: there, too."""
    world = start(t)
    grant = {"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
             "as": "API_KEY"}
    got, r = run(t, world, policy(t, [grant]), FORMS)
    joined = re.sub(r"\\n|\s|\\r", "", got["lines"])
    pieces = [base64.b64encode(b"x" * n + SECRET.encode())[4 + n:-4].decode() for n in range(3)]
    t.check(not any(piece[at:at + 24] in joined for piece in pieces
                    for at in range(0, len(piece) - 24, 4)), f"lines came back: {got['lines']}")
    t.check("\r\n.\r\n" in got["lines"] and '{"key": "' in got["lines"],
            f"the rest is there: {got['lines']}")
    everything = r.out.lower()
    t.check(SECRET.lower() not in everything, f"the secret came back: {got}")
    t.check(any("x" * 40 in field for field in got["names"]), f"a header's name: {got['names']}")
    t.check("x" * len(SECRET) in got["reason"], f"a reason phrase: {got['reason']}")
    t.equal(got["sent-names"], ["403"] * 4, "names of headers")
    t.equal(got["sent-lines"], ["403"] * 15, "lines")
    t.equal(got["sent-path"], ["403"] * 4, "paths and queries")
    t.equal(got["sent-parts"], "403", "a part's name")
    t.check("200" not in (got["sent-extension"], got["sent-trailer"]),
            f"{got['sent-extension']} {got['sent-trailer']}")
    t.equal(got["fine"], ["200", "200"], "what is no secret")
    t.check("sk-proj-ward" not in json.dumps([line for line in seen(t, world)
                                              if "/x" in line[1]]).lower(),
            "the server got a placeholder")


BOUND = r"""
refused = 0
for _ in range(120):     # once may be a renewal that took its time
    status = ask("/a/one")
    refused = refused + 1 if status[0].split()[1] == "403" else 0
    if refused == 6:
        break
    time.sleep(0.5)
say("status", [status[0], status[2]])
known = ask("/b/all")
say("all", [known[0].split()[1], len(known[2]), known[2].replace("x", "").replace(" ", "")])
"""


@by_turns
def test_more_values_than_are_remembered(t):
    """Where no more values can be looked for the grant is not renewed and refuses requests, with
    the reason; those that it had are still overwritten."""
    world = start(t)
    place = rotating(t, "V{n}v" + "kY7/pQ2+vW9=" * 330)
    t.write(place, {"advance": ""})
    grant = {"name": "api", "source": f"cmd:{place}/give", "hosts": ["web.test"], "paths": ["/a/*"],
             "ttl_seconds": 1}
    got, r = run(t, world, policy(t, [grant]), BOUND)
    t.contains(got["status"][0], "403", "the grant")
    t.contains(got["status"][1], "could not be renewed", "why")
    t.check(any("could not be renewed" in n and "too many or too long" in n
                for n in r.report["notes"]), f"the report: {r.report['notes']}")
    status, length, rest = got["all"]
    t.check(status == "200" and length > 3600 * 2 and not rest,
            f"what it had: {status} {length} {rest[:100]}")


SEVERAL = r"""
say("get", ask("/pair?a=1&key=mine", ("X-Id: mine", "X-Secret: " + os.environ["SECOND"]))[0].split()[1])
say("other", ask("/else")[0].split()[1])
say("wrong", ask("/pair", ("X-Other: " + os.environ["SECOND"],))[0].split()[1])
"""


def test_several_grants_of_one_request(t):
    """A key pair in two headers and a third secret in the query: the server gets all of them, in
    their places; each is counted; one that is used up refuses the request."""
    world = start(t)
    place = t.fresh_dir("secrets")
    values = {"FIRST": "FIRSTxIDENTIFIERx0123456789", "SECOND": "SECONDxSECRETxOFxTHExPAIRx42",
              "THIRD": "THIRD/SECRET+INxTHExQUERY"}
    t.write(place, {name: value + "\n" for name, value in values.items()})
    for name in values:
        os.chmod(os.path.join(place, name), 0o600)
    one = lambda name, **more: {"name": name.lower(), "source": f"file:{place}/{name}",
                                "hosts": ["web.test"], "as": name, "paths": ["/pair"], **more}
    grants = [one("FIRST", header="X-Id: {}"), one("SECOND", header="X-Secret: {}"),
              one("THIRD", query="key", max_uses=2)]
    got, r = run(t, world, policy(t, grants),
                 SEVERAL + "say('spent', [ask('/pair')[0].split()[1], "
                 "ask('/pair')[0].split()[1]])\n")
    t.equal(got, {"get": "200", "other": "200", "wrong": "403", "spent": ["200", "403"]},
            f"{r.report['denials']}")
    first, other = seen(t, world)[:2]
    fields = dict(first[2])
    t.equal((first[1], fields["X-Id"], fields["X-Secret"]),
            ("/pair?a=1&key=THIRD%2FSECRET%2BINxTHExQUERY", values["FIRST"], values["SECOND"]),
            "what the server got")
    t.check("SECRET" not in json.dumps(other) and other[1] == "/else",
            f"a request that none is for: {other}")
    t.check(not any(value in r.out + json.dumps(r.report) for value in values.values()),
            "nothing of it is inside")


H2 = r"""
const http2 = require('http2');
const say = (name, value) => console.log(JSON.stringify([name, value]));
const session = http2.connect('https://web.test:9446');
const ask = headers => new Promise(resolve => {
    const stream = session.request(headers), out = { body: '' };
    stream.on('response', h => out.status = h[':status']);
    stream.on('data', d => out.body += d);
    stream.on('error', () => {});
    stream.on('close', () => resolve(out));
    stream.end();
});
(async () => {
    say('pair', (await ask({ ':path': '/pair?key=mine', 'x-id': 'mine', 'x-secret': process.env.SECOND })).status);
    say('name', (await ask({ ':path': '/x', ['x-' + process.env.SECOND.toLowerCase()]: 'y' })).status);
    session.close();
})();
"""


def test_several_grants_in_http2(t):
    """The same in HTTP/2: each field is there once and never indexed; a placeholder as the name of
    a field, where all letters are small, is stopped."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    t.write(world.dir, {"seen": ""})
    serve(t, world, [node, os.path.join(HERE, "keys_h2_server.js"), world.certificates,
                     str(H2_PORT), os.path.join(world.dir, "seen")], H2_PORT)
    place = t.fresh_dir("secrets")
    values = {"FIRST": "FIRSTxIDENTIFIERx0123456789", "SECOND": "SECONDxSECRETxOFxTHExPAIRx42",
              "THIRD": "THIRD/SECRET+INxTHExQUERY"}
    t.write(place, {name: value + "\n" for name, value in values.items()})
    for name in values:
        os.chmod(os.path.join(place, name), 0o600)
    one = lambda name, **more: {"name": name.lower(), "source": f"file:{place}/{name}",
                                "hosts": ["web.test"], "as": name, "paths": ["/pair"], **more}
    grants = [one("FIRST", header="X-Id: {}"), one("SECOND", header="X-Secret: {}"),
              one("THIRD", query="key")]
    ws = t.workspace({"client.js": H2})
    r = world.ward("run", "-p", policy(t, grants, port=H2_PORT), "--", "node", "client.js", cwd=ws,
                   report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    t.equal({line[0]: line[1] for line in map(json.loads, r.out.splitlines())},
            {"pair": 200, "name": 403}, f"{r.report['denials']}")
    requests = seen(t, world)
    path, headers = requests[0][:2]
    t.equal((len(requests), path, headers["x-id"], headers["x-secret"]),
            (1, "/pair?key=THIRD%2FSECRET%2BINxTHExQUERY", values["FIRST"], values["SECOND"]),
            "the server")


OPEN = r"""
const http2 = require('http2'), fs = require('fs');
const say = (name, value) => console.log(JSON.stringify([name, value]));
const session = http2.connect('https://web.test:9446');
const ask = (headers, begun) => new Promise(resolve => {
    const stream = session.request(headers), out = { body: '', trailers: {} };
    stream.on('response', h => out.status = h[':status']);
    stream.on('trailers', t => out.trailers = { ...t });
    stream.on('data', d => { out.body += d; if (begun) begun(); });
    stream.on('error', () => {});
    stream.on('close', () => resolve(out));
    stream.end();
});
(async () => {
    const fine = async path => {	// under load a value may have run out before the next one is there
        for (let i = 0; i < 60; i++) {
            const got = await ask({ ':path': path });
            if (got.status === 200)
                return got.status;
            await new Promise(resolve => setTimeout(resolve, 200));
        }
    };
    await fine('/a/one');
    const open = ask({ ':path': '/open' }, () => fs.writeFileSync('ready', ''));
    while (!fs.existsSync('go'))
        await new Promise(resolve => setTimeout(resolve, 50));
    say('two', await fine('/a/two'));
    fs.writeFileSync('done', '');
    say('open', await open);
    session.close();
})();
"""


@by_turns
def test_a_stream_that_was_open_before(t):
    """A stream of HTTP/2 that was open before several values came: none of them comes back, in its
    body and its trailers."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    t.write(world.dir, {"seen": ""})
    serve(t, world, [node, os.path.join(HERE, "keys_h2_server.js"), world.certificates,
                     str(H2_PORT), os.path.join(world.dir, "seen")], H2_PORT)
    place = rotating(t, stop=5)
    grant = {"name": "api", "source": f"cmd:{place}/give", "hosts": ["web.test"], "paths": ["/a/*"],
             "ttl_seconds": 2}
    ws = t.workspace({"client.js": OPEN})
    process = t.popen(t.ward_argv("run", "-p", policy(t, [grant], port=H2_PORT), "--", "node",
                                  "client.js", wrap=world.wrap(ws)), cwd=ws, root=True)
    waits = lambda name: os.path.exists(os.path.join(ws, name)) or process.poll() is not None
    t.wait_until(lambda: waits("ready"), 60, "the stream is not open")
    with t.root():
        t.write(place, {"advance": ""})
    t.wait_until(lambda: int(t.read(place, "count") or 0) >= 5 or process.poll() is not None, 60,
                 "the value does not change")
    t.write(ws, {"go": ""})
    t.wait_until(lambda: waits("done"), 60, "the last value is not used")
    with t.root():
        t.write(world.dir, {"seen.go": ""})
    out, err = (text.decode() for text in process.communicate(timeout=100))
    t.equal(process.returncode, 0, f"exit code ({out} {err})")
    got = {line[0]: line[1] for line in map(json.loads, out.splitlines())}
    t.equal((got["two"], got["open"]["status"]), (200, 200), f"answers: {got}")
    t.check("ROTATED" not in out, f"a value came back: {got}")
    t.check(re.fullmatch("begun.\n(Bearer x{30,} ?){2,}", got["open"]["body"]), f"what came: {got}")
    t.check("x" * 30 in got["open"]["trailers"].get("x-known", ""), f"trailers: {got}")


def test_grants_that_overlap(t):
    """Two grants that could be put into one place of one request: an error of ward check with its
    place, of ward run, and of ward secret grant; others go together."""
    one = {"name": "one", "source": f"file:{secret_file(t)}", "hosts": ["web.test"]}
    two = {**one, "name": "two"}
    ws = t.workspace({})
    for other, wrong in ((two, True), ({**two, "header": "authorization: Token {}"}, True),
                         ({**two, "basic": "joe"}, True), ({**two, "hosts": ["*.test"]}, True),
                         ({**two, "header": "X-Key: {}"}, False),
                         ({**two, "hosts": ["other.test"]}, False)):
        path = policy(t, [one, other])
        r = t.ward("check", path, cwd=ws)
        t.equal(r.rc != 0, wrong, f"ward check of {other}: {r.out} {r.err}")
        if wrong:
            t.contains(r.out + r.err, "grants one and two overlap", "why")
            t.contains(r.out + r.err, "credentials.grants[1]", "where")
            r = t.ward("run", "-p", path, "--", "true", cwd=ws)
            t.equal(r.rc, 125, f"ward run: {r.err}")
            t.contains(r.err, "overlap", "why")
    world = start(t)
    ward = lambda *args, **options: world.ward(*args, cwd=ws, timeout=60, **options)
    box = ward("run", "-d", "-p", policy(t, [one]), "--", "sleep", "1000").out.strip()
    try:
        late = ("{name: late, source: 'env:LATE', hosts: [web.test], header: 'authorization: {}', "
                "paths: ['/a']}")
        r = ward("secret", "grant", box, late, env={"LATE": "LATExSECRETxLATExSECRET"})
        t.equal(r.rc, 125, f"one more for the same place: {r.out} {r.err}")
        t.contains(r.err, "overlap", "why")
        t.equal(ward("secret", "revoke", box, "one").rc, 0, "revoke")
        t.equal(ward("secret", "grant", box, late, env={"LATE": "LATExSECRETxLATExSECRET"}).rc, 0,
                "it takes the place of one that was revoked")
        client = os.path.join(ws, "client.py")
        t.write(ws,
                {"client.py": CLIENT + "say('a', [ask('/a')[0].split()[1], "
                 "ask('/other')[0].split()[1]])\n"})
        r = ward("exec", box, "/usr/bin/python3", client)
        t.equal(json.loads(r.out)[1], ["200", "403"],
                f"where the new one is for, and where only the revoked one is ({r.err})")
        t.equal(dict(seen(t, world)[0][2]).get("authorization"), "LATExSECRETxLATExSECRET",
                "which secret")
    finally:
        ward("kill", box)
        ward("rm", "-f", box)
