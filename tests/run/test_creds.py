"""Secrets that a sandbox uses and never holds: what the server gets, what is inside, what is
refused."""
import base64
import json
import os
import time

from harness import by_turns
from harness.creds import SECRET, below, has, secret_file
from harness.world import serve, trusted_world

PORT = 9443

SERVER = r"""
import base64, http.server, json, os, ssl, sys
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open(sys.argv[1] + "/seen", "a") as f:
            f.write(json.dumps([self.command, self.headers["Host"], self.path,
                                list(self.headers.items()), body.decode("latin-1")]) + "\n")
        value = (self.headers.get("Authorization") or "none").encode()
        text = json.dumps([list(self.headers.items()), base64.b64encode(b"x" + value).decode(),
                           value.hex()]).encode()
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", "https://other.test:9443/elsewhere")
        self.send_header("X-Back", value.decode())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(text), 11):
            piece = text[at:at + 11]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
    do_GET = do_POST = answer
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9443), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/server.pem", sys.argv[2] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

# What a program inside does: requests, then it waits so that its memory can be looked at.
AGENT = r"""
import json, os, subprocess, sys, time, urllib.request, urllib.error
kept = []       # whatever came back stays in memory
def ask(url, headers={}, data=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as r:
            kept.append((r.status, dict(r.headers), r.read()))
    except urllib.error.HTTPError as error:
        kept.append((error.code, dict(error.headers), error.read()))
    except OSError as error:
        kept.append((0, {}, repr(error).encode()))
    print(json.dumps([kept[-1][0], kept[-1][2].decode("latin-1")]), flush=True)
token = os.environ["API_KEY"]
web, other = "https://web.test:9443", "https://other.test:9443"
for line in json.load(open("requests.json")):
    url, headers, data = [x.replace("TOKEN", token) if isinstance(x, str) else x for x in line]
    ask(url, {k: v.replace("TOKEN", token) for k, v in headers.items()}, data.encode()
        if data is not None else None)
json.dump([dict(os.environ), [[s, h, b.decode("latin-1")] for s, h, b in kept]],
          open("kept.json", "w"))
if sys.argv[1:] == ["wait"]:
    open("ready", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.02)
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


def policy(t, grants, **credentials):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    rules = [{"host": name, "ports": [PORT], "mode": "inspect"}
             for name in ("web.test", "other.test")] + ["db.test:443"]
    document = {"version": 1, "network": {"mode": "restricted", "egress_allowlist": rules},
                "credentials": {"mode": "just_in_time", "grants": grants, **credentials}}
    with open(path, "w") as f:
        f.write(json.dumps(document))
    return path


def test_never_inside(t):
    """The server gets the secret; memory, environment, files, answers, report, journal and output
    have it nowhere."""
    world = start(t)
    ws = t.workspace({"agent.py": AGENT, "requests.json": json.dumps([
        ["https://web.test:9443/v1/a", {"Authorization": "Bearer TOKEN"}, None],
        ["https://web.test:9443/v1/b", {}, "hello"],
        ["https://web.test:9443/away", {"Authorization": "Bearer TOKEN"}, None]])})
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY"}])
    report = os.path.join(t.fresh_dir("report"), "report.json")
    process = t.popen(t.ward_argv("run", "-p", path, "--report", report, "--", "/usr/bin/python3",
                                  "agent.py", "wait", wrap=world.wrap(ws)),
                      cwd=ws, root=True)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")) or process.poll() is not None,
                 60, "the requests are not made")
    t.check(process.poll() is None,
            f"ended: {process.stdout.read() if process.poll() is not None else ''} "
            f"{process.stderr.read() if process.poll() is not None else ''}")
    with t.root():
        holders = {name: has(pid, SECRET.encode()) for pid, name in below(process.pid)}
    t.equal({name for name, found in holders.items() if found}, {"ward-secrets", "ward-keys"},
            f"who has it: {holders}")
    t.check("python3" in holders and len(holders) >= 6, f"all were looked at: {holders}")
    with open(os.path.join(ws, "go"), "w"):
        pass
    out, err = (text.decode() for text in process.communicate(timeout=60))
    t.equal(process.returncode, 0, f"exit code: {err}")
    answers = [json.loads(line) for line in out.splitlines()]
    t.equal([a[0] for a in answers], [200, 200, 200], "status")
    environment, kept = json.loads(t.read(os.path.join(ws, "kept.json")))
    placeholder = environment["API_KEY"]
    got = seen(t, world)
    t.equal([(g[1], dict(g[3]).get("Authorization")) for g in got],
            [("web.test:9443", f"Bearer {SECRET}")] * 3
            + [("other.test:9443", f"Bearer {placeholder}")],
            "a redirect elsewhere has only the placeholder")
    t.equal(got[1][4], "hello", "a body")
    t.check(placeholder.startswith("sk-proj-WARD") and len(placeholder) == len(SECRET),
            f"the placeholder: {placeholder}")
    everywhere = out + err + t.read(report) + json.dumps(kept) + json.dumps(environment)
    for place in (ws, t.state_dir):
        for directory, _, names in os.walk(place):
            everywhere += "".join(t.read(os.path.join(directory, name)) or "" for name in names)
    for form in (SECRET, SECRET.encode().hex(), "T05MWXhUSEV4U0VSVkVS", "9OTFl4VEhFeFNFUlZFUn",
                 "ROTFl4VEhFeFNFUlZFUn"):
        t.check(form not in everywhere, f"{form} is in what is left")
    t.check("xxxxxxxxxxxxxxxx" in answers[0][1], f"what came back was taken out: {answers[0]}")


