"""Budgets: requests a minute, and what language models cost. The models are those of
harness/llm_server.py."""
import json
import os
import shutil
import sys

from harness import by_turns, timeout
from harness.boxes import clean
from harness.world import HERE, policy, serve, trusted_world

PORT = 9460
PRICES = [{"model": "unit*", "input": 1, "output": 2},
          {"model": "short", "input": 1, "output": 2, "max_output": 10},
          {"model": "dear", "input": 100, "output": 200, "max_output": 10}]

CLIENT = r"""
import gzip, http.client, json, ssl, sys, threading
context = ssl.create_default_context()
HOST, PORT = "web.test", 9460
def connect():
    return http.client.HTTPSConnection(HOST, PORT, timeout=30, context=context)
def say(name, *what):
    print(json.dumps([name, *what]), flush=True)
def ask(path="/v1/chat/completions", model="unit-1", raw=None, headers=None, method="POST",
        metadata=None, **body):
    c = connect()
    data = raw if raw is not None else json.dumps({"model": model,
                                                   "messages": [{"role": "user", "content": "hi"}],
                                                   "metadata": metadata or {}, **body})
    c.request(method, path, data, {"Content-Type": "application/json",
                                   "Accept-Encoding": "gzip, br", **(headers or {})})
    r = c.getresponse()
    return r.status, r.read().decode(errors="replace"), dict(r.getheaders())
"""


H2_CLIENT = r"""
const http2 = require('http2');
const session = http2.connect(process.argv[2]);
const say = (...what) => console.log(JSON.stringify(what));
function ask(body, path = '/v1/chat/completions', method = 'POST') {
    return new Promise(resolve => {
        const stream = session.request({ ':method': method, ':path': path, 'accept-encoding': 'br' }, { endStream: method == 'GET' });
        const out = { body: '' };
        stream.on('response', h => { out.status = h[':status']; out.headers = h; });
        stream.on('data', d => out.body += d);
        stream.on('error', e => out.error = e.code);
        stream.on('close', () => { try { out.json = JSON.parse(out.body); } catch { } resolve(out); });
        if (method == 'POST')
            stream.end(JSON.stringify(body));
    });
}
async function main() {
    let r = await ask({ model: 'unit-1', max_tokens: 1000 });
    say('paid', r.status, r.json.version, r.json.encoding);
    r = await ask({ model: 'TRICK' });
    say('unpriced', r.status, r.json.ward.reason);
    const many = [...Array(6)].map(() => ask({ model: 'unit-1', max_tokens: 2500, wait: true }));
    let refused = 0;
    await new Promise(resolve => many.forEach(p => p.then(m => { if (m.status == 429 && ++refused == 3) resolve(); })));
    await ask(null, '/go', 'GET');
    say('parallel', (await Promise.all(many)).map(m => m.status).sort());
    r = await ask({ model: 'unit-1', max_tokens: 10000 });
    say('left', r.status, r.json.error.code);
    r = await ask({ model: 'short', stream: true });
    const tail = r.body.split('event: error\ndata: ');
    const words = tail[0].split('word').length - 1;
    const ended = (await ask(null, '/ended', 'GET')).body;
    say('cut', words, JSON.parse(tail[1]).error.code, ended);
    r = await ask({ model: 'unit-1', max_tokens: 1 });
    say('after', r.status, r.json.error.code);
    session.close();
}
main();
"""


def llm_world(t):
    world = trusted_world(t)
    log = os.path.join(world.dir, "llm")
    serve(t, world, [sys.executable, os.path.join(HERE, "llm_server.py"), world.certificates,
                     str(PORT), log], PORT)
    return world, lambda: [line for line in (t.read(log) or "").splitlines()
                           if line.startswith("llm /")]


def rule(**more):
    return [{"host": "web.test", "ports": [PORT], **more}]


def inside(t, world, script, rules, env=None, grants=None, **network):
    """Runs a client inside; returns what it said, by name, and the report."""
    ws = t.workspace({"client.py": CLIENT + script})
    path = policy(t, rules, **{"prices": PRICES, **network})
    if grants:
        document = json.load(open(path))
        document["credentials"] = {"mode": "just_in_time", "grants": grants}
        t.write(os.path.dirname(path), {"ward.yaml": json.dumps(document)})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=90, env=env or {})
    t.equal(r.rc, 0, f"exit code ({r.err})")
    said = [json.loads(line) for line in r.out.splitlines()]
    return {line[0]: line[1:] for line in said}, r.report


