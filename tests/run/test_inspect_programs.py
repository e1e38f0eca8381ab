"""Real programs and large bodies through rules that look into requests: gRPC and a websocket chat
with packages of npm, gigabytes both ways. `make test-programs` installs the packages and runs
these."""
import json
import os
import re
import shutil
import threading
import time

from harness import serial, slow, timeout
from harness.creds import SECRET, secret_file
from harness.world import HERE, need, policy, serve, trusted_world

PROTO = """
syntax = "proto3";
package ward;
message Text { string text = 1; int32 number = 2; }
service Talk {
  rpc Echo (Text) returns (Text);
  rpc Count (Text) returns (stream Text);
  rpc Sum (stream Text) returns (Text);
  rpc Chat (stream Text) returns (stream Text);
  rpc Fail (Text) returns (Text);
}
"""

GRPC_SERVER = r"""
const fs = require('fs'), grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader');
const [dir, proto, port, seen] = process.argv.slice(2);
const who = call => {	// as whom it is called; what is known of that is sent back wherever it can be
    const value = String(call.metadata.get('authorization')[0]);
    if (seen)
        fs.appendFileSync(seen, value + '\n');
    return value;
};
const ward = grpc.loadPackageDefinition(loader.loadSync(proto)).ward;
const server = new grpc.Server({ 'grpc.max_receive_message_length': 1 << 26 });
server.addService(ward.Talk.service, {
    Echo: (call, done) => {
        const trailers = new grpc.Metadata();
        trailers.set('x-sum', String(call.request.text.length));
        if (seen) {
            const first = new grpc.Metadata();
            first.set('x-first', who(call));
            call.sendMetadata(first);
            trailers.set('x-last', who(call));
        }
        done(null, { text: seen && call.request.text == 'who' ? 'you are ' + who(call) : call.request.text, number: call.metadata.get('x-number')[0] | 0 }, trailers);
    },
    Count: call => {
        let i = 0;
        (function more() {
            while (i < call.request.number)
                if (!call.write({ number: i++, text: seen ? who(call) : '' }))
                    return call.once('drain', more);
            call.end();
        })();
    },
    Sum: (call, done) => {
        let sum = 0;
        call.on('data', m => sum += m.number);
        call.on('end', () => done(null, { number: sum }));
    },
    Chat: call => {
        call.on('data', m => call.write({ text: m.text.toUpperCase(), number: m.number }));
        call.on('end', () => call.end());
    },
    Fail: (call, done) => {
        const metadata = new grpc.Metadata();
        metadata.set('x-why', 'asked for');
        done({ code: grpc.status.PERMISSION_DENIED, details: 'not for you', metadata });
    },
});
const tls = grpc.ServerCredentials.createSsl(null, [{ private_key: fs.readFileSync(dir + '/server.key'), cert_chain: fs.readFileSync(dir + '/server.pem') }]);
server.bindAsync('0.0.0.0:' + port, tls, e => { if (e) throw e; });
"""

GRPC_CLIENT = r"""
const grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader');
const ward = grpc.loadPackageDefinition(loader.loadSync('talk.proto')).ward;
const client = new ward.Talk('web.test:9447', grpc.credentials.createSsl(), { 'grpc.max_receive_message_length': 1 << 26 });
const say = (...what) => console.log(JSON.stringify(what));
function unary(name, request, metadata) {
    return new Promise(resolve => {
        const out = {};
        const call = client[name](request, metadata || new grpc.Metadata(), { deadline: Date.now() + 60000 }, (e, m) => { out.error = e; out.answer = m; });
        call.on('status', s => resolve({ ...out, status: s }));
    });
}
async function main() {
    const metadata = new grpc.Metadata();
    metadata.set('x-number', '7');
    let r = await unary('Echo', { text: 'hello' }, metadata);
    say('echo', r.answer.text, r.answer.number, r.status.code, r.status.metadata.get('x-sum')[0]);
    r = await unary('Echo', { text: 'x'.repeat(5000000) });
    say('large', r.answer.text.length, r.status.metadata.get('x-sum')[0]);
    let n = 0;
    await new Promise(resolve => client.Count({ number: 5000 }).on('data', m => n += m.number == n).on('end', resolve));
    say('count', n);
    say('sum', await new Promise(resolve => {
        const call = client.Sum((e, m) => resolve(m.number));
        for (let i = 1; i <= 1000; i++)
            call.write({ number: i });
        call.end();
    }));
    // each answer comes before the next is said
    say('chat', await new Promise(resolve => {
        const call = client.Chat(), heard = [];
        call.on('data', m => {
            heard.push(m.text);
            if (m.number < 20)
                call.write({ text: 'word' + (m.number + 1), number: m.number + 1 });
            else
                call.end();
        });
        call.on('end', () => resolve([heard.length, heard[19]]));
        call.write({ text: 'word1', number: 1 });
    }));
    r = await unary('Fail', { text: 'x' });
    say('fail', r.status.code, r.status.details, r.status.metadata.get('x-why')[0]);
    const many = await Promise.all([...Array(200).keys()].map(i => unary('Echo', { text: 'n' + i })));
    say('many', many.filter((m, i) => m.answer && m.answer.text == 'n' + i).length);
    const other = new ward.Talk('web.test:9447', grpc.credentials.createSsl());
    r = await new Promise(resolve => other.makeUnaryRequest('/ward.Secret/Get', x => Buffer.from(''), x => x, {}, e => resolve(e)));
    say('refused', r.code);
    client.close();
    other.close();
}
main().catch(e => { console.error(e); process.exit(1); });
"""