def test_places_and_leaks(t):
    """Only the grant's host, and only its header; elsewhere the placeholder stops the request, and
    the report says so."""
    world = start(t)
    lines = [["https://other.test:9443/x", {"Authorization": "Bearer TOKEN"}, None],
             ["https://web.test:9443/x?k=TOKEN", {}, None],
             ["https://web.test:9443/x", {"X-Other": "TOKEN"}, None],
             ["https://web.test:9443/x", {}, '{"a": "TOKEN"}'],
             ["https://web.test:9443/fine", {"Authorization": "Bearer mine"}, None],
             ["https://web.test:9443/once", {}, None],
             ["https://other.test:9443/fine", {}, None]]
    ws = t.workspace({"agent.py": AGENT, "requests.json": json.dumps(lines)})
    path = policy(t,
                  [{"name": "api", "source": "env:API_KEY", "hosts": ["web.test"], "max_uses": 1}],
                  secret_scanning=True)
    r = world.ward("run", "-p", path, "--env", "API_KEY", "--widen", "--", "/usr/bin/python3",
                   "agent.py", cwd=ws, report=True, timeout=60,
                   env={"API_KEY": SECRET})
    t.equal(r.rc, 0, f"exit code: {r.err}")
    answers = [json.loads(line) for line in r.out.splitlines()]
    t.equal([a[0] for a in answers], [403, 403, 403, 403, 200, 403, 200], f"{answers}")
    t.contains(answers[3][1], "where it does not belong", "the answer explains itself")
    t.contains(answers[5][1], "max_uses", "the second use")
    got = seen(t, world)
    t.equal([(g[2], dict(g[3]).get("Authorization")) for g in got],
            [("/fine", f"Bearer {SECRET}"), ("/fine", None)], "what the servers got")
    whats = [d["what"] for d in r.report["denials"]]
    t.contains(whats, "placeholder of grant api to other.test", "the report")
    t.contains(whats, "grant api for web.test", "the report")
    t.check(SECRET not in json.dumps(r.report) + r.out + r.err, "nothing has the secret")
    environment = json.loads(t.read(os.path.join(ws, "kept.json")))[0]
    t.check(environment["API_KEY"] != SECRET,
            "a variable that is passed through is the placeholder")