def test_spent(t):
    """Each answer is paid for as it says; what the next may cost must be left; the agent is told in
    its API's own form."""
    world, log = llm_world(t)
    said, report = inside(t, world, r"""
for i in range(3):
    status, body, headers = ask(max_tokens=1000)
    say(f"paid{i}", status, json.loads(body)["usage"]["prompt_tokens"],
        headers.get("X-Ward-Budget"))
status, body, headers = ask(max_tokens=1000)
say("long", status, json.loads(body), headers.get("Retry-After"))
status, body, headers = ask(max_tokens=100)
say("shorter", status, headers.get("X-Ward-Budget"))
status, body, headers = ask("/v1/messages", max_tokens=1)
say("over", status, json.loads(body))
say("free", ask("/v1/models", raw="", method="GET")[0], ask("/v1/messages/count_tokens")[0])
""", rule(spend_limit=0.01))
    for i in range(3):
        t.equal(said[f"paid{i}"][:2], [200, 1000], "an answer that is paid for")
    t.equal(said["paid0"][2], None, "no warning yet")
    status, body, retry = said["long"]
    t.equal((status, retry), (402, None), "what may cost more than is left")
    t.equal((body["type"], body["error"]["type"], body["error"]["code"], body["ward"]["reason"]),
            ("error", "insufficient_quota", "insufficient_quota", "spent"), "in OpenAI's form")
    t.contains(body["error"]["message"], "0.001 of the budget is left", "what is left")
    t.contains(body["error"]["message"], "max_tokens", "what to do")
    t.equal(said["shorter"], [200, "90% of the budget is spent"], "a request that fits")
    t.equal((said["over"][0], said["over"][1]["error"]["type"]), (402, "billing_error"),
            "in Anthropic's form")
    t.contains(said["over"][1]["error"]["message"], "the budget is spent", "the end")
    t.equal(said["free"], [200, 200], "what costs nothing goes on")
    t.equal(report["network"]["spent"], "0.012", "the report")
    t.check(any("spend_limit: 0.009 of 0.01 is spent" in note for note in report["notes"]),
            f"the operator is warned: {report['notes']}")
    t.equal([line.split()[3] for line in log() if "/models" not in line and "count" not in line],
            ["identity"] * 4, "what the server was asked for, and how often")
    t.contains(report["denials"][0]["remedy"], "spend_limit", "remedy")
    page = t.ward("audit", "report", report["run"]).out
    t.contains(page, '<b>0.012</b><small>spent</small>', "the page")
    t.contains(page, '<td>unit-1</td><td class="n">4</td><td class="n">4000</td>', "its table")


def test_parallel(t):
    """Requests at one time cannot spend the same money: what each may cost is held until it is
    over."""
    world, log = llm_world(t)
    said, report = inside(t, world, r"""
got, lock = [], threading.Condition()
def one():
    r = ask(max_tokens=2000, metadata={"wait": True, "out": 100})
    with lock:
        got.append(r)
        lock.notify()
threads = [threading.Thread(target=one) for _ in range(8)]
for th in threads: th.start()
with lock:
    lock.wait_for(lambda: len(got) >= 6, 30)
    early = list(got)
ask("/go", raw="", method="GET")
for th in threads: th.join()
say("early", sorted(r[0] for r in early), [r[2].get("Retry-After") for r in early],
    json.loads(early[0][1])["error"]["type"])
say("all", sorted(r[0] for r in got))
say("after", ask(max_tokens=2000)[0])
""", rule(llm=True), spend_limit=0.01)
    t.equal(said["early"], [[429] * 6, ["1"] * 6, "rate_limit_error"],
            "two fit, six are to try again")
    t.equal(said["all"], [[200, 200] + [429] * 6], "all of them")
    t.equal(said["after"], [200], "what was not spent is given back")
    t.equal(len(log()), 3, "what the server saw")
    t.equal(report["network"]["spent"], "0.0054", "the report")


