"""ward-ask, inside: what the rules are, what was refused, and rules that the sandbox proposes. A
proposal changes nothing but by the answer of a person, and no answer passes approvals.never."""
import json
import os
import time

from harness import by_turns
from harness.boxes import clean
from harness.world import World
from run.test_approve import MANY, asked, connect, events, got as connected, questions

NEVER = ["host:*.evil.test", "path:/var/log/private", "path:/srv/*.key"]
# packets of a process that is not ward-ask; what comes back, one line each
HOSTILE = r"""
import array, os, socket, struct, sys
def packet(words, magic=0x31716177, op=1, count=None):
    body = b"".join(w + b"\0" for w in words)
    return struct.pack("<IIii", magic, op, len(words) if count is None else count, 0) + body
def one(name, data, fds=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect("/.ward/ask/socket")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([data], rights)
    said = []
    while True:
        got = s.recv(8192)
        if not got:
            break
        said.append((struct.unpack("<IIii", got[:16])[1:3], got[16:]))
    print(name, said[-1][0][1] if said else "closed", flush=True)
one("empty", b"x")
one("magic", packet([b"rules"], magic=1))
one("op", packet([b"rules"], op=4))
one("count", packet([b"rules"], count=99))
one("unended", packet([b"rules"])[:-1])
one("long", packet([b"a" * 5000]))
one("nul", packet([b"allow", b"a.test\0.evil.test", b"--reason", b"x"]))
one("descriptors", packet([b"rules"]), [0, 1, 2] * 20)
one("unicode", packet([b"allow", "gıthub.com".encode(), b"--reason", b"x"]))
"""


def start(t, world=None, rules=None, seconds=60, **more):
    """A detached idle sandbox that may ask; returns (id, workspace)."""
    ws = t.workspace({"many.py": MANY, "hostile.py": HOSTILE})
    t.defer(clean, t)
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    network = {"network": {"mode": "restricted", "egress_allowlist": rules or ["web.test:5432"]}}
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1, **(network if world else {}),
                            "approvals": {"mode": "ask", "timeout_seconds": seconds,
                                          "never": NEVER}, **more}))
    r = (world or t).ward("run", "-d", "-p", path, cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def ask(t, box, ws, *words):
    return t.popen(t.ward_argv("exec", box, "ward-ask", *words), cwd=ws)


def got(process):
    """(exit status, output, error)"""
    out, err = process.communicate(timeout=60)
    text = [x if isinstance(x, str) else (x or b"").decode() for x in (out, err)]
    return process.returncode, *text


def test_tells(t):
    """Rules and denials, for a reader and for a program, also without a network; what
    approvals.never names is not told."""
    box, ws = start(t)
    rc, out, err = got(ask(t, box, ws))
    t.equal((rc, err), (0, ""), "rules")
    t.contains(out, "network: none\n", "the network")
    t.contains(out, f"read and write {ws}\n", "the workspace")
    t.check("evil" not in out and "private" not in out, f"and no more: {out}")
    said = json.loads(got(ask(t, box, ws, "rules", "--json"))[1])
    t.equal((said["network"], said["files"]),
            ({"mode": "none", "rules": []}, [{"path": ws, "writable": True}]), "for a program")
    t.equal(got(ask(t, box, ws, "denials"))[1], "nothing was refused so far\n", "no denial")
    got(t.popen(t.ward_argv("exec", box, "unshare", "-U", "true"), cwd=ws))
    t.wait_until(lambda: "unshare" in got(ask(t, box, ws, "denials"))[1], 10, "it was refused")
    t.check(json.loads(got(ask(t, box, ws, "denials", "--json"))[1])["denials"][0]["why"], "why")
    t.equal(got(ask(t, box, ws, "frob"))[0], 2, "no such word")
    t.equal(got(ask(t, box, ws, "--help"))[0], 0, "help")
    t.equal(questions(t), [], "nobody was asked")


def test_a_host(t):
    """A proposal waits for a person; with a yes its rule is in force when ward-ask ends. It cannot
    be allowed once, and what the rules allow already is not asked about."""
    world = World(t)
    box, ws = start(t, world)
    rc, out, _ = got(ask(t, box, ws, "allow", "web.test:5432", "--reason", "x"))
    t.equal((rc, "already" in out), (0, True), f"allowed already: {out}")
    t.equal(connected(t, connect(t, box, ws, "db.test")), ["db.test gaierror"], "not yet")
    process = ask(t, box, ws, "allow", "DB.test.:5432", "--reason", "the tests\x1b[2J need it")
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["host"], q["line"], q["rule"]),
            ("proposal", "allow db.test:5432", "db.test", "db.test:5432", "approvals.proposals"), q)
    t.check("widens: a host that no rule names" in q["details"], f"what it widens: {q}")
    t.check(any("says why: the tests" in d and "\x1b" not in d for d in q["details"]), f"why: {q}")
    r = t.ward("approve", q["id"], "--once")
    t.equal(r.rc, 125, "once")
    t.contains(r.err, "nothing waits for this rule", "says why")
    t.equal(connected(t, connect(t, box, ws, "db.test")), ["db.test gaierror"], "nor by asking")
    t.equal(t.ward("approve", q["id"], "--run").rc, 0, "for the run")
    t.equal(got(process)[:2], (0, "allowed\n"), "it is told")
    t.equal(connected(t, connect(t, box, ws, "db.test")), ["db.test hello"], "at once")
    process = ask(t, box, ws, "allow", "other.test:5432", "--reason", "x")
    t.equal(t.ward("approve", asked(t)[0]["id"], "--deny").rc, 0, "a no")
    rc, out, err = got(process)
    t.equal((rc, out), (1, ""), "denied")
    t.contains(err, "a person was asked and said no", "says so")
    t.equal(connected(t, connect(t, box, ws, "other.test")), ["other.test gaierror"], "as before")
    t.equal([(e["question"], e["action"]) for e in events(t, box, "approval.answer")],
            [("proposal", "approve"), ("proposal", "deny")], "on record")