def test_refused_at_the_start(t):
    """What cannot be fetched, or would be inside anyway, stops the run before anything starts;
    `ward plan` fetches nothing."""
    ws = t.workspace({"key": "INSIDExTHExWORKSPACE\n",
                      "bin/give": "#!/bin/sh\necho PLANTEDxSECRETxPLANTED\n"})
    os.chmod(os.path.join(ws, "key"), 0o600)
    os.chmod(os.path.join(ws, "bin/give"), 0o755)
    one = {"name": "n", "hosts": ["web.test"]}
    for grant, why in (({**one, "source": "env:NOT_SET"}, "NOT_SET is not set"),
                       ({**one, "source": f"file:{ws}/key"}, "visible inside"),
                       ({**one, "source": "cmd:give"}, "can see or change it"),
                       ({**one, "source": "cmd:false"}, "exit status 1")):
        r = t.ward("run", "-p", policy(t, [grant]), "--", "true", cwd=ws,
                   env={"PATH": f"{ws}/bin:/usr/bin:/bin"})
        t.equal(r.rc, 125, f"{grant}: {r.err}")
        t.contains(r.err, why, f"{grant}")
    r = t.ward("run", "-p", policy(t, [{**one, "source": "env:A_KEY"}]), "--env", "OTHER",
               "--widen", "--", "true", cwd=ws,
               env={"A_KEY": SECRET, "OTHER": f"x {SECRET}"})
    t.equal(r.rc, 125, "the secret under another name")
    t.contains(r.err, "in the variable OTHER", "why")
    t.check(SECRET not in r.err, "the error has no secret")
    without = policy(t, [{**one, "source": "env:NOT_SET"}])
    r = t.ward("plan", "--full", "-p", without, "--", "true", cwd=ws)
    t.equal(r.rc, 0, f"a plan fetches nothing: {r.err}")
    t.contains(r.out, " NOT_SET\n", "plan")
    # a policy that lies in the workspace names the user's secrets only after ward trust
    t.write(ws,
            {"ward.yaml": json.dumps({"network": {"mode": "none"},
                                      "credentials": {
                                          "grants": [{**one, "source": "env:A_KEY"}]}})})
    r = t.ward("run", "--", "true", cwd=ws, env={"A_KEY": SECRET})
    t.equal(r.rc, 125, "a found policy with a grant")
    t.contains(r.err, "ward trust", "remedy")


def test_while_it_runs(t):
    """ls counts uses, revoke ends them at once, grant gives another; no secret is in any command
    line or output."""
    world = start(t)
    ws = t.workspace({"agent.py": AGENT,
                      "requests.json": json.dumps([["https://web.test:9443/a", {}, None]])})
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY"}])
    ward = lambda *args, **options: world.ward(*args, cwd=ws, timeout=60, **options)
    box = ward("run", "-d", "-p", path, "--", "sleep", "1000").out.strip()
    ask = lambda: json.loads(ward("exec", box, "/usr/bin/python3",
                                  os.path.join(ws, "agent.py")).out.splitlines()[0])
    try:
        t.equal(ask()[0], 200, "the grant is used")
        row = json.loads(ward("secret", "ls", "--json", box).out)["grants"][0]
        t.equal((row["name"], row["state"], row["uses"], row["max_uses"]),
                ("api", "live", 1, None), "ls")
        t.contains(ward("secret", "ls", box).out, "header Authorization", "ls as text")
        t.equal(ward("secret", "revoke", box, "api").rc, 0, "revoke")
        answer = ask()
        t.equal(answer[0], 403, "a revoked grant")
        t.contains(answer[1], "revoked", "why")
        t.equal(ward("secret", "revoke", box, "api").rc, 125, "twice")
        late = ("{name: late, source: 'env:LATE', hosts: [web.test], header: 'X-Late: {}', paths: "
                "['/a']}")
        r = ward("secret", "grant", box, late, env={"LATE": "LATExSECRETxLATExSECRET"})
        t.equal(r.rc, 0, f"grant: {r.err}")
        t.contains(r.out, "placeholder LATExWARD" if "LATExWARD" in r.out else "placeholder ",
                   "a placeholder is printed")
        t.check("LATExSECRETxLATE" not in r.out + r.err, "and no secret")
        r = ward("secret", "grant", box,
                 late.replace("web.test", "evil.test").replace("late,", "more,"),
                 env={"LATE": "LATExSECRETxLATExSECRET"})
        t.equal(r.rc, 125, "a host that no grant of the policy is for")
        r = ward("secret", "grant", box,
                 late.replace("name: late", "name: piped").replace("X-Late", "X-Piped"), "--stdin",
                 input="PIPEDxSECRETxPIPED\n")
        t.equal(r.rc, 0, f"--stdin: {r.err}")
        t.equal(len(json.loads(ward("secret", "ls", "--json", box).out)["grants"]), 3,
                "three of them")
        t.equal(ward("secret", "ls").rc, 2, "usage")
    finally:
        ward("kill", box)
        ward("rm", "-f", box)