def test_streams(t):
    """Streams are counted by what they say at the end; broken off or silent ones by what they may
    have cost; one beyond the budget ends with words."""
    world, log = llm_world(t)
    script = r"""
def stream(path="/v1/chat/completions", read=None, **body):
    c = connect()
    c.request("POST", path, json.dumps({"stream": True, "messages": [], **body}),
              {"Content-Type": "application/json"})
    r = c.getresponse()
    data = r.read(read).decode()
    if read:
        r.close(); c.sock.close(); c.close()
    return r.status, data
say("openai", *stream(model="unit-1", max_tokens=1000))
say("anthropic", *stream("/v1/messages", model="unit-1", max_tokens=1000))
status, data = stream(model="short", metadata={"events": 20000, "usage": False})
say("cut", status, data[-900:], data.count("word"))
say("after", ask(max_tokens=1)[0])
"""
    said, report = inside(t, world, script, rule(spend_limit=0.02))
    for name in ("openai", "anthropic"):
        t.equal(said[name][0], 200, name)
        t.check(said[name][1].endswith("data: [DONE]\n\n") and said[name][1].count("word") == 10,
                f"{name} is whole: {said[name]}")
    status, tail, words = said["cut"]
    t.check(words > 3000, f"{words} words before the budget was spent")
    t.check(words < 8000, f"{words} words for 14,000 millionths at 2 each")
    event = json.loads(tail.split("event: error\ndata: ")[1])
    t.equal((event["type"], event["error"]["code"]), ("error", "insufficient_quota"),
            "the last event")
    t.equal(said["after"], [402], "and then nothing more")
    t.check(0.0199 < float(report["network"]["spent"]) < 0.0215,
            f"spent {report['network']['spent']}")
    # what does not say its price costs what it may have cost: silent, broken off by the program,
    # compressed, without usage
    said, report = inside(t, world, script.split("say(")[0] + r"""
say("silent", stream(model="unit-1", max_tokens=1000, metadata={"events": 500, "usage": False})[0])
say("gone", stream("/v1/messages", model="unit-1", read=200, max_tokens=1000, metadata={"events": 100, "in": 3000, "wait_at_end": True})[0])
ask("/go", raw="", method="GET")
say("packed", ask(max_tokens=1000, metadata={"gzip": True, "in": 1, "out": 1})[0])
say("mute", ask(max_tokens=1000, metadata={"usage": False})[0])
say("error", ask(max_tokens=1000, metadata={"status": 529})[0])
""", rule(llm=True), spend_limit=1)
    t.equal([said[n][0] for n in ("silent", "gone", "packed", "mute", "error")],
            [200, 200, 200, 200, 529], "statuses")
    spent = float(report["network"]["spent"]) * 1000000
    # of each at least its 1000 tokens at 2, and a token at 1 for each byte that was asked; gone:
    # 3000 tokens were said
    t.check(4 * 2000 + 4 * 50 < spent < 14000, f"spent {spent}")


# Ways for a program not to read what it has asked for. Each is tried much more often than the
# budget allows.
RESETS = {
    "hang up before the answer": """
    c.request("POST", "/v1/chat/completions", body(wait=True), HEADERS)
    time.sleep(0.3)	# it is on its way
    c.sock.close()""",
    "reset before the answer": """
    c.request("POST", "/v1/chat/completions", body(wait=True), HEADERS)
    time.sleep(0.3)	# it is on its way
    c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.sock.close()""",
    "hang up in a stream": """
    c.request("POST", "/v1/messages", body(stream=True, wait_at_end=True), HEADERS)
    c.getresponse().read(150)
    c.sock.close()""",
    "half of an answer": """
    c.request("POST", "/v1/chat/completions", body(times=100000), HEADERS)
    c.getresponse().read(10)
    c.sock.close()""",
    "a stream without usage": """
    c.request("POST", "/v1/chat/completions", body(stream=True, usage=False), HEADERS)
    c.getresponse().read()""",
    "a server that dies": """
    c.request("POST", "/v1/chat/completions", body(die=True), HEADERS)
    c.getresponse().read()""",
}

RESET_CLIENT = r"""
import os, socket, struct, time
HEADERS = {"Content-Type": "application/json"}
def body(stream=False, **how):
    return json.dumps({"model": "unit-1", "max_tokens": 1000, "stream": stream, "metadata": {"in": 50, "out": 1000, **how}})
for n in range(25):
    c = connect()
    try:
RESET
    except (OSError, http.client.HTTPException):
        pass
    c.close()
say("done")
"""


