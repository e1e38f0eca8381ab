"""Secrets in HTTP/2: each stream gets its own grant, is looked through, and its answer has none of
it. The ways in gRPC's manner are here without its packages; with them in
test_inspect_programs.py."""
import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import urllib.parse

from harness import by_turns
from harness.creds import SECRET, below, has, secret_file
from harness.world import HERE, serve, trusted_world

PORT = 9446
AWS = ("AKIAONLYTHESERVERSEE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYONLYxTHExSERVER",
       "TOKENxONLYxTHExSERVERxMAYxSEExIT")

# What every client has: ask(), grpc(), a session for each host.
CLIENT = r"""
const http2 = require('http2'), zlib = require('zlib'), fs = require('fs');
const say = (name, value) => console.log(JSON.stringify([name, value]));
const token = process.env.API_KEY, sessions = {};
function session(host) {
    if (!sessions[host]) {
        sessions[host] = http2.connect(`https://${host}:9446`);
        sessions[host].on('error', e => say('session', e.code));
    }
    return sessions[host];
}
function ask(headers, body, trailers, host = 'web.test') {
    return new Promise(resolve => {
        const stream = session(host).request(headers, { endStream: body === undefined, waitForTrailers: !!trailers });
        const out = { body: '', trailers: {} };
        stream.on('wantTrailers', () => stream.sendTrailers(trailers));
        stream.on('response', h => { out.status = h[':status']; out.headers = h; });
        stream.on('trailers', t => out.trailers = t);
        stream.on('data', d => out.body += d.toString('latin1'));
        stream.on('error', e => out.error = e.code);
        stream.on('close', () => { out.code = stream.rstCode; resolve(out); });
        if (body !== undefined)
            stream.end(body);
    });
}
function grpc(bytes, packed) {
    bytes = Buffer.from(bytes);
    const head = Buffer.alloc(5);
    head[0] = packed ? 1 : 0;
    head.writeUInt32BE(bytes.length, 1);
    return Buffer.concat([head, bytes]);
}
const post = more => ({ ':method': 'POST', ...more });
async function close() {
    for (const host in sessions)
        sessions[host].close();
}
"""


def start(t):
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    t.write(world.dir, {"seen": ""})
    serve(t, world, [node, os.path.join(HERE, "keys_h2_server.js"), world.certificates, str(PORT),
                     os.path.join(world.dir, "seen")], PORT)
    return world


def seen(t, world):
    return [json.loads(line)
            for line in (t.read(os.path.join(world.dir, "seen")) or "").splitlines()]


def policy(t, grants, rule=None, **credentials):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    rules = [{"host": name, "ports": [PORT], "mode": "inspect", **(rule or {})}
             for name in ("web.test", "other.test", "db.test", "evil.test")]
    with open(path, "w") as f:
        json.dump({"version": 1, "network": {"mode": "restricted", "egress_allowlist": rules},
                   "credentials": {"mode": "just_in_time", "grants": grants, **credentials}}, f)
    return path


def api(t, **more):
    return {"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
            "as": "API_KEY", **more}


def run(t, world, path, script, **options):
    ws = t.workspace({"client.js": CLIENT + script})
    r = world.ward("run", "-p", path, "--", "node", "client.js", cwd=ws, report=True, timeout=100,
                   **options)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    return {line[0]: line[1] for line in map(json.loads, r.out.splitlines())}, r


FORMS = (SECRET, SECRET.encode().hex(),
         *(base64.b64encode(b"x" * n + SECRET.encode())[4 + n:-4].decode() for n in range(3)))


def clean(t, *texts):
    for form in FORMS:
        for text in texts:
            t.check(form not in text, f"{form} came back")