def test_never(t):
    """approvals.never, addresses that are not public and patterns: refused without a question,
    with a network and without."""
    for world in (World(t), None):
        box, ws = start(t, world)
        for what, why in (("x.evil.test", "approvals.never"),
                          ("X.EVIL.test.:80", "approvals.never"),
                          ("169.254.169.254:80", "no public address"),
                          ("[::1]:22", "no public address"), ("127.0.0.1", "no public address"),
                          ("*.test", "name one host"), ("10.0.0.0/8", "name one host"),
                          ("/var/log/private/x", "approvals.never"),
                          ("/var/log", "approvals.never"), ("/srv", "approvals.never"),
                          ("/proc/../var", "approvals.never")):
            rc, out, err = got(ask(t, box, ws, "allow", what, "--reason", "x"))
            t.equal((rc in (1, 2), out), (True, ""), f"{what} is refused: {err}")
            t.contains(err, why, what)
        t.equal(questions(t), [], "nobody was asked")
        clean(t)


def test_a_path(t):
    """A file can only be put into the policy, for the next run; a link is shown with where it leads
    and cannot get around approvals.never. What is inside already, or hidden, is not proposed."""
    d = os.path.realpath(t.fresh_dir("data"))
    t.write(d, {"file": "data"})
    os.symlink("/var/log/private", os.path.join(d, "link"))
    os.symlink("file", os.path.join(d, "other"))
    box, ws = start(t, filesystem={"hide": ["hidden.txt"]})
    t.equal(got(ask(t, box, ws, "allow", "/usr/bin/env", "--reason", "x"))[0], 0, "there already")
    long = got(ask(t, box, ws, "allow", d + "/none", "--reason", "x" * 101))
    t.equal(long[0], 2, "a long reason")
    process = ask(t, box, ws, "allow", d + "/./other", "--reason", "to read it")
    q = asked(t)[0]
    t.equal((q["subject"], q["line"]), (f"allow reading {d}/other", f"{d}/other"), q)
    t.check(f"warning: it leads to {d}/file" in q["details"], f"where it leads: {q}")
    for how in ("--once", "--run"):
        t.equal(t.ward("approve", q["id"], how).rc, 125, f"not {how}")
    policy = os.path.join(t.fresh_dir("mine"), "ward.yaml")
    r = t.ward("approve", q["id"], "--always", "--yes", "-p", policy)
    t.equal(r.rc, 0, f"always ({r.err})")
    t.contains(r.out, f"+    - {d}/other", "the difference")
    t.equal(got(process)[:2], (0, "allowed from the next run on\n"), "told so")
    r = t.ward("run", "-p", policy, "--", "cat", d + "/other", cwd=t.workspace({}))
    t.equal((r.rc, r.out), (0, "data"), f"the next run has it ({r.err})")