@by_turns
@timeout(240)
def test_resets(t):
    """What the provider can bill at its dearest for requests that the program takes back, hangs up
    on or does not read never passes the limit by more than one request."""
    world, log = llm_world(t)
    for name, reset in RESETS.items():
        before = len(log())
        lines = "\n".join("    " + line for line in reset.strip("\n").splitlines())
        said, report = inside(t, world, RESET_CLIENT.replace("RESET\n", lines + "\n"),
                              rule(spend_limit=0.02))
        came = len(log()) - before
        t.check(1 <= came and came * 2050 <= 20000 + 2050,
                f"{name}: the provider has {came} requests of 2050 each, and the limit is 20000")
        t.check(float(report["network"]["spent"]) * 1000000 >= came * 2000,
                f"{name}: {came} requests cost {report['network']['spent']}")


H2_RESET_CLIENT = r"""
const http2 = require('http2');
const [origin, kind] = process.argv.slice(2);
const later = ms => new Promise(resolve => setTimeout(resolve, ms));
async function main() {
    let session = http2.connect(origin);
    session.on('error', () => { });
    for (let i = 0; i < 25; i++) {
        if (session.closed || session.destroyed) {
            session = http2.connect(origin);
            session.on('error', () => { });
        }
        const stream = session.request({ ':method': 'POST', ':path': '/v1/chat/completions' });
        stream.on('error', () => { });
        const first = new Promise(resolve => { stream.once('data', resolve); stream.once('close', resolve); });
        stream.end(JSON.stringify({ model: 'unit-1', max_tokens: 1000, wait: kind != 'stream', stream: kind == 'stream' }));
        await (kind == 'stream' ? first : Promise.race([later(300), new Promise(r => stream.once('response', r))]));
        if (kind == 'rst' || kind == 'stream')
            stream.close(http2.constants.NGHTTP2_CANCEL);
        else if (kind == 'goaway')
            session.goaway(), session.close(), await later(50), session.destroy();
        else
            session.destroy();
        await later(20);
    }
    process.exit(0);
}
main();
"""


@by_turns
@timeout(240)
def test_resets_http2(t):
    """The same over HTTP/2: streams that are reset before and during their answer, connections that
    are given up with and without GOAWAY."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    log = os.path.join(world.dir, "llm2")
    serve(t, world, [node, os.path.join(HERE, "llm_server.js"), world.certificates, str(PORT),
                     log], PORT)
    for kind in ("rst", "stream", "goaway", "destroy"):
        before = len((t.read(log) or "").splitlines())
        ws = t.workspace({"client.js": H2_RESET_CLIENT})
        r = world.ward("run", "-p", policy(t, rule(spend_limit=0.02), prices=PRICES), "--",
                       "/usr/bin/env", "node", "client.js", f"https://web.test:{PORT}", kind,
                       cwd=ws, report=True, timeout=90)
        t.equal(r.rc, 0, f"{kind}: exit code ({r.err})")
        came = len((t.read(log) or "").splitlines()) - before
        t.check(1 <= came and came * 2050 <= 20000 + 2050,
                f"{kind}: the provider has {came} requests of 2050 each, and the limit is 20000")
        t.check(float(r.report["network"]["spent"]) * 1000000 >= came * 2000,
                f"{kind}: {came} requests cost {r.report['network']['spent']}")


def test_input_that_the_server_fetches(t):
    """A few bytes that name a page, a file or a conversation may be a book at the provider: nothing
    else is under way beside such a request, and one that is taken back costs all that was left."""
    world, log = llm_world(t)
    said, report = inside(t, world, r"""
got = []
def one():
    got.append(ask(max_tokens=1000, metadata={"in": 15000, "out": 1000, "wait": True},
                   previous_response_id="r")[0])
threads = [threading.Thread(target=one) for _ in range(8)]
for th in threads: th.start()
import time
end = time.monotonic() + 20
while len(got) < 7 and time.monotonic() < end: time.sleep(0.05)
ask("/go", raw="", method="GET")
for th in threads: th.join()
say("statuses", sorted(got))
""", rule(spend_limit=0.02))
    t.equal(said["statuses"], [[200] + [429] * 7], "one at a time")
    t.equal((len(log()), report["network"]["spent"]), (1, "0.017"),
            "what the server saw, and what it cost")
    said, report = inside(t, world, r"""
c = connect()
c.request("POST", "/v1/messages",
          json.dumps({"model": "unit-1", "max_tokens": 1000, "stream": True,
                      "metadata": {"in": 15000, "wait_at_end": True},
                      "messages": [
                          {"content": [{"source": {"type": "url", "url": "https://a.example"}}]}]}),
          {"Content-Type": "application/json"})