@by_turns
def test_each_stream(t):
    """Headers, bodies in pieces, trailers of answers: the server has the secret, the program has
    not, whatever comes back; another host gets the placeholder."""
    world = start(t)
    got, r = run(t, world, policy(t, [api(t)]), r"""
async function main() {
    say('get', await ask({ ':path': '/a?x=1', authorization: 'Bearer ' + token }));
    say('post', await ask(post({ ':path': '/b', 'x-stays': 'y' }), 'hello', { 'x-sum': 'four' }));
    say('large', (await ask(post({ ':path': '/c' }), Buffer.alloc(3000000, 'z'))).headers['x-length']);
    say('other', (await ask({ ':path': '/d', authorization: 'Bearer ' + token }, undefined, undefined, 'other.test')).status);
    say('packed', (await ask({ ':path': '/packed' })).status);
    const parts = [];
    for (const range of ['4-12', '0-30', '30-70', '35-45', '40-40', '72-78'])
        parts.push(await ask({ ':path': '/file', range: 'bytes=' + range }));
    say('parts', parts.map(p => [p.status, p.body, p.headers['content-range'], p.headers['content-length']]));
    await Promise.all([...Array(40)].map(() => ask({ ':path': '/file', range: 'bytes=0-9' })));
    say('pause', await new Promise(resolve => {
        const stream = session('web.test').request({ ':path': '/pause' }), got = [];
        stream.on('data', d => got.push(d.toString()));
        stream.on('end', () => resolve(got));
    }));
    say('beyond', (await ask({ ':path': '/file', range: 'bytes=100-110' })).status);
    await close();
}
main();
""")
    server = {line[0]: line for line in seen(t, world)}
    t.equal(server["/a?x=1"][1].get("authorization"), f"Bearer {SECRET}", "the server has it")
    t.equal((server["/b"][1].get("authorization"), server["/b"][1].get("x-stays"), server["/b"][2],
             server["/b"][3].get("x-sum")),
            (f"Bearer {SECRET}", "y", "hello", "four"), "and all else")
    t.check(SECRET not in json.dumps(server["/d"]) and "WARD" in server["/d"][1]["authorization"],
            f"another host: {server['/d']}")
    t.equal((got["get"]["status"], got["large"], got["other"], got["packed"]),
            (200, "3000000", 200, 502), "answers")
    file = f"the beginning Bearer {'x' * len(SECRET)} and the end"
    t.equal(got["parts"], [[206, file[a:b + 1], f"bytes {a}-{b}/{len(file)}", str(b + 1 - a)]
                           for a, b in ((4, 12), (0, 30), (30, 70), (35, 45), (40, 40), (72, 78))],
            "parts of a file that has it")
    begun, rest = "".join(got["pause"])[:30], "".join(got["pause"])[30:]
    t.equal((begun, rest), ("y" * 10 + f"Bearer {SECRET}"[:20], "x" * (len(SECRET) - 13) + "."),
            f"what came while the server was silent, and the rest: {got['pause']}")
    t.equal(len(got["pause"]), 3, f"the first does not wait for the last: {got['pause']}")
    t.equal(got["beyond"], 416, "a part that is not there")
    for name in ("get", "post"):
        t.contains(got[name]["headers"]["x-back"], "xxxxxx", "the header")
        t.contains(got[name]["trailers"]["x-trail"], "so it was Bearer xxxxxx", "the trailer")
        t.contains(got[name]["body"], "xxxxxxxx", "the body")
    clean(t, r.out, r.err, json.dumps(r.report))
    t.contains(" ".join(r.report["notes"]), "sent the secret", "the report says that it came back")


def test_never_inside(t):
    """While streams are open, no process but those two has it; both of HTTP/2's tables are
    clean."""
    world = start(t)
    ws = t.workspace({"client.js": CLIENT + r"""
async function main() {
    for (let i = 0; i < 5; i++)
        await ask(post({ ':path': '/a', authorization: 'Bearer ' + token }), 'x' + i);
    const open = session('web.test').request(post({ ':path': '/chat' }));
    open.on('data', () => fs.writeFileSync('ready', ''));
    open.write(grpc('first'));
    while (!fs.existsSync('go'))
        await new Promise(r => setTimeout(r, 20));
    open.end();
    await close();
}
main();
"""})
    process = t.popen(t.ward_argv("run", "-p", policy(t, [api(t)]), "--", "node", "client.js",
                                  wrap=world.wrap(ws)), cwd=ws, root=True)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")) or process.poll() is not None,
                 60, "nothing came back")
    with t.root():
        holders = {name: has(pid, SECRET.encode()) for pid, name in below(process.pid)}
    t.equal({name for name, found in holders.items() if found}, {"ward-secrets", "ward-keys"},
            f"who has it: {holders}")
    t.check("node" in holders or any("node" in name or "Main" in name for name in holders),
            f"all were looked at: {holders}")
    with open(os.path.join(ws, "go"), "w"):
        pass
    out, err = process.communicate(timeout=60)
    t.equal(process.returncode, 0, f"exit code ({out} {err})")
    t.equal([line[1].get("authorization") for line in seen(t, world)], [f"Bearer {SECRET}"] * 6,
            "the server had it each time")