# As often as it may and more often, while the source of the secret is asked again and afterwards;
# then many answers that bring it back.
GREEDY = r"""
import http.client, os, ssl, time
def ask(times):
    c = http.client.HTTPSConnection("web.test", 9443, timeout=30)
    for _ in range(times):
        c.request("GET", "/greedy")
        r = c.getresponse()
        r.read()
        print(r.status, flush=True)
def wait(name):
    until = time.monotonic() + 30
    while not os.path.exists(name) and time.monotonic() < until:
        time.sleep(0.01)
wait("renewing")
ask(3)
open("used", "w").close()
wait("renewed")
time.sleep(0.3)
ask(3)
"""


@by_turns
def test_a_renewal_gives_no_more_uses(t):
    """max_uses holds over a renewal, whatever was used while the source took its time; what happens
    again and again is noted once."""
    world = start(t)
    ws = t.workspace({"agent.py": GREEDY})
    give = os.path.join(t.fresh_dir("secrets"), "give")
    # the first time at once, then not before the agent has used what it had
    with open(give, "w") as f:
        f.write(f"#!/bin/sh\nif [ -e {ws}/asked ]; then touch {ws}/renewing; i=0; while [ ! -e "
                f"{ws}/used ] && [ $i -lt 300 ]; do sleep 0.05; i=$((i+1)); done\n"
                f"touch {ws}/renewed; fi\ntouch {ws}/asked\necho {SECRET}\n")
    os.chmod(give, 0o755)
    path = policy(t,
                  [{"name": "api", "source": f"cmd:{give}", "hosts": ["web.test"], "as": "API_KEY",
                    "max_uses": 3, "ttl_seconds": 5}])
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "agent.py", cwd=ws, report=True,
                   timeout=60)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    answers = r.out.split()
    used = [g for g in seen(t, world) if dict(g[3]).get("Authorization")]
    t.check(len(answers) == 6 and 1 <= len(used) <= 3,
            f"{len(used)} uses, answers {answers}, {r.report['denials']}")
    t.equal(answers.count("200"), len(used), f"{answers}")
    notes = [n for n in r.report["notes"] if "sent the secret" in n]
    t.equal(len(notes), 1, f"{notes}")


