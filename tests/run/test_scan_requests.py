"""credentials.scan_requests: secrets in requests under inspect rules, over HTTP/1.1 and HTTP/2."""
import json
import os
import shutil
import sys

from harness import by_turns
from harness.world import HERE, denial, serve, trusted_world

TOKEN = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
PORT, PORT2 = 9451, 9452

# Writes all that arrives into a file, and answers when a request is whole.
SERVER = r"""
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body, left = b"", self.rfile
        if self.headers.get("transfer-encoding") == "chunked":
            while True:
                n = int(left.readline(), 16)
                part = left.read(n)
                left.readline()
                if not n:
                    break
                body += part
        else:
            n = int(self.headers.get("content-length", 0))
            body = left.read(n)
            if len(body) < n:
                return
        with open(sys.argv[2], "ab") as f:
            f.write(b"WHOLE " + self.path.encode() + b" " + str(self.headers).encode() + body
                    + b"\n")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    do_GET = do_POST
    def log_message(self, *a):
        pass
server = http.server.ThreadingHTTPServer(("", int(sys.argv[3])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/server.pem", sys.argv[1] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
CLIENT = r"""
import gzip, http.client, json, ssl, zlib
TOKEN = "TOKEN_HERE"
context = ssl.create_default_context()
def ask(name, path, body=None, headers=None, chunks=None):
    c = http.client.HTTPSConnection("web.test", 9451, timeout=30, context=context)
    try:
        c.request("POST", path, iter(chunks) if chunks else body, headers or {},
                  encode_chunked=bool(chunks))
        r = c.getresponse()
        said = r.read().decode(errors="replace")
        reason = json.loads(said)["reason"] if r.status >= 400 else ""
        print(json.dumps([name, r.status, reason, said if reason else ""]), flush=True)
    except OSError as error:
        print(json.dumps([name, 0, type(error).__name__, ""]), flush=True)
text = json.dumps({"text": "token %s here" % TOKEN})
half = len(text) // 2
ask("clean", "/clean", "x" * 100000)
ask("body", "/body", text)
ask("chunks", "/chunks", chunks=[text[:half].encode(), text[half:].encode()],
    headers={"Transfer-Encoding": "chunked"})