WS_SERVER = r"""
const fs = require('fs'), { WebSocketServer } = require('ws');
const [dir, port] = process.argv.slice(2);
const server = require('https').createServer({ key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem') });
const room = new WebSocketServer({ server, perMessageDeflate: true });
room.on('connection', s => s.on('message', (data, binary) => {
    if (String(data) == 'bye')
        return s.close(4001, 'as you wish');
    for (const other of room.clients)
        other.send(data, { binary });
}));
server.listen(port, '0.0.0.0');
"""

WS_CLIENT = r"""
const WebSocket = require('ws'), crypto = require('crypto');
const say = (...what) => console.log(JSON.stringify(what));
const open = path => new Promise((resolve, reject) => { const s = new WebSocket('wss://web.test:9448' + path); s.heard = []; s.on('message', (d, b) => { s.heard.push([d, b]); s.wake && s.wake(); });
    s.on('open', () => resolve(s)); s.on('unexpected-response', (q, r) => reject(r.statusCode)); s.on('error', e => reject(e)); });
const hear = async (s, n) => { while (s.heard.length < n) await new Promise(r => s.wake = r); return s.heard[n - 1]; };
async function main() {
    const a = await open('/room'), b = await open('/room');
    for (let i = 1; i <= 50; i++) {	// they take turns: each hears the other before it answers
        (i % 2 ? a : b).send('line ' + i);
        const [x, y] = [await hear(a, i), await hear(b, i)];
        if (String(x[0]) != 'line ' + i || String(y[0]) != 'line ' + i)
            throw new Error('heard ' + x[0]);
    }
    say('chat', a.heard.length, b.heard.length);
    const large = crypto.randomBytes(3000000);
    a.send(large);
    const [data, binary] = await hear(b, 51);
    say('large', binary, Buffer.compare(data, large));
    say('pong', await new Promise(resolve => { a.on('pong', d => resolve(String(d))); a.ping('are you there'); }));
    say('close', await new Promise(resolve => { a.on('close', (code, why) => resolve([code, String(why)])); a.send('bye'); }));
    b.terminate();
    say('other path', await open('/secret').catch(e => e));
    process.exit(0);	// the refused request is still open
}
main().catch(e => { console.error(e); process.exit(1); });
"""


def modules(t):
    """Where npm's packages are: `make test-programs` puts them there."""
    path = os.environ.get("WARD_TEST_NODE")
    if not path or not os.path.isdir(os.path.join(path, "node_modules")):
        t.skip("no packages of npm (WARD_TEST_NODE): make test-programs installs them")
    return path


def run_inside(t, world, rules, files, path, argv, **more):
    ws = t.workspace(files)
    document = {**json.load(open(policy(t, rules))), **more}
    document["filesystem"] = {"host_mounts": [path]}
    document["process"] = {"env": ["NODE_PATH=" + os.path.join(path, "node_modules")]}
    file = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(file, "w") as f:
        json.dump(document, f)
    return world.ward("run", "-p", file, "--", *argv, cwd=ws, report=True, timeout=150)


def said(t, r):
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    return {line[0]: line[1:] for line in map(json.loads, r.out.splitlines())}


