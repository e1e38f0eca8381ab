"""network.record and network.replay: exchanges of inspect rules are stored without secrets and
answered without a network."""
import json
import os
import resource
import shutil
import struct

from harness import timeout
from harness.world import HERE, denial, policy, serve, trusted_world

CLIENT = r"""
import http.client, json, os, socket, ssl, sys
context = ssl.create_default_context()
def say(*what):
    print(json.dumps(what), flush=True)
def connect():
    s = context.wrap_socket(socket.create_connection(("web.test", 9444), 20),
                            server_hostname="web.test")
    s.settimeout(20)
    return s
H = b" HTTP/1.1\r\nHost: web.test:9444\r\n"
c = http.client.HTTPSConnection("web.test", 9444, timeout=20, context=context)
def ask(method, path, body=None, headers={}):
    c.request(method, path, body=body, headers=headers)
    r = c.getresponse()
    data = r.read()
    say(method, path, r.status, r.getheader("X-Ward"), len(data), data[:300].decode("latin-1"))
ask("GET", "/size?n=70000&length=1", headers={"Authorization": "Bearer UNMISTAKABLESECRETONE",
                                              "Cookie": "a=UNMISTAKABLESECRETTWO",
                                              "X-Own": "UNMISTAKABLESECRETTHREE"})
ask("GET", "/size?n=5000000")
ask("POST", "/sum", b"UNMISTAKABLEBODY one")
ask("POST", "/sum", b"two")
ask("GET", "/count?token=UNMISTAKABLESECRETFOUR")
ask("GET", "/count?token=UNMISTAKABLESECRETFOUR")
ask("HEAD", "/count?token=head")
ask("GET", "/cookie")
# pieces as they came, with trailers
s = connect()
s.sendall(b"GET /trailers" + H + b"TE: trailers\r\nConnection: close\r\n\r\n")
got = b""
while more := s.recv(65536):
    got += more
say("chunks", got.split(b"\r\n\r\n", 1)[1].decode())
# an answer that begins before the request is complete
s = connect()
s.sendall(b"POST /echo" + H + b"Transfer-Encoding: chunked\r\n\r\n4\r\nping\r\n")
got = b""
while b"ping" not in got:
    got += s.recv(65536)
s.sendall(b"4\r\npong\r\n0\r\n\r\n")
while b"pong" not in got or not got.endswith(b"0\r\n\r\n"):
    got += s.recv(65536)
say("echo", got.split(b"\r\n\r\n", 1)[1].decode())
s = connect()
s.sendall(b"POST /sum" + H + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
first = s.recv(65536)
s.sendall(b"5\r\nhello\r\n0\r\n\r\n")
say("continue", first.split(b"\r\n")[0].decode(), b"5 2cf24dba" in s.recv(65536))
if len(sys.argv) > 1:
    ask("GET", "/NEVERASKED")
    ask("POST", "/sum", b"two")
"""

H2 = r"""
const http2 = require('http2');
const session = http2.connect('https://web.test:9445');
const say = (...what) => console.log(JSON.stringify(what));
function ask(headers, body) {
    return new Promise(resolve => {
        const stream = session.request(headers, { endStream: body === undefined });
        const out = { pieces: [], size: 0 };
        stream.on('response', (h, flags) => { out.status = h[':status']; out.flags = flags; });
        stream.on('trailers', t => out.trailers = t['x-sum']);
        stream.on('data', d => { out.size += d.length; out.pieces.push(String(d).slice(0, 2000)); });
        stream.on('error', e => out.error = e.code);
        stream.on('close', () => resolve(out));
        if (body !== undefined)
            stream.end(body);
    });
}
async function main() {
    let r = await ask({ ':path': '/trailers' });
    say('trailers', r.status, r.pieces.join(''), r.trailers);
    r = await ask({ ':path': '/open/bare' });
    say('bare', r.status, r.flags & 1);
    r = await ask({ ':path': '/size?n=3000000' });
    say('size', r.status, r.size);
    const many = await Promise.all([...Array(50).keys()].map(i => ask({ ':method': 'POST', ':path': '/sum' }, 'x'.repeat(i * 100))));
    say('many', many.map(m => m.pieces.join('').split(' ')[0]).join());
    if (process.argv[2]) {
        r = await ask({ ':path': '/NEVERASKED' });
        say('miss', r.status, JSON.parse(r.pieces.join('')).reason);
    }
    session.close();
}
main().catch(e => { console.error(e); process.exit(1); });
"""


def play(t, world, rules, which, path, *argv, files, **network):
    ws = t.workspace(files)
    return world.ward("run", "-p", policy(t, rules, **{which: path}, **network), "--", *argv,
                      cwd=ws, report=True, timeout=100)


def frames(data):
    """The frames of a recording: (kind, exchange, bytes)."""
    at, out = 16, []
    while at < len(data):
        n, kind, exchange = struct.unpack("<IBxxxI", data[at:at + 12])
        out.append((kind, exchange, data[at + 32:at + 32 + n]))
        at += 32 + n
    return out