ask("large", "/large", "word " * 40000 + text + "word " * 40000)
ask("gzip", "/gzip", gzip.compress(text.encode()), {"Content-Encoding": "gzip"})
ask("unknown", "/unknown", zlib.compress(text.encode()), {"Content-Encoding": "br"})
ask("header", "/header", "x", {"X-Note": "see " + TOKEN})
ask("target", "/target?q=" + TOKEN, "x")
ask("login", "/login", "x", {"Authorization": "Bearer " + TOKEN})
ask("placeholder", "/placeholder", "password: ${PASSWORD} key AKIAIOSFODNN7EXAMPLE")
ask("person", "/person", "card 4012 8888 8888 1881 and DE89 3704 0044 0532 0130 00")
"""
CLIENT2 = r"""
const http2 = require('http2');
const TOKEN = 'TOKEN_HERE', text = JSON.stringify({ text: 'token ' + TOKEN + ' here' });
const session = http2.connect('https://web.test:9452');
session.on('error', e => console.log(JSON.stringify(['session', e.code])));
function ask(name, headers, pieces) {
    return new Promise(resolve => {
        const stream = session.request({ ':method': 'POST', ...headers });
        let status = 0, said = '';
        stream.on('response', h => status = h[':status']);
        stream.on('data', d => said += d);
        stream.on('error', () => 0);
        stream.on('close', () => {
            let reason = '';
            try { reason = JSON.parse(said).reason || ''; } catch (e) { }
            console.log(JSON.stringify([name, status, reason]));
            resolve();
        });
        let i = 0;
        const next = () => i < pieces.length ? stream.write(pieces[i++], () => setTimeout(next, 20))
                                             : stream.end();
        next();
    });
}
(async () => {
    await ask('clean', { ':path': '/clean' }, ['x'.repeat(100000)]);
    await ask('body', { ':path': '/body' }, [text]);
    await ask('pieces', { ':path': '/pieces' }, [text.slice(0, 30), text.slice(30)]);
    await ask('header', { ':path': '/header', 'x-note': TOKEN }, ['x']);
    await ask('target', { ':path': '/target?q=' + TOKEN }, ['x']);
    for (let i = 0; i < 40; i++)
        await ask('many' + i, { ':path': '/many' }, ['y'.repeat(5000), text]);
    await ask('after', { ':path': '/after' }, ['x'.repeat(200000)]);
    session.close();
})();
"""


def start(t):
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER, "seen": ""})
    serve(t, world, [sys.executable, os.path.join(world.dir, "server.py"), world.certificates,
                     os.path.join(world.dir, "seen"), str(PORT)], PORT)
    return world


def run(t, world, port, script, argv, **credentials):
    ws = t.workspace({"client": script.replace("TOKEN_HERE", TOKEN)})
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    rule = {"host": "web.test", "ports": [port], "mode": "inspect"}
    t.write(os.path.dirname(path), {"ward.yaml": json.dumps({
        "version": 1, "network": {"mode": "restricted", "egress_allowlist": [rule]},
        "credentials": credentials})})
    r = world.ward("run", "-p", path, "--", *argv, "client", cwd=ws, report=True, timeout=90)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    said = {line[0]: line[1:] for line in map(json.loads, r.out.splitlines())}
    seen = t.read(os.path.join(world.dir, "seen"))
    return said, seen, r


def events(t, report):
    shown = t.ward("audit", "show", "--json", report["run"]).out
    return [e for e in map(json.loads, shown.splitlines()) if e.get("kind") == "credential.found"]


def whole(seen, path):
    return any(line.startswith(f"WHOLE /{path}") for line in seen.splitlines())


def test_block(t):
    world = start(t)
    said, seen, r = run(t, world, PORT, CLIENT, ["/usr/bin/python3"], scan_requests="block")
    for name in ("clean", "login", "placeholder", "person"):
        t.equal(said[name][:2], [200, ""], name)
    for name in ("body", "chunks", "gzip", "header", "target"):
        t.equal(said[name][:2], [403, "secret"], name)
        t.check(f"/{name}" not in seen, f"the server has heard nothing of {name}")
    t.check(said["large"][:2] in ([403, "secret"], [0, "BrokenPipeError"],
                                  [0, "ConnectionResetError"]), said["large"])
    t.check(not whole(seen, "large"), "a large body is never complete")
    t.equal(said["unknown"][:2], [403, "unscanned"], "a coding that cannot be read")
    t.contains(said["body"][2], "github-token", "the program learns why")
    t.check(TOKEN not in seen.replace("Bearer " + TOKEN, ""), "no secret has arrived")
    t.check(TOKEN[4:] not in json.dumps(r.report) + r.err, "no secret in the report")
    found = events(t, r.report)
    t.check(any(e["object"] == "github-token" and e["action"] == "deny" and e["path"] == "body"
                and e["host"] == "web.test" for e in found), f"events: {found}")
    t.check(TOKEN[4:] not in json.dumps(found), "no secret in the journal")
    t.check(denial(t, r.report, "POST /body to web.test:9451"), "a denial")


def test_redact(t):
    world = start(t)
    said, seen, r = run(t, world, PORT, CLIENT, ["/usr/bin/python3"], scan_requests="redact",
                        scan_personal=True)
    for name in ("clean", "body", "chunks", "large", "header", "target", "login", "placeholder",
                 "person"):
        t.equal(said[name][:2], [200, ""], name)
        t.check(whole(seen, name), name)
    t.equal(said["gzip"][:2], [403, "secret"], "what cannot be overwritten")
    t.equal(said["unknown"][:2], [403, "unscanned"], "a coding that cannot be read")
    t.check(TOKEN not in seen.replace("Bearer " + TOKEN, ""), "no secret has arrived")
    t.equal(seen.count("token ghp_" + "*" * 36 + " here"), 3, "overwritten, as long as before")
    t.check("4012 8888" not in seen and "DE89 3704" not in seen, "nor personal data")
    t.contains(" ".join(r.report["notes"]), "github-token in the body of a request to web.test",
               "the operator is told")


def test_log(t):
    world = start(t)
    said, seen, r = run(t, world, PORT, CLIENT, ["/usr/bin/python3"], secret_scanning=True)
    for name in ("clean", "body", "chunks", "large", "gzip", "unknown", "header", "target"):
        t.equal(said[name][:2], [200, ""], name)
    t.check(seen.count(TOKEN) >= 6, "log stops nothing")
    found = events(t, r.report)
    t.check(len(found) >= 6 and all(e["action"] == "log" for e in found), f"events: {found}")


def test_off(t):
    world = start(t)
    said, seen, r = run(t, world, PORT, CLIENT, ["/usr/bin/python3"])
    t.equal(said["body"][:2], [200, ""], "nothing is stopped")
    t.equal(events(t, r.report), [], "and nothing reported")


@by_turns
def test_http2(t):
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    for mode, port in (("block", PORT2), ("redact", PORT2 + 1)):
        t.write(world.dir, {"seen": ""})
        serve(t, world, [node, os.path.join(HERE, "keys_h2_server.js"), world.certificates,
                         str(port), os.path.join(world.dir, "seen")], port)
        said, seen, r = run(t, world, port, CLIENT2.replace("9452", str(port)), [node],
                            scan_requests=mode)
        expected = [403, "secret"] if mode == "block" else [200, ""]
        for name in ("body", "pieces", "header", "target", "many0", "many39"):
            t.equal(said[name], expected, f"{mode} {name}")
        t.equal(said["clean"], [200, ""], mode)
        t.equal(said["after"], [200, ""], f"{mode}: windows are given back")
        t.check(TOKEN not in seen, f"{mode}: no secret has arrived")
        t.check(mode == "block" or "/body" in seen, f"the server logs requests: {seen[:300]}")