c.getresponse().read(100)
c.sock.close()
c.close()
import time
status = 429
while status == 429:
    time.sleep(0.2)
    status = ask(max_tokens=1000)[0]
say("after", status)
""", rule(spend_limit=0.02))
    t.equal(said["after"], [402], "nothing is left")
    t.equal(report["network"]["spent"], "0.02", "the report")


@by_turns
def test_killed(t):
    """A sandbox that is killed while a request is under way: the report says what it may cost."""
    world, log = llm_world(t)
    ws = t.workspace({"client.py": CLIENT + 'ask(max_tokens=1000, metadata={"wait": True})\n'})
    r = world.ward("run", "--timeout", "4s", "-p", policy(t, rule(llm=True), prices=PRICES), "--",
                   "/usr/bin/python3", "client.py", cwd=ws, report=True, timeout=60)
    t.equal(r.rc, 124, f"the time is up ({r.err})")
    t.equal(len(log()), 1, "what the server saw")
    t.check(0.002 <= float(r.report["network"].get("spent", 0)) < 0.0025,
            f"spent {r.report['network']}")


def test_tricks(t):
    """What a server could read in another way, or charge for in a way that nobody counts, does not
    pass."""
    world, log = llm_world(t)
    said, report = inside(t, world, r"""
JSONS = {"unknown": '{"model": "TRICK-secret-model"}',
         "twice": '{"model": "unit-1", "model": "TRICK"}',
         "escape": '{"model": "unit-1", "mod\\u0065l": "TRICK"}',
         "exponent": '{"model": "unit-1", "max_tokens": 1e9}',
         "second": '{"model": "unit-1"}{"model": "TRICK"}', "none": "{}", "form": "model=unit-1",
         "null": '{"model": "unit-1", "max_tokens": 1, "max_tokens": null}',
         "text": '{"model": "unit-1", "max_tokens": 1, "max_completion_tokens": "100000"}',
         "case": '{"model": "unit-1", "Model": "TRICK"}'}
for name, text in JSONS.items():
    status, body, _ = ask(raw=text)
    say(name, status, json.loads(body)["ward"]["reason"])
status, body, _ = ask(raw=gzip.compress(b'{"model": "TRICK"}'),
                      headers={"Content-Encoding": "gzip"})
say("gzip", status, json.loads(body)["ward"]["reason"])
for name, path in {"batch": "/v1/messages/batches", "images": "/v1/images/generations",
                   "spelled": "/v1/chat/%63ompletions", "threads": "/v1/threads/runs"}.items():
    status, body, _ = ask(path)
    say(name, status, json.loads(body)["ward"]["reason"])
status, body, _ = ask("/v1/responses", background=True, max_tokens=10)
say("background", status, json.loads(body)["ward"]["reason"])
status, body, _ = ask("/v1/responses/TRICK", raw='{"model": "TRICK"}', method="GET")
say("get", status, json.loads(body)["ward"]["reason"])
status, body, _ = ask("/v1/responses/TRICK", raw="", method="GET",
                      headers={"X-HTTP-Method-Override": "POST"})
say("override", status, json.loads(body)["ward"]["reason"])
status, body, _ = ask("/v1/realtime?model=TRICK", raw="", method="GET",
                      headers={"Upgrade": "websocket", "Connection": "Upgrade",
                               "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"})
say("realtime", status)
status, body, _ = ask(max_tokens=10**18, n=10**9)
say("huge", status, json.loads(body)["ward"]["reason"])
# all that the server needs, and an end that never comes
import socket
s = context.wrap_socket(socket.create_connection((HOST, PORT), 20), server_hostname=HOST)
body = b'{"model": "unit-1", "max_tokens": 1000}'
s.sendall(b"POST /early/v1/chat/completions HTTP/1.1\r\nHost: %s:%d\r\nContent-Length: %d\r\n\r\n%s"
          % (HOST.encode(), PORT, len(body) + 1, body))
s.settimeout(20)
got = b""
while b"}}" not in got and (more := s.recv(65536)):
    got += more