ASK = r"""
import sys, urllib.request, urllib.error
try:
    print(200,
          urllib.request.urlopen(urllib.request.Request("https://web.test:9443" + sys.argv[1],
                                                        sys.argv[2].encode() if sys.argv[2:]
                                                        else None), timeout=30).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def test_a_revoked_secret_is_gone_at_once_and_still_a_secret(t):
    """revoke waits for no source that is being asked; the value is looked for in what leaves,
    whatever is granted afterwards; the journal has what was done."""
    world = start(t)
    ws = t.workspace({"ask.py": ASK})
    place = t.fresh_dir("secrets")
    t.write(place,
            {"slow": f"#!/bin/sh\ntouch {place}/asked\ni=0; while [ ! -e {place}/go ] && [ $i -lt "
             "500 ]; do sleep 0.05; i=$((i+1)); done\necho LATExSECRETxLATExSECRET\n"})
    os.chmod(place + "/slow", 0o755)
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY", "paths": ["/a"]}])
    ward = lambda *args: world.ward(*args, cwd=ws, timeout=60)
    box = ward("run", "-d", "-p", path, "--", "sleep", "1000").out.strip()
    ask = lambda *words: ward("exec", box, "/usr/bin/python3", os.path.join(ws, "ask.py"),
                              *words).out
    try:
        t.equal(ask("/a"), "200 200\n", "the grant is used")
        slow = t.ward_start("secret", "grant", box,
                            f"{{name: slow, source: 'cmd:{place}/slow', hosts: [web.test], header: "
                            f"'X-Slow: {{}}', paths: ['/slow']}}", cwd=ws)
        t.wait_until(lambda: os.path.exists(place + "/asked"), message="the source was not asked")
        t.equal(ward("secret", "revoke", box, "api").rc, 0, "revoke while a source is asked")
        t.contains(ask("/a"), "revoked", "it is not used any more")
        t.check(slow.poll() is None, "the source was asked all the while")
        t.write(place, {"go": ""})
        t.equal(slow.wait(), 0, "and gave its secret")
        t.equal(ask("/slow"), "200 200\n", "which is used")
        got = ask("/slow", f"what I know: {SECRET}")
        t.contains(got, "the secret of grant api is in the body",
                   "the revoked one is still looked for")
        t.check(SECRET not in json.dumps(seen(t, world)[1:]), "and did not leave again")
        t.equal(ward("secret", "revoke", box, "api").rc, 125, "twice")
        t.equal(ward("secret", "grant", box,
                     "{name: bad, source: 'cmd:/bin/false', hosts: [web.test], header: "
                     "'X-Bad: {}'}").rc, 125, "a grant that fails")
        events = [json.loads(line)
                  for line in (t.read(t.state_dir, f"audit/live/{box}.jsonl") or "").splitlines()]
        t.equal([(e["change"], e["object"]) for e in events if e["kind"] == "credential.change"],
                [("revoke", "api"), ("grant", "slow")], "what was done")
    finally:
        ward("kill", box)
        ward("rm", "-f", box)


def test_a_recording_has_no_secret(t):
    """network.record with grants: neither what ward-keys puts in, nor what comes back, nor a
    request in which it found a secret is in the file."""
    world = start(t)
    ws = t.workspace({"ask.py": ASK})
    tape = os.path.join(t.fresh_dir("tape"), "tape")
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY", "paths": ["/a"]}])
    document = json.load(open(path))
    document["network"]["record"] = tape
    with open(path, "w") as f:
        json.dump(document, f)
    script = (f'python3 ask.py /a; python3 ask.py /b/UNMISTAKABLEPATH "$0"; python3 ask.py "/c/UNMISTAKABLEOTHER/$0"')
    r = world.ward("run", "-p", path, "--", "/bin/sh", "-c", script, SECRET[::-1], cwd=ws,
                   timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    t.equal(r.out, "200 200\n" * 3, "what may leave leaves")
    leak = "import sys, subprocess; s = sys.argv[1][::-1]; " \
        "print([subprocess.run(['/usr/bin/python3', 'ask.py', *words], capture_output=True, text=True).stdout[:3] for words in (['/b/UNMISTAKABLELEAK', s], ['/c/UNMISTAKABLELEAK/' + s])])"
    document["network"]["record"] = tape + "2"
    with open(path, "w") as f:
        json.dump(document, f)
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "-c", leak, SECRET[::-1], cwd=ws,
                   timeout=60)
    t.equal(r.out, "['403', '403']\n", f"leaks ({r.err})")
    with t.root():
        first, second = open(tape, "rb").read(), open(tape + "2", "rb").read()
    t.contains(first.decode("latin-1"), "UNMISTAKABLEPATH", "paths are there")
    t.check(b"UNMISTAKABLELEAK" not in second, "a request with a secret is not")
    t.contains(second.decode("latin-1"), "a secret was found in this request", "but that it was")
    for data in (first, second):
        for form in (SECRET.encode(), SECRET.encode().hex().encode(),
                     *(base64.b64encode(b"x" * n + SECRET.encode())[4 + n:-4] for n in range(3))):
            t.check(form not in data, f"{form} is in the recording")


BOMBS = r"""
import http.client, json, ssl, threading, time, zlib
def pack(block, times):
    z, out = zlib.compressobj(6, zlib.DEFLATED, 31), b""
    for _ in range(times):
        out += z.compress(block)
    return out + z.flush()
def post(body, coding):
    c = http.client.HTTPSConnection("web.test", 9443, timeout=60)
    c.request("POST", "/b", body=body, headers={"Content-Encoding": coding} if coding else {})
    return c.getresponse().status
zeros = pack(bytes(1 << 20), 64)       # more than a thousand times its size
print(json.dumps(["zeros", len(zeros), post(zeros, "gzip")]), flush=True)
print(json.dumps(["cut", post(zeros[:1000], "gzip"), post(b"no gzip", "gzip"), post(zeros, "br")]),
      flush=True)
words = pack(b"".join(b"%d of many words " % (i % 50) for i in range(40000)), 20)
done = []
thread = threading.Thread(target=lambda: done.append(post(words, "gzip")))
thread.start()
slowest = 0
while thread.is_alive():
    began = time.monotonic()
    post(b"beside", None)
    slowest = max(slowest, time.monotonic() - began)
