"""Limits on bytes where requests are looked into: what a server of the test has received in all is
never more than send_limit, and what a program has received never more than receive_limit, however
many connections, streams and held bodies there are."""
import json
import os
import shutil
import sys
import time

from harness import by_turns, timeout
from harness.creds import SECRET, secret_file
from harness.world import HERE, policy, serve, trusted_world

LIMIT = 40 * 1024
TLS, PLAIN, H2 = 9470, 9471, 9472

CLIENT = r"""
import json, os, socket, ssl, sys, threading
context = ssl.create_default_context()
PORT, PLAIN = 9470, 9471
def connect(port=PORT):
    s = socket.create_connection(("web.test", port), 20)
    if port != PLAIN:
        s = context.wrap_socket(s, server_hostname="web.test")
    s.settimeout(20)
    return s
def head(path, *lines, port=PORT):
    return "\r\n".join([f"POST {path} HTTP/1.1", f"Host: web.test:{port}", *lines, "", ""]).encode()
def push(*pieces, port=PORT, read=False):
    "Sends what it can; returns how many bytes came back, and how it ended."
    got = 0
    try:
        s = connect(port)
        for piece in pieces:
            s.sendall(piece)
        while data := s.recv(65536):
            got += len(data)
            if not read:
                break
        return got, "end"
    except (OSError, ssl.SSLError) as error:
        return got, type(error).__name__
def many(n, what):
    threads = [threading.Thread(target=what) for _ in range(n)]
    for t in threads: t.start()
    for t in threads: t.join()
"""

# name: (script, fields of the rule, port)
CASES = {
    "parallel": ("many(100, lambda: push(head('/slow/x', 'Content-Length: 60000'), b'x' * 60000))",
                 {}),
    "one body": ("push(head('/slow/x', 'Content-Length: 6000000'), b'x' * 6000000)", {}),
    "chunks": ("many(60, lambda: push(head('/x', 'Transfer-Encoding: chunked'), b'3a98\\r\\n' + "
               "b'x' * 15000 + b'\\r\\n0\\r\\n\\r\\n'))", {}),
    "heads": ("many(40, lambda: push(head('/x', 'Content-Length: 0', 'X-Much: ' + 'x' * 7000)))",
              {}),
    "keep-alive": ("for _ in range(60): push(*[head('/x', 'Content-Length: 9000') + b'x' * "
                   "9000] * 3)", {}),
    "held": ("many(60, lambda: push(head('/graphql', 'Content-Type: application/json', "
             "'Content-Length: 30000'), "
             "json.dumps({'query': '{a}', 'variables': {'x': 'y' * 29958}}).encode()))",
             {"graphql": ["query"], "paths": ["/graphql"]}),
    "websockets": ("many(40, lambda: push(head('/w', 'Upgrade: websocket', 'Connection: Upgrade', "
                   "'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', "
                   "'Sec-WebSocket-Version: 13').replace(b'POST', b'GET'), "
                   "b'\\x82\\xfe\\x80\\x00mask' + b'z' * 32768))", {"websocket": True}),
    "plain": ("many(60, lambda: push(head('/slow/x', 'Content-Length: 60000', port=PLAIN), b'x' * "
              "60000, port=PLAIN))", {"mode": "http", "ports": [PLAIN]}),
}


def received(t, *paths):
    """All that came, once nothing more does."""
    before, now = -1, count(t, *paths)
    while before != now:
        before = now
        time.sleep(0.7)
        now = count(t, *paths)
    return now


def count(t, *paths):
    """What the servers have counted so far."""
    return sum(int(line) for path in paths for line in (t.read(path) or "").split())


def world_of(t):
    world = trusted_world(t)
    logs = {}
    for port, mode in ((TLS, []), (PLAIN, ["plain"])):
        logs[port] = os.path.join(world.dir, f"count{port}")
        serve(t, world, [sys.executable, os.path.join(HERE, "count_server.py"), world.certificates,
                         str(port), logs[port], *mode], port)
    return world, logs


def inside(t, world, script, *rules, grants=None, env=None, **network):
    ws = t.workspace({"client.py": CLIENT + script})
    path = policy(t, [{"host": "web.test", "ports": [TLS], "mode": "inspect", **rule}
                      for rule in rules], **network)
    if grants:
        document = json.load(open(path))
        document["credentials"] = {"mode": "just_in_time", "grants": grants}
        t.write(os.path.dirname(path), {"ward.yaml": json.dumps(document)})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=120, env=env or {})
    t.equal(r.rc, 0, f"exit code ({r.err}, {r.out})")
    return r


def check_sent(t, name, came, report):
    t.check(came <= LIMIT, f"{name}: {came} bytes left, and the limit is {LIMIT}")
    t.check(any("sent bytes is used up" in d["why"] for d in report["denials"]),
            f"{name}: the refusals: {report['denials']}")


@by_turns
@timeout(240)
def test_send_limit(t):
    """HTTP/1: many connections, held bodies, chunks, heads, requests one after the other,
    websockets, without TLS; by the rule's limit and by the whole's."""
    world, logs = world_of(t)
    after = 0
    for number, (name, (script, rule)) in enumerate(CASES.items()):
        before = after
        more = {"send_limit": "40Ki"}
        r = inside(t, world, script, {**rule, **({} if number % 2 else more)},
                   **(more if number % 2 else {}))
        after = received(t, *logs.values())
        check_sent(t, name, after - before, r.report)