@slow
@timeout(200)
def test_grpc(t):
    """gRPC: unary, both kinds of streams and both at once, trailers, an error's status, many calls
    at a time; a service that no rule has is refused."""
    node, = need(t, "node")
    path = modules(t)
    world = trusted_world(t)
    t.write(world.dir, {"server.js": GRPC_SERVER, "talk.proto": PROTO})
    serve(t, world, ["env", f"NODE_PATH={path}/node_modules", node,
                     os.path.join(world.dir, "server.js"), world.certificates,
                     os.path.join(world.dir, "talk.proto"), "9447"], 9447)
    rules = [{"host": "web.test", "ports": [9447], "methods": ["POST"], "paths": ["/ward.Talk/*"],
              "content_types": ["application/grpc"]}]
    got = said(t, run_inside(t, world, rules, {"client.js": GRPC_CLIENT, "talk.proto": PROTO}, path,
                             [node, "client.js"]))
    wanted = {"echo": ["hello", 7, 0, "5"], "large": [5000000, "5000000"], "count": [5000],
              "sum": [500500], "chat": [[20, "WORD20"]],
              "fail": [7, "not for you", "asked for"], "many": [200], "refused": [7]}
    for name, value in wanted.items():
        t.equal(got.get(name), value, name)


GRPC_CREDENTIAL = r"""
const grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader');
const ward = grpc.loadPackageDefinition(loader.loadSync('talk.proto')).ward;
const make = options => new ward.Talk('web.test:9447', grpc.credentials.createSsl(), { 'grpc.max_receive_message_length': 1 << 26, ...options });
const plain = make({}), packed = make({ 'grpc.default_compression_algorithm': 2 });
const say = (...what) => console.log(JSON.stringify(what));
const token = process.env.API_KEY;
const mine = () => { const m = new grpc.Metadata(); m.set('authorization', 'Bearer ' + token); return m; };
function unary(client, text) {
    return new Promise(resolve => {
        const out = {};
        const call = client.Echo({ text }, mine(), { deadline: Date.now() + 60000 }, (e, m) => { out.error = e && e.details; out.answer = m; });
        call.on('metadata', m => out.first = m.get('x-first')[0]);
        call.on('status', s => resolve({ ...out, code: s.code, last: s.metadata.get('x-last')[0] }));
    });
}
async function main() {
    let r = await unary(plain, 'who');
    say('who', r.answer.text, r.code, r.first, r.last);
    r = await unary(plain, 'x'.repeat(5000000));
    say('large', r.answer.text.length, r.code);
    const heard = [];
    await new Promise(resolve => plain.Count({ number: 100 }, mine()).on('data', m => heard.push(m.text)).on('end', resolve));
    say('count', heard.length, [...new Set(heard)]);
    say('sum', await new Promise(resolve => {
        const call = plain.Sum(mine(), (e, m) => resolve(m.number));
        for (let i = 1; i <= 1000; i++)
            call.write({ number: i });
        call.end();
    }));
    // each answer comes before the next is said, whatever it ends with
    say('chat', await new Promise(resolve => {
        const call = plain.Chat(mine()), heard = [];
        call.on('data', m => {
            heard.push(m.text);
            if (m.number < 20)
                call.write({ text: 'ends with sk-proj-'.slice(0, -m.number % 8 || undefined), number: m.number + 1 });
            else
                call.end();
        });
        call.on('end', () => resolve(heard.length));
        call.write({ text: 's', number: 1 });
    }));
    r = await unary(packed, 'packed '.repeat(1000));
    say('packed', r.answer && r.answer.text.length, r.code);
    r = await unary(plain, 'look: ' + token);
    say('leak', r.code, !r.answer);
    r = await unary(packed, 'y'.repeat(3000) + token);
    say('packed leak', r.code, !r.answer);
    say('late leak', await new Promise(resolve => {
        const call = plain.Chat(mine()), heard = [];
        call.on('data', m => { heard.push(m.text); call.write({ text: 'and ' + token }); });
        call.on('error', e => resolve([heard, e.code != 0]));
        call.write({ text: 'fine' });
    }));
    const many = await Promise.all([...Array(200).keys()].map(i => unary(plain, 'n' + i)));
    say('many', many.filter((m, i) => m.answer && m.answer.text == 'n' + i).length);
    plain.close();
    packed.close();
}
main().catch(e => { console.error(e); process.exit(1); });
"""