@timeout(120)
def test_record_and_replay(t):
    """What a program heard with a network it hears again without one; no secret of its requests is
    in the file."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    server = serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates,
                              "9444"], 9444)
    rules = [{"host": "web.test", "ports": [9444], "mode": "inspect"}, "db.test:5432"]
    tape = os.path.join(t.fresh_dir("tape"), "a.tape")
    files = {"client.py": CLIENT}
    first = play(t, world, rules, "record", tape, "/usr/bin/python3", "client.py", files=files)
    t.equal(first.rc, 0, f"exit code ({first.out} {first.err})")
    with t.root():
        data = open(tape, "rb").read()
        t.equal(oct(os.stat(tape).st_mode & 0o777), "0o600", "mode")
        t.equal(os.stat(tape).st_uid, t.person.pw_uid, "owner")
    for secret in (b"UNMISTAKABLESECRETONE", b"UNMISTAKABLESECRETTWO", b"UNMISTAKABLESECRETTHREE",
                   b"UNMISTAKABLESECRETFOUR", b"UNMISTAKABLEBODY",
                   b"UNMISTAKABLECOOKIE"):
        t.check(secret not in data, f"{secret} is in the recording")
    kinds = [kind for kind, _, _ in frames(data)]
    t.equal([kinds.count(1), kinds.count(5), kinds[-1]], [11, 11, 6],
            "exchanges, their ends, the end")
    event = [json.loads(line) for line in t.run("sh", "-c", f"cat {t.state_dir}/audit/*/*.jsonl",
                                                root=True).out.splitlines()
             if '"net.recording"' in line][-1]
    t.equal((event["object"], event["change"], event["count"], event["digest"]),
            (tape, "record", 11, data[-16:].hex()), "the journal has its last hash")
    with t.root():
        server.kill()
    server.wait()
    r = play(t, world, rules, "replay", tape, "/bin/sh", "-c",
             "python3 client.py more; curl -sS --max-time 5 telnet://db.test:5432 </dev/null; "
             "echo $?", files=files)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    wanted, got = first.out.splitlines(), r.out.splitlines()
    for a, b in zip(wanted, got):
        t.equal(b, a, "the same answer")
    t.equal(len(got), len(wanted) + 3, f"lines ({got[len(wanted):]} {r.err})")
    for line, why in ((got[-3], "GET /NEVERASKED is not in the recording, which has of this host "
                       "GET /size?n=&length="),
                      (got[-2], "POST /sum is in the recording 3 times, but not with this body, or "
                       "not this often")):
        t.equal(json.loads(line)[2:4], [502, "refused"], "what is not in it")
        t.contains(json.loads(line)[5], why, "what it says")
    t.check(got[-1] != "0", "what is not looked into has no way out")
    t.contains(denial(t, r.report, "GET /NEVERASKED to web.test:9444")["why"],
               "not in the recording", "denial")
    t.contains(denial(t, r.report, "connection to db.test:5432")["why"], "not in the recording",
               "denial")
    log = world.log()
    t.check(not [line for line in log if "5432" in line], f"a connection was made: {log}")


@timeout(120)
def test_http2_and_breaks(t):
    """HTTP/2 is replayed as HTTP/2; a file that breaks off is replayed up to there; one that was
    changed is refused from there on."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    server = serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates,
                              "9445", "h2"], 9445)
    rules = [{"host": "web.test", "ports": [9445], "mode": "inspect"}]
    tape = os.path.join(t.fresh_dir("tape"), "b.tape")
    first = play(t, world, rules, "record", tape, node, "client.js", files={"client.js": H2})
    t.equal(first.rc, 0, f"exit code ({first.out} {first.err})")
    with t.root():
        server.kill()
    server.wait()
    r = play(t, world, rules, "replay", tape, "/bin/sh", "-c",
             "node client.js more; curl -sS --http1.1 -o /dev/null -w '%{http_code} "
             "%{http_version}\\n' https://web.test:9445/trailers",
             files={"client.js": H2})
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    t.equal(r.out, first.out + '["miss",502,"not_recorded"]\n502 1.1\n', f"what is heard ({r.err})")
    with t.root():
        data = open(tape, "rb").read()
        for name, bytes_ in (("cut", data[:len(data) - 100]),
                             ("changed", data[:2000] + b"X" + data[2001:]),
                             ("nothing", b"not a recording at all")):
            path = os.path.join(os.path.dirname(tape), name)
            with open(path, "wb") as f:
                f.write(bytes_)
            os.chmod(path, 0o644)
    at = os.path.dirname(tape)
    script = "curl -sS --http1.1 https://web.test:9445/trailers"
    r = play(t, world, rules, "replay", os.path.join(at, "cut"), "/bin/sh", "-c", script, files={})
    t.equal([r.rc, r.out], [0, "one two"], f"up to the break ({r.err})")
    t.check(any("breaks off after" in n for n in r.report["notes"]),
            f"it is told: {r.report['notes']}")
    r = play(t, world, rules, "replay", os.path.join(at, "nothing"), "true", files={})
    t.equal(r.rc, 125, "no recording")
    t.contains(r.err, "not a ward recording", "why")