def test_send_limit_with_a_secret(t):
    """The same where requests go through ward-keys."""
    world, logs = world_of(t)
    grants = [{"name": "key", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
               "header": "Authorization: Bearer {}"}]
    script = "many(60, lambda: push(head('/slow/x', 'Content-Length: 60000'), b'x' * 60000))"
    r = inside(t, world, script, {"send_limit": "40Ki"}, grants=grants)
    came = received(t, logs[TLS])
    # what ward itself puts in
    secrets = 60 * (len("Authorization: Bearer \r\n") + len(SECRET) + 40)
    t.check(came <= LIMIT + secrets, f"{came} bytes left, and the limit is {LIMIT}")
    t.check(any("sent bytes is used up" in d["why"] for d in r.report["denials"]),
            f"the refusals: {r.report['denials']}")


def test_two_rules_for_one_host(t):
    """A connection is both rules': the limit of the second holds, too."""
    world, logs = world_of(t)
    script = "many(20, lambda: push(head('/slow/x', 'Content-Length: 30000'), b'x' * 30000))"
    r = inside(t, world, script, {"methods": ["GET"]}, {"methods": ["POST"], "send_limit": "40Ki"})
    check_sent(t, "the second rule", received(t, logs[TLS]), r.report)


def test_within_the_limit(t):
    """What fits passes whole, the end of a connection at the limit is no refusal, and the next byte
    is one."""
    world, logs = world_of(t)
    r = inside(t, world, r"""
first = head('/x', 'Content-Length: 30000')
print(push(first, b'x' * 30000)[0] > 0)
rest = 40 * 1024 - len(first) - 30000
second = head('/x', 'Content-Length: 00000')
second = second.replace(b'00000', b'%05d' % (rest - len(second)))
s = connect()
s.sendall(second + b'y' * (rest - len(second)))
print(s.recv(15))
s.close()
print(push(head('/x', 'Content-Length: 0')))
""", {"send_limit": "40Ki"})
    lines = r.out.splitlines()
    t.equal(lines[:2], ["True", "b'HTTP/1.1 200 OK'"], "what fits")
    t.check("end" not in lines[2] or lines[2].startswith("(0"), f"and not a byte more: {lines[2]}")
    t.check(LIMIT - 200 <= received(t, logs[TLS]) <= LIMIT, f"{received(t, logs[TLS])} bytes left")


def test_receive_limit(t):
    """What a program receives over many connections is no more than the limit."""
    world, _ = world_of(t)
    r = inside(t, world, r"""
total, lock = [0], threading.Lock()
def one():
    n = push(head('/big', 'Content-Length: 0'), read=True)[0]
    with lock:
        total[0] += n
many(40, one)
print(total[0])
""", {}, receive_limit="200Ki")
    t.check(0 < int(r.out) <= 200 * 1024, f"{r.out} bytes came, and the limit is {200 * 1024}")
    t.check(any("received bytes is used up" in d["why"] for d in r.report["denials"]),
            f"the refusals: {r.report['denials']}")


H2_CLIENT = r"""
const http2 = require('http2');
const origin = process.argv[2];
const done = [];
for (let k = 0; k < 6; k++) {
    const session = http2.connect(origin);
    session.on('error', () => { });
    for (let i = 0; i < 50; i++)
        done.push(new Promise(resolve => {
            const stream = session.request({ ':method': 'POST', ':path': '/graphql', 'content-type': 'application/json' });
            stream.on('error', () => { });
            stream.on('close', resolve);
            stream.on('response', () => stream.resume());
            // the gateway holds it until it knows what is asked for; then all are released at once
            stream.write('{"variables": {"x": "' + 'y'.repeat(20000) + '"}, "query": ');
            setTimeout(() => stream.end('"{a}"}'), 2000);
        }));
    setTimeout(() => session.destroy(), 8000);
}
Promise.all(done).then(() => process.exit(0));
"""

H2_SERVER = r"""
const http2 = require('http2'), fs = require('fs');
const [dir, port, log] = process.argv.slice(2);
const server = http2.createSecureServer({ key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem') });
server.on('stream', (stream, headers) => {
    stream.on('error', () => { });
    stream.on('data', d => fs.appendFileSync(log, `${d.length}\n`));
    stream.on('end', () => { try { stream.respond({ ':status': 200 }); stream.end('fine'); } catch { } });
});
server.on('sessionError', () => { });
server.listen(parseInt(port));
"""


@timeout(120)
def test_send_limit_http2(t):
    """HTTP/2: held bodies of many streams over several connections."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    log = os.path.join(world.dir, "h2")
    t.write(world.dir, {"server.js": H2_SERVER})
    serve(t, world, [node, os.path.join(world.dir, "server.js"), world.certificates, str(H2),
                     log], H2)
    ws = t.workspace({"client.js": H2_CLIENT})
    r = world.ward("run", "-p",
                   policy(t,
                          [{"host": "web.test", "ports": [H2], "graphql": ["query"],
                            "paths": ["/graphql"], "send_limit": "40Ki"}]), "--",
                   "/usr/bin/env", "node", "client.js", f"https://web.test:{H2}", cwd=ws,
                   report=True, timeout=90)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    check_sent(t, "streams", received(t, log), r.report)