LEAKS = r"""
async function main() {
    const gz = text => zlib.gzipSync(Buffer.from(text));
    const type = { 'content-type': 'application/grpc' };
    const cases = {
        header: () => ask({ ':path': '/l', 'x-other': token }),
        query: () => ask({ ':path': '/l?k=' + token }),
        body: () => ask(post({ ':path': '/l' }), '{"a": "' + token + '"}'),
        base64: () => ask(post({ ':path': '/l' }), Buffer.from('ab' + token + 'c').toString('base64')),
        trailers: () => ask(post({ ':path': '/l' }), 'x', { 'x-trail': token }),
        gzip: () => ask(post({ ':path': '/l', 'content-encoding': 'gzip' }), gz('z'.repeat(5000) + token)),
        message: () => ask(post({ ':path': '/chat', ...type }), grpc('well ' + token)),
        'packed message': () => ask(post({ ':path': '/chat', ...type, 'grpc-encoding': 'gzip' }), Buffer.concat([grpc('plain'), grpc(gz('well ' + token), true)])),
        'packed unknown': () => ask(post({ ':path': '/chat', ...type, 'grpc-encoding': 'snappy' }), grpc('what', true)),
        'packed unsaid': () => ask(post({ ':path': '/chat', ...type }), grpc(gz('what'), true)),
        'no message': () => ask(post({ ':path': '/chat', ...type, 'grpc-encoding': 'gzip' }), Buffer.from('no gRPC at all: ' + token)),
        'between messages': () => ask(post({ ':path': '/chat', ...type }), Buffer.concat([Buffer.from([0, 0, 0, 0, 20]), Buffer.alloc(10), Buffer.from(token)])),
        length: () => ask(post({ ':path': '/l', 'content-length': String(token.length + 2) }), '"' + token + '"'),
    };
    for (const name in cases)
        say(name, await cases[name]());
    // the head has gone, messages have been answered: the stream is broken off in the middle
    const stream = session('web.test').request(post({ ':path': '/chat/late', ...type }));
    let heard = 0;
    stream.on('error', () => {});
    stream.on('data', () => { if (!heard++) stream.write(grpc('and now ' + token)); });
    stream.write(grpc('harmless'));
    say('late', await new Promise(resolve => stream.on('close', () => resolve([heard, stream.rstCode != 0]))));
    say('fine', (await ask(post({ ':path': '/chat/fine', ...type, 'grpc-encoding': 'gzip' }), Buffer.concat([grpc('plain'), grpc(gz('packed'), true)]))).trailers['grpc-status']);
    await close();
}
main();
"""


def test_leaks(t):
    """A placeholder anywhere but in its place stops the stream it is in, and no other: headers,
    query, bodies, trailers, gRPC messages, compressed ones too."""
    world = start(t)
    got, r = run(t, world, policy(t, [api(t)]), LEAKS)
    placeholder = re.search(r"sk-proj-WARD\w+", json.dumps(seen(t, world)))
    t.check(not placeholder, f"it left: {placeholder}")
    wanted = {"header", "query", "body", "base64", "trailers", "gzip", "message", "packed message",
              "packed unknown", "packed unsaid", "no message", "between messages", "length"}
    for name in wanted:
        answer = got[name]
        t.check(answer.get("status") == 403 or (answer["code"] and answer.get("status") is None),
                f"{name}: {answer}")
        if answer.get("status") == 403:
            t.contains(answer["body"], "ward: ", f"{name} says why")
    t.equal([got["header"]["status"], got["query"]["status"], got["length"]["status"]], [403] * 3,
            "what is known before it is sent")
    t.equal(got["late"], [1, True], "a stream that was fine at first")
    late = [line[2] for line in seen(t, world) if line[0] == "/chat/late"]
    t.check(late and "harmless" in late[0] and "and now" not in late[0],
            f"nothing of the message left: {late}")
    t.equal(got["fine"], "0", "compressed messages without a secret")
    t.check(not any(line[0] in ("/l", "/l?k=") and line[3] != "aborted" for line in seen(t, world)),
            f"whole requests: {seen(t, world)}")
    whats = [d["what"] for d in r.report["denials"]]
    t.contains(whats, "placeholder of grant api to web.test", "the report")