say("early", got[:12].decode())
""", rule(llm=True, websocket=True), spend_limit=1)
    for name in ("unknown", "twice", "escape", "exponent", "second", "none", "form", "null", "text",
                 "case"):
        t.equal(said[name], [403, "unpriced"], name)
    for name in ("batch", "images", "spelled", "threads", "background", "get", "override", "gzip"):
        t.equal(said[name], [403, "unmetered"], name)
    t.equal(said["realtime"], [403], "a websocket")
    t.equal(said["huge"], [402, "spent"], "more than there is in all")
    t.equal(said["early"], ["HTTP/1.1 200"], "an answer before the request's end")
    t.equal(report["network"]["spent"], "0.003", "is paid for all the same")
    t.check(not [line for line in log() if "TRICK" in line],
            f"the server saw what was refused: {log()}")


def test_limits_that_nobody_heeds(t):
    """Only the key that a path's service heeds makes what is held for its answer small: the others
    may be there, and change nothing."""
    world, log = llm_world(t)
    said, _ = inside(t, world, r"""
KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"):
    say(path, *[ask(path, **{key: 10, "metadata": {"in": 1, "out": 1}})[0] for key in KEYS])
say("both", ask("/v1/responses", max_tokens=10, max_output_tokens=10,
                metadata={"in": 1, "out": 1})[0])
""", rule(spend_limit=0.01))
    t.equal(said, {"/v1/chat/completions": [200, 200, 402], "/v1/completions": [200, 402, 402],
                   "/v1/responses": [402, 402, 200], "/v1/messages": [200, 402, 402],
                   "both": [200]},
            "which key counts where")
    t.equal(len(log()), 6, "what the server saw")


def test_unpriced(t):
    """network.unpriced says what becomes of a model without a price; a secret that the agent never
    holds makes no difference to the count."""
    world, log = llm_world(t)
    script = ('say("unknown", *ask(model="UNKNOWN", max_tokens=10, metadata={"out": 10})[:1])\n'
              'say("known", ask(max_tokens=10, metadata={"out": 10})[0])\n')
    said, report = inside(t, world, script, rule(llm=True), unpriced="dearest")
    t.equal(said, {"unknown": [200], "known": [200]}, "dearest")
    t.equal(report["network"]["spent"], "0.10302", "as the dearest, and as it costs")
    grants = [{"name": "model", "source": "env:MODEL_KEY", "hosts": ["web.test"],
               "header": "Authorization: Bearer {}"}]
    said, report = inside(t, world, script, rule(llm=True), unpriced="free", grants=grants,
                          env={"MODEL_KEY": "SECRETMODELKEY0123456789"})
    t.equal(said, {"unknown": [200], "known": [200]}, "free")
    t.equal(report["network"]["spent"], "0.00102", "only what is known")
    said, report = inside(t, world, r"""
say("odd", ask(raw='{"model": "UNKNOWN", "Model": "dear", "max_tokens": 1}')[0])
status, body, _ = ask("/v1/images/generations", model="UNKNOWN")
say("other", status, json.loads(body)["ward"]["reason"])
""", rule(llm=True), unpriced="free", spend_limit=0.001)
    t.equal(said, {"odd": [402], "other": [403, "unmetered"]},
            "only a name that was read can be free")
    for unpriced in ("dearest", "free"):	# a few bytes that are a book when they are inflated
        said, report = inside(t, world, r"""
status, body, _ = ask(raw=gzip.compress(json.dumps({"model": "TRICK", "max_tokens": 1, "metadata": {"in": 250000, "out": 1}, "text": "word " * 200000}).encode()), headers={"Content-Encoding": "gzip"})
say("packed", status)
""", rule(llm=True), unpriced=unpriced, spend_limit=20)
        t.equal(said, {"packed": [403]}, f"a request whose size nobody knows, {unpriced}")
        t.equal(report["network"].get("spent", "0"), "0", f"what it cost, {unpriced}")
    t.check(not [line for line in log() if "TRICK" in line],
            f"the server saw what was refused: {log()}")
    t.check(all("SECRETMODELKEY0123456789" in line for line in log()[-2:]),
            f"the secret was put in: {log()}")


def test_http2(t):
    """The same over HTTP/2, each stream by itself."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "llm_server.js"), world.certificates,
                     str(PORT)], PORT)
    ws = t.workspace({"client.js": H2_CLIENT})
    r = world.ward("run", "-p", policy(t, rule(spend_limit=0.02), prices=PRICES), "--",
                   "/usr/bin/env", "node", "client.js", f"https://web.test:{PORT}", cwd=ws,
                   report=True, timeout=90)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    said = {line[0]: line[1:] for line in map(json.loads, r.out.splitlines())}
    t.equal(said["paid"], [200, "2.0", "identity"], "an answer that is paid for, over HTTP/2")
    t.equal(said["unpriced"], [403, "unpriced"], "a model without a price")
    t.equal(said["parallel"], [[200, 200, 200, 429, 429, 429]],
            "what is held by streams of one connection")
    t.equal(said["left"], [402, "insufficient_quota"], "what is left does not do")
    t.check(1000 < said["cut"][0] < 7000, f"words before the budget was spent: {said['cut']}")
    t.equal(said["cut"][1:], ["insufficient_quota", "100"],
            "the last event, and the server's stream was ended")
    t.equal(said["after"], [402, "insufficient_quota"], "nothing more")
    t.check(0.0199 < float(r.report["network"]["spent"]) < 0.0215,
            f"spent {r.report['network']['spent']}")