@by_turns
def test_ends(t):
    """No answer in time is a no; whoever hangs up takes the proposal back; a frozen sandbox and a
    killed one leave nothing behind."""
    box, ws = start(t, seconds=2)
    process = ask(t, box, ws, "allow", "a.test", "--reason", "x")
    asked(t)
    rc, _, err = got(process)
    t.equal((rc, "in time" in err), (1, True), f"a timeout: {err}")
    clean(t)
    box, ws = start(t)
    process = t.popen(t.ward_argv("exec", box, "timeout", "1", "ward-ask", "allow", "a.test",
                                  "--reason", "x"), cwd=ws)
    asked(t)
    t.equal(got(process)[0], 124, "it hangs up")
    t.wait_until(lambda: not questions(t), 10, "the question goes")
    process = ask(t, box, ws, "allow", "b.test", "--reason", "x")
    q = asked(t)[0]
    t.equal(t.ward("pause", box).rc, 0, "frozen")
    t.equal(t.ward("approve", q["id"], "--deny").rc, 0, "answered meanwhile")
    time.sleep(0.2)
    t.equal(process.poll(), None, "it stands still")
    t.equal(t.ward("resume", box).rc, 0, "goes on")
    t.equal(got(process)[0], 1, "and learns of it")
    process = ask(t, box, ws, "allow", "c.test", "--reason", "x")
    asked(t)
    t.equal(t.ward("kill", box).rc, 0, "killed")
    got(process)
    t.equal(questions(t), [], "nothing is left")


def test_too_many(t):
    """Ten proposals in a minute, sixteen processes at one time, and nothing that is not ward-ask's
    gets more than an error."""
    box, ws = start(t)
    out, err = t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "hostile.py"),
                       cwd=ws).communicate(timeout=60)
    rows = dict(line.split(" ", 1) for line in (out if isinstance(out, str)
                                                else out.decode()).splitlines())
    t.equal(rows, {"empty": "closed", "magic": "closed", "op": "closed", "count": "closed",
                   "unended": "closed", "long": "closed", "nul": "closed", "descriptors": "0",
                   "unicode": "2"}, f"{err}")
    script = "for i in $(seq 30); do ward-ask allow $i.test --reason x & done; wait"
    process = t.popen(t.ward_argv("exec", box, "sh", "-c", script), cwd=ws)
    asked(t, 10)
    for q in questions(t):
        t.equal(t.ward("approve", q["id"], "--deny").rc, 0, "a no")
    _, _, err = got(process)
    refused = err.count("too many proposals") + err.count("too many processes")
    t.equal((refused, err.count("said no")), (20, 10), "the others were refused")
    t.equal(questions(t), [], "none waits")


def test_where(t):
    """It runs under an allow list of programs; without approvals.mode: ask, or with proposals:
    false, it is not there, and approve answers as ever."""
    box, ws = start(t, process={"commands": {"allow": ["sh", "sleep"]}})
    rc, out, err = got(ask(t, box, ws, "rules"))
    t.equal((rc, "commands:\n  allow sh" in out), (0, True), f"under an allow list: {out} {err}")
    for more in ({"mode": "deny"}, {"mode": "ask", "proposals": False}):
        path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        with open(path, "w") as f:
            f.write(json.dumps({"version": 1, "approvals": more}))
        r = t.ward("run", "-p", path, "--", "sh", "-c", "command -v ward-ask; ls /.ward", cwd=ws)
        t.check("ask" not in r.out, f"{more}: {r.out}")