def test_streams_that_wait_for_each_other(t):
    """Messages that end with the beginning of the secret are not held back: each is answered before
    the next is sent. A secret across two is no secret; more than half of one is overwritten."""
    world = start(t)
    ends = [SECRET[:n] for n in (1, 5, 20, len(SECRET) - 1)]
    got, r = run(t, world, policy(t, [api(t)]), r"""
async function main() {
    const ends = %s, heard = [];
    const stream = session('web.test').request(post({ ':path': '/chat', 'content-type': 'application/grpc+proto', te: 'trailers' }));
    let at = 0, trailers;
    stream.on('trailers', t => trailers = t);
    stream.on('data', d => {
        heard.push(d.subarray(5).toString());
        if (++at < ends.length)
            stream.write(grpc('it ends with ' + ends[at]));
        else
            stream.end();
    });
    stream.write(grpc('it ends with ' + ends[0]));
    await new Promise(resolve => stream.on('close', resolve));
    say('heard', heard);
    say('trailers', trailers['grpc-message']);
    await close();
}
main();
""" % json.dumps(ends))
    t.equal(got["heard"], ["it ends with " + end for end in ends[:-1]]
            + ["it ends with " + "x" * len(ends[-1])], "what came back")
    t.contains(got["trailers"], "sent Bearer xxxx", "the trailers")
    clean(t, got["trailers"])


@by_turns
def test_silence(t):
    """A server that stops in the middle of the secret, because its program made it or by itself:
    not more than its first letters come. A stream that nobody reads does not stop the others."""
    world = start(t)
    got, r = run(t, world, policy(t, [api(t)]), r"""
function slow(headers, end) {
    return new Promise(resolve => {
        const stream = session('web.test').request(headers, { endStream: !end }), got = [];
        stream.on('data', d => got.push(d.toString()));
        stream.on('end', () => resolve(got));
        if (end)
            setTimeout(() => { got.push('|'); stream.end('abc'); }, end);
    });
}
async function main() {
    const large = session('web.test').request({ ':path': '/large' });
    large.on('error', () => {});
    await new Promise(resolve => large.on('response', () => { large.pause(); setTimeout(resolve, 300); }));
    const all = await Promise.all([slow({ ':path': '/pause' }), slow({ ':path': '/cut' }), slow(post({ ':path': '/early' }), 2500)]);
    say('pause', all[0]);
    say('cut', all[1]);
    say('early', all[2]);
    large.destroy();
    await close();
}
main();
""")
    bearer = "Bearer " + SECRET
    t.equal("".join(got["pause"]), "y" * 10 + bearer[:20] + "x" * (len(bearer) - 20) + ".",
            "a pause")
    t.check(len(got["pause"]) > 1, f"what waited went while it did: {got['pause']}")
    t.equal("".join(got["cut"]), "y" * 10 + "Bearer " + "x" * len(SECRET) + ".", "a later one")
    t.check(len(got["cut"]) > 1, f"what waited went while it did: {got['cut']}")
    before, after = "".join(got["early"]).split("|")
    t.equal(before, "y" * 300 + "Bearer ", "before the request was complete")
    t.equal(after, "x" * len(SECRET) + ".", "and then")


def test_many_streams(t):
    """A hundred streams at a time over a server that takes fifty; with max_uses exactly as many as
    that get the secret."""
    world = start(t)
    script = r"""
async function main() {
    const all = await Promise.all([...Array(100).keys()].map(i => ask(post({ ':path': '/many/' + i }), 'y'.repeat(i * 300))));
    say('statuses', all.map(a => a.status));
    say('lengths', all.map(a => a.headers['x-length']));
    await close();
}
main();
"""
    got, _ = run(t, world, policy(t, [api(t)]), script)
    t.equal(got["statuses"], [200] * 100, "all are answered")
    t.equal(got["lengths"], [str(i * 300) for i in range(100)], "each with its own")
    t.equal({line[1].get("authorization") for line in seen(t, world)}, {f"Bearer {SECRET}"},
            "each had it")
    t.write(world.dir, {"seen": ""})
    got, r = run(t, world, policy(t, [api(t, max_uses=7)]),
                 script.replace("say('lengths', all.map(a => a.headers['x-length']));", ""))
    t.equal(sorted(got["statuses"]), [200] * 7 + [403] * 93, "max_uses")
    t.equal(len([line for line in seen(t, world) if line[1].get("authorization")]), 7,
            "what the server got")