def test_request_rate(t):
    """So many requests a minute, and the next is told when to come."""
    world, log = llm_world(t)
    said, _ = inside(t, world, r"""
got = [ask("/x", raw="", method="GET") for _ in range(5)]
say("got", [r[0] for r in got], [r[2].get("Retry-After") for r in got], json.loads(got[4][1])["reason"])
""", rule(request_rate=3))
    t.equal(said["got"][0], [200, 200, 200, 429, 429], "statuses")
    t.equal(said["got"][1][:3], [None] * 3, "no need to wait")
    t.check(all(1 <= int(s) <= 20 for s in said["got"][1][3:]),
            f"when to come again: {said['got'][1]}")
    t.equal(said["got"][2], "request_rate", "reason")


def test_show_and_refill(t):
    """ward net show says what is left, as text and as JSON; a rule with another budget is put in
    force while the sandbox runs."""
    world, _ = llm_world(t)
    t.defer(clean, t)
    ws = t.workspace({"client.py": CLIENT + 'say("status", ask(max_tokens=1000)[0])\n'})
    r = world.ward("run", "-d", "-p", policy(t, rule(spend_limit=0.004, request_rate=1000),
                                             prices=PRICES, spend_limit=0.02), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    box = r.out.strip()
    ask = lambda: t.ward("exec", box, "/usr/bin/python3", "client.py", timeout=60).out
    t.equal(ask(), '["status", 200]\n', "the first")
    shown = t.ward("net", "show", box).out
    t.contains(shown, "spent 0.003 of 0.02, 0.017 left", "the whole")
    t.contains(shown, "spent 0.003 of 0.004, 0.001 left", "the rule")
    t.contains(shown, "1 requests, at most 1000 per minute", "requests")
    now = json.loads(t.ward("net", "show", "--json", box).out)
    t.equal((now["totals"]["spent"], now["totals"]["left"], now["totals"]["requests"]),
            ("0.003", "0.017", 1), "the whole in JSON")
    t.equal((now["rules"][0]["spent"], now["rules"][0]["left"], now["rules"][0]["limits"]["spend"]),
            ("0.003", "0.001", "0.004"), "the rule in JSON")
    t.equal(ask(), '["status", 402]\n', "the rule's budget is spent")
    r = t.ward("net", "allow", box, json.dumps(rule(spend_limit=0.01)[0]))
    t.equal(r.rc, 0, f"ward net allow ({r.err})")
    t.equal(ask(), '["status", 200]\n', "a new budget")
    t.contains(t.ward("net", "show", box).out, "spent 0.006 of 0.02", "the whole goes on")


def test_policy(t):
    """What does not go together is refused before anything starts."""
    ws = t.workspace()
    cases = [(rule(llm=True), {}, "no model has a price", "network.prices"),
             (rule(), {"spend_limit": 1}, "no rule counts costs", "llm: true"),
             (rule(llm=True, mode="tcp"), {"prices": PRICES}, "works in mode inspect only",
              "mode: inspect"),
             (rule(spend_limit="five"), {"prices": PRICES}, "an amount such as 5 or 0.25", ""),
             (rule(llm=True), {"prices": [{"model": "a*b", "input": 1, "output": 1}]},
              "* only at its end", "")]
    for rules, network, why, remedy in cases:
        r = t.ward("run", "-p", policy(t, rules, **network), "--", "true", cwd=ws)
        t.equal(r.rc, 125, f"{rules} {network}")
        t.contains(r.err, why, "reason")
        t.contains(r.err, remedy, "remedy")