def test_refused(t):
    """Where nothing can be recorded, or the file is the sandbox's, or exists, the run is refused
    before anything starts."""
    ws = t.workspace({"x": ""})
    outside = t.fresh_dir("tape")
    there = os.path.join(outside, "there")
    link = os.path.join(outside, "link")
    t.write(outside, {"there": "precious\n"})
    os.symlink(os.path.join(outside, "elsewhere"), link)
    inspect = [{"host": "web.test", "mode": "inspect"}]
    for rules, network, why in ((inspect, {"record": os.path.join(ws, "in.tape")}, "in.tape is in"),
                                (inspect, {"record": there}, "exists"),
                                (inspect, {"record": link}, "exists"),
                                (inspect, {"record": os.path.join(outside, "no/where")},
                                 "directory"),
                                (["web.test"], {"record": os.path.join(outside, "a")},
                                 "mode: inspect"),
                                (["web.test"], {"replay": there}, "mode: inspect"),
                                (inspect, {"replay": there}, "not a ward recording"),
                                (inspect, {"replay": link}, "cannot open"),
                                (inspect, {"replay": there, "record": os.path.join(outside, "a")},
                                 "exclude each other"),
                                (inspect, {"mode": "none", "record": os.path.join(outside, "a")},
                                 "network.mode")):
        r = t.ward("run", "-p", policy(t, rules, **network), "--", "true", cwd=ws)
        t.equal(r.rc, 125, f"{network}: exit code ({r.err})")
        t.contains(r.err, why, str(network))
    t.equal(t.read(there), "precious\n", "what was there")
    t.equal(sorted(os.listdir(outside)), ["link", "there"], "nothing was made")
    r = t.ward("plan", "-p", policy(t, inspect, record=os.path.join(outside, "a")), "true", cwd=ws)
    t.equal(r.rc, 0, f"a plan ({r.err})")
    t.contains(r.out, os.path.join(outside, "a"), "the plan says where")
    r = t.ward("check", policy(t, ["web.test", *inspect], record=os.path.join(outside, "a")),
               cwd=ws)
    t.equal(r.out.count("are not inspected, so they are not recorded"), 1, f"ward check ({r.out})")
    t.equal(sorted(os.listdir(outside)), ["link", "there"], "a plan makes nothing")
    grant = {"name": "api", "source": "env:NOT_SET_ANYWHERE", "hosts": ["web.test"]}
    t.write(ws,
            {"late.json": json.dumps({"network": {"mode": "restricted", "egress_allowlist": inspect,
                                                  "record": os.path.join(outside, "a")},
                                      "credentials": {"mode": "just_in_time", "grants": [grant]}})})
    for _ in range(2):	# refused behind the making of the file, twice for the same reason
        r = t.ward("run", "-p", "late.json", "--", "true", cwd=ws)
        t.equal(r.rc, 125, r.err)
        t.contains(r.err, "NOT_SET_ANYWHERE", "why it was refused")
    t.equal(sorted(os.listdir(outside)), ["link", "there"], "a refused run leaves no file")


@timeout(60)
def test_full_disk(t):
    """What cannot be recorded does not pass: the answer under way breaks off, the next request is
    refused and says why, the report says it, too."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    serve(t, world, [node, os.path.join(HERE, "stream_server.js"), world.certificates,
                     "9444"], 9444)
    place = t.fresh_dir("full")
    t.run("nsenter", "-t", str(world.home), "-m", "mount", "-t", "tmpfs", "-o",
          f"size=300k,uid={t.person.pw_uid},mode=700", "tmpfs", place, root=True, check=True)
    rules = [{"host": "web.test", "ports": [9444], "mode": "inspect"}]
    script = "curl -sS https://web.test:9444/small -o /dev/null && echo fine; curl -sS -o /dev/null 'https://web.test:9444/size?n=50000000'; echo $?; " \
             "curl -sS -o answer -w '%{http_code}\n' https://web.test:9444/small; cat answer"
    r = play(t, world, rules, "record", os.path.join(place, "tape"), "/bin/sh", "-c", script,
             files={})
    lines = r.out.splitlines()
    t.equal(r.rc, 0, f"exit code ({r.err})")
    t.check(lines[0] == "fine" and lines[1] != "0" and lines[2] == "507", f"{lines} {r.err}")
    t.equal(json.loads(lines[3])["reason"], "recording", "why")
    t.check(any("is incomplete" in n for n in r.report["notes"]), f"notes: {r.report['notes']}")


def test_a_run_that_is_refused_leaves_no_recording(t):
    """It would be in the way of the next one."""
    ws = t.workspace()
    tape = os.path.join(t.fresh_dir("tape"), "tape")
    words = ("run", "--set", 'network.egress_allowlist=[{"host":"web.test","mode":"inspect"}]',
             "--set", f"network.record={tape}", "--", "/bin/true")
    r = t.ward(*words, cwd=ws, prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)))
    t.equal(r.rc, 125, r.err)
    t.contains(r.err, "too few file descriptors", "the message")
    t.check(not os.path.exists(tape), "a file is left")
    t.equal(t.ward(*words, cwd=ws).rc, 0, "the next one")