def sign(method, path, query, headers, names, body_hash, key, scope, date):
    """Signature Version 4 as AWS describes it."""
    canonical = "\n".join([method, path, query, *[f"{n}:{headers[n]}" for n in names], "",
                           ";".join(names), body_hash])
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    k = ("AWS4" + key).encode()
    for part in scope.split("/"):
        k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    return hmac.new(k, text.encode(), hashlib.sha256).hexdigest()


def test_places(t):
    """Basic, a query's parameter and AWS signatures, in HTTP/2; a signature over a body of which no
    hash was said."""
    world = start(t)
    secrets = t.fresh_dir("secrets")
    t.write(secrets, {"aws": "\n".join(AWS) + "\n", "key": SECRET + "\n"})
    for name in ("aws", "key"):
        os.chmod(os.path.join(secrets, name), 0o600)
    grants = [{"name": "basic", "source": f"file:{secrets}/key", "hosts": ["web.test"],
               "basic": "joe"},
              {"name": "query", "source": f"file:{secrets}/key", "hosts": ["other.test"],
               "query": "key"},
              {"name": "aws",
               "source": "env:AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY,AWS_SESSION_TOKEN",
               "hosts": ["db.test"], "sigv4": "eu-west-1/*"}]
    got, r = run(t, world, policy(t, grants), r"""
async function main() {
    say('basic', await ask({ ':path': '/basic', authorization: 'Basic bWU6bm8=' }));
    say('query', await ask({ ':path': '/query?a=1&key=mine&b=2' }, undefined, undefined, 'other.test'));
    const scope = '20260102/eu-west-1/dynamodb/aws4_request', names = 'host;x-amz-date;x-amz-security-token';
    const headers = { ':path': '/signed?b=2&a=1', 'x-amz-date': '20260102T030405Z', 'x-amz-security-token': process.env.AWS_SESSION_TOKEN,
        authorization: `AWS4-HMAC-SHA256 Credential=${process.env.AWS_ACCESS_KEY_ID}/${scope}, SignedHeaders=${names}, Signature=00` };
    say('signed', await ask(post(headers), 'some bytes', undefined, 'db.test'));
    say('unsigned', (await ask({ ':path': '/unsigned' }, undefined, undefined, 'db.test')).status);
    await close();
}
main();
""", env={"AWS_ACCESS_KEY_ID": AWS[0], "AWS_SECRET_ACCESS_KEY": AWS[1],
          "AWS_SESSION_TOKEN": AWS[2]})
    server = {line[0].split("?")[0]: line for line in seen(t, world)}
    t.equal(server["/basic"][1]["authorization"],
            "Basic " + base64.b64encode(f"joe:{SECRET}".encode()).decode(), "basic")
    t.equal(server["/query"][0], "/query?a=1&b=2&key=" + urllib.parse.quote(SECRET, safe=""),
            "query")
    names, scope = ["host", "x-amz-date",
                    "x-amz-security-token"], "20260102/eu-west-1/dynamodb/aws4_request"
    headers = {"host": f"db.test:{PORT}", "x-amz-date": "20260102T030405Z",
               "x-amz-security-token": AWS[2]}
    wanted = sign("POST", "/signed", "a=1&b=2", headers, names,
                  hashlib.sha256(b"some bytes").hexdigest(), AWS[1], scope, headers["x-amz-date"])
    t.equal(server["/signed"][1]["authorization"],
            f"AWS4-HMAC-SHA256 Credential={AWS[0]}/{scope}, SignedHeaders={';'.join(names)}, "
            f"Signature={wanted}", "signature")
    t.equal((server["/signed"][1]["x-amz-security-token"], server["/signed"][2]),
            (AWS[2], "some bytes"), "token and body")
    t.equal([got[n]["status"] for n in ("basic", "query", "signed")] + [got["unsigned"]],
            [200, 200, 200, 403], "answers")
    t.check("/unsigned" not in server, "what is not signed does not leave")
    clean(t, r.out)
    t.check(AWS[1] not in r.out and AWS[2] not in r.out, "nothing of AWS")