@by_turns
def test_a_port(t):
    """A port can only be put into the policy, for the next run."""
    world = World(t)
    box, ws = start(t, world)
    for bad in ("0", "65536", "080", "x", "3000:4000"):
        t.equal(got(ask(t, box, ws, "publish", bad, "--reason", "x"))[0], 2, bad)
    process = ask(t, box, ws, "publish", "3000", "--reason", "to look at it")
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["line"]), ("proposal", "publish port 3000", "3000"), q)
    t.equal(t.ward("approve", q["id"], "--run").rc, 125, "not for the run")
    policy = os.path.join(t.fresh_dir("mine"), "ward.yaml")
    r = t.ward("approve", q["id"], "--always", "--yes", "-p", policy)
    t.equal(r.rc, 0, f"always ({r.err})")
    t.equal(got(process)[:2], (0, "allowed from the next run on\n"), "told so")
    t.contains(t.ward("plan", "-p", policy, "--", "true", cwd=ws).out, "3000", "the next run")


WEB = r"""
import http.client, json, sys
def ask(method, path, body=None, host="ward.internal", **fields):
    c = http.client.HTTPConnection("ward.internal", 80, timeout=60)
    c.request(method, path, body, {"Host": host, **fields})
    r = c.getresponse()
    print(r.status, r.read().decode().strip().replace("\n", "|"), flush=True)
if len(sys.argv) > 1:
    ask("POST", sys.argv[1], json.dumps({"what": sys.argv[2], "reason": "the tests"}))
    sys.exit()
ask("GET", "/")
ask("GET", "/rules")
ask("GET", "/denials")
ask("GET", "/rules", host="localhost")
ask("GET", "/rules", Origin="http://evil.test")
ask("GET", "/other")
ask("PUT", "/allow", "{}")
ask("POST", "/allow", "{}")
ask("POST", "/allow", '{"what":"a.test","reason":"x","answer":"once"}')
ask("POST", "/allow", json.dumps({"what": "a.test\0.evil.test", "reason": "x"}))
ask("POST", "/allow", json.dumps({"what": "x.evil.test", "reason": "x"}))
ask("POST", "/allow", json.dumps({"what": "a.test", "reason": "x" * 5000}))
ask("POST", "/approve", json.dumps({"id": "1", "answer": "once"}))
"""


@by_turns
def test_over_http(t):
    """http://ward.internal/ is ward-ask for programs: rules, denials, proposals; nothing there
    answers."""
    world = World(t)
    box, ws = start(t, world)
    t.write(ws, {"web.py": WEB})
    run = lambda *words: t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "web.py", *words),
                                 cwd=ws)
    rc, out, err = got(run())
    rows = [line.split(" ", 1) for line in out.splitlines()]
    t.equal([int(row[0]) for row in rows],
            [200, 200, 200, 421, 403, 404, 405, 400, 400, 400, 403, 413, 404], f"{out} {err}")
    t.equal(json.loads(rows[1][1])["network"]["mode"], "restricted", "the rules")
    t.equal(json.loads(rows[10][1])["allowed"], False, "approvals.never")
    t.equal(questions(t), [], "nobody was asked")
    process = run("/allow", "db.test:5432")
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"]), ("proposal", "allow db.test:5432"), q)
    t.equal(connected(t, connect(t, box, ws, "db.test")), ["db.test gaierror"], "not yet")
    t.equal(t.ward("approve", q["id"], "--run").rc, 0, "for the run")
    t.equal(json.loads(got(process)[1].split(" ", 1)[1]),
            {"allowed": True, "message": "allowed"}, "told so")
    t.equal(connected(t, connect(t, box, ws, "db.test")), ["db.test hello"], "at once")
    process = t.popen(t.ward_argv("exec", box, "timeout", "1", "/usr/bin/python3", "web.py",
                                  "/allow", "c.test"), cwd=ws)
    asked(t)
    got(process)
    t.wait_until(lambda: not questions(t), 10, "whoever hangs up takes it back")