@slow
@timeout(200)
def test_grpc_with_a_credential(t):
    """The credential of a gRPC client is a placeholder: the server gets the secret with each call,
    messages, metadata and trailers that bring it back have none of it, and a message with it is
    stopped, compressed or not."""
    node, = need(t, "node")
    path = modules(t)
    world = trusted_world(t)
    t.write(world.dir, {"server.js": GRPC_SERVER, "talk.proto": PROTO, "seen": ""})
    serve(t, world, ["env", f"NODE_PATH={path}/node_modules", node,
                     os.path.join(world.dir, "server.js"), world.certificates,
                     os.path.join(world.dir, "talk.proto"), "9447",
                     os.path.join(world.dir, "seen")], 9447)
    rules = [{"host": "web.test", "ports": [9447], "methods": ["POST"], "paths": ["/ward.Talk/*"],
              "content_types": ["application/grpc"]}]
    grants = [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
               "as": "API_KEY", "paths": ["/ward.Talk/*"]}]
    r = run_inside(t, world, rules, {"client.js": GRPC_CREDENTIAL, "talk.proto": PROTO}, path,
                   [node, "client.js"], credentials={"mode": "just_in_time", "grants": grants})
    got = said(t, r)
    masked = "Bearer " + "x" * len(SECRET)
    wanted = {"who": ["you are " + masked, 0, masked, masked], "large": [5000000, 0],
              "count": [100, [masked]], "sum": [500500], "chat": [20],
              "packed": [7000, 0], "leak": [7, True], "packed leak": [7, True],
              "late leak": [[["FINE"], True]], "many": [200]}
    for name, value in wanted.items():
        t.equal(got.get(name), value, name)
    seen = set(t.read(os.path.join(world.dir, "seen")).splitlines())
    t.equal(seen, {f"Bearer {SECRET}"}, "what the server got")
    t.check(SECRET not in r.out + r.err + json.dumps(r.report), "nothing came back")


@slow
@timeout(200)
def test_websocket_chat(t):
    """Two programs chat over websockets with compression, megabytes, ping and a close code; another
    path is refused."""
    node, = need(t, "node")
    path = modules(t)
    world = trusted_world(t)
    t.write(world.dir, {"server.js": WS_SERVER})
    serve(t, world, ["env", f"NODE_PATH={path}/node_modules", node,
                     os.path.join(world.dir, "server.js"), world.certificates, "9448"], 9448)
    rules = [{"host": "web.test", "ports": [9448], "paths": ["/room"], "websocket": True}]
    got = said(t, run_inside(t, world, rules, {"client.js": WS_CLIENT}, path, [node, "client.js"]))
    t.equal(got, {"chat": [50, 50], "large": [True, 0], "pong": ["are you there"],
                  "close": [[4001, "as you wish"]], "other path": [403]}, "what was said")


def watch_front(t, process, peaks, stop):
    """Notes the gateway's memory (PSS) while a run is under way."""
    while not stop.is_set():
        try:
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
                for pid in f.read().split():
                    if open(f"/proc/{pid}/comm").read().strip() == "ward-gateway":
                        with open(f"/proc/{pid}/smaps_rollup") as rollup:
                            peaks.append(next(int(line.split()[1]) * 1024 for line in rollup
                                              if line.startswith("Pss:")))
        except (OSError, StopIteration):
            pass
        time.sleep(0.1)


@slow
@serial
@timeout(400)
def test_gigabytes(t):
    """2 GiB up and down, over HTTP/1.1 and HTTP/2, arrive whole, and the gateway holds next to
    nothing of them."""
    node, = need(t, "node")
    need(t, "curl")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates, "9445",
                     "h2"], 9445)
    size = 2 << 30
    ws = t.workspace({})
    script = f"for v in 1.1 2; do head -c {size} /dev/zero | curl -sS --http$v -T - https://web.test:9445/sum; echo; " \
             f"curl -sS --http$v https://web.test:9445/size?n={size} | wc -c; done"
    rules = [{"host": "web.test", "ports": [9445], "mode": "inspect"}]
    process = t.popen(t.ward_argv("run", "-p", policy(t, rules), "--", "/bin/sh", "-c", script,
                                  wrap=world.wrap(ws)), root=True)
    peaks, stop = [], threading.Event()
    with t.root():
        watcher = threading.Thread(target=watch_front, args=(t, process, peaks, stop))
        watcher.start()
        out, err = process.communicate(timeout=380)
        stop.set()
        watcher.join()
    lines = (out.decode() if isinstance(out, bytes) else out).split("\n")
    t.equal(process.returncode, 0, f"exit code ({err})")
    digest = "a7c744c13cc101ed66c29f672f92455547889cc586ce6d44fe76ae824958ea51"	# of 2 GiB of zeros
    t.equal([line.split(" ")[:2] for line in lines if " " in line], [[str(size), digest]] * 2,
            f"what was uploaded ({out} {err})")
    t.equal([line for line in lines if re.fullmatch(r"\d+", line)], [str(size)] * 2,
            "what was downloaded")
    t.check(len(peaks) > 10, f"the gateway was seen {len(peaks)} times")
    t.say(f"front: at most {max(peaks) >> 10} KiB")
    t.check(max(peaks) < (24 << 20) or "asan" in t.ward_path,
            f"the gateway has grown to {max(peaks) >> 20} MiB")