print(json.dumps(["words", len(words), done, slowest < 10]), flush=True)
"""


def test_gzip_bombs(t):
    """What inflates beyond measure is refused, what is broken or of another coding too; a large one
    that is not keeps nobody waiting, and costs no memory."""
    world = start(t)
    ws = t.workspace({"bombs.py": BOMBS})
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY", "paths": ["/a"]}])
    process = t.popen(t.ward_argv("run", "-p", path, "--", "/usr/bin/python3", "bombs.py",
                                  wrap=world.wrap(ws)), root=True)
    peaks = []
    with t.root():
        while process.poll() is None:
            for pid, name in below(process.pid):
                if name == "ward-keys":
                    try:
                        with open(f"/proc/{pid}/smaps_rollup") as f:
                            peaks += [int(line.split()[1]) for line in f if line.startswith("Pss:")]
                    except OSError:
                        pass
            time.sleep(0.05)
    out, err = process.communicate()
    got = {line[0]: line[1:] for line in map(json.loads, out.decode().splitlines())}
    t.equal(process.returncode, 0, f"exit code ({err})")
    t.check(got["zeros"][0] < 100000 and got["zeros"][1] == 403, f"64 MiB of nothing: {got}")
    t.equal(got["cut"], [200, 403, 403],
            "one that breaks off hides nothing; no gzip at all, another coding")
    t.equal(got["words"][1:], [[200], True], f"14 MB of words, and requests beside them ({got})")
    t.say(f"ward-keys: at most {max(peaks)} KiB in {len(peaks)} looks")
    t.check(max(peaks) < 24 << 10 or "asan" in t.ward_path,
            f"ward-keys has grown to {max(peaks)} KiB")


MANY = r"""
import http.client, threading
good = []
def ask():
    c = http.client.HTTPSConnection("web.test", 9443, timeout=30)
    for _ in range(25):
        c.request("GET", "/many")
        r = c.getresponse()
        r.read()
        good.append(r.status == 200)
threads = [threading.Thread(target=ask) for _ in range(16)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sum(good))
"""


def test_uses_that_nobody_hears_of_are_counted(t):
    """Whoever inside makes more happen than ward-secrets can pass on (it waits for a source) finds
    it in the journal as a number at least."""
    world = start(t)
    ws = t.workspace({"many.py": MANY})
    place = t.fresh_dir("secrets")
    t.write(place,
            {"slow": f"#!/bin/sh\ntouch {place}/asked\ni=0; while [ ! -e {place}/go ] && [ $i -lt "
             "500 ]; do sleep 0.05; i=$((i+1)); done\necho LATExSECRETxLATExSECRET\n"})
    os.chmod(place + "/slow", 0o755)
    path = policy(t,
                  [{"name": "api", "source": f"file:{secret_file(t)}", "hosts": ["web.test"],
                    "as": "API_KEY"}])
    box = world.ward("run", "-d", "-p", path, "--", "sleep", "1000", cwd=ws, timeout=60).out.strip()
    try:
        slow = t.ward_start("secret", "grant", box,
                            f"{{name: slow, source: 'cmd:{place}/slow', hosts: [web.test], header: "
                            f"'X-Slow: {{}}', paths: ['/slow']}}", cwd=ws)
        t.wait_until(lambda: os.path.exists(place + "/asked"), message="the source was not asked")
        r = world.ward("exec", box, "/usr/bin/python3", os.path.join(ws, "many.py"), cwd=ws,
                       timeout=60)
        t.equal((r.rc, r.out), (0, "400\n"), r.err)
        t.write(place, {"go": ""})
        slow.wait()

        def told():
            text = t.read(t.state_dir, f"audit/live/{box}.jsonl") or ""
            # the last one may be under way
            events = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
            lost = sum(e["lost"] for e in events if e["kind"] == "journal.gap"
                       and e["object"] == "credentials")
            return lost, sum(e["kind"] in ("credential.use", "credential.leak") for e in events)
        # each request is a use, and its answer brings the secret back
        try:
            t.wait_until(lambda: sum(told()) == 800, message="not all was told")
        finally:
            t.log.append(f"told: {told()} of 800")
        row = json.loads(world.ward("secret", "ls", "--json", box, cwd=ws).out)["grants"][0]
        t.equal((row["name"], row["uses"]), ("api", 400), "the count is whole")
        t.check(told()[0] > 0, "nothing was lost: this test tests nothing")
    finally:
        world.ward("kill", box, cwd=ws)
        world.ward("rm", "-f", box, cwd=ws)
