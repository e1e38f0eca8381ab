"""approvals.never: what no answer can allow, in whatever way it comes. What it names is refused
before there is a question, and what an answer opens does not lead there."""
import json
import os

from harness.creds import secret_file
from harness.world import World, trusted_world
from run.test_approve import ASK, MANY, TRY, asked, clean, connect, events, got, questions
from run.test_approve_files import data, got as got_files, read, READ
from run.test_approve_requests import approve, got as got_requests, send, start
from run.test_inspect_asked import get, post

NEVER = ["host:db.test", "host:*.evil.test", "host:10.0.0.0/8"]


def begin(t, world, never, rules=None, files=None, **more):
    """A detached idle sandbox; returns (id, workspace)."""
    ws = t.workspace({"try.py": TRY, "many.py": MANY, **(files or {})})
    t.defer(clean, t)
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1,
                            "network": {"mode": "restricted",
                                        "egress_allowlist": [ASK] if rules is None else rules},
                            "approvals": {"mode": "ask", "timeout_seconds": 60, "never": never},
                            **more}))
    r = (world or t).ward("run", "-d", "-p", path, cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def test_hosts(t):
    """Nobody is asked about such a host, and no rule of the run leads there: not by its name, not
    by a wildcard. Other hosts are asked about, and what a rule allows without asking is allowed."""
    world = World(t)
    box, ws = begin(t, world, NEVER, [ASK, {"host": "other.evil.test", "ports": [5432]}])
    t.equal(got(t, connect(t, box, ws, "db.test", "x.evil.test")),
            ["db.test gaierror", "x.evil.test gaierror"], "not even looked up")
    t.equal(questions(t), [], "without a question")
    r = t.ward("net", "allow", box, "DB.test.:5432")
    t.equal(r.rc, 125, "by name, however it is written")
    t.contains(r.err, "approvals.never", "says why")
    t.equal(t.ward("net", "allow", box, "*.test:5432").rc, 0, "a wildcard is a rule")
    t.equal(got(t, connect(t, box, ws, "db.test", "web.test")),
            ["db.test gaierror", "web.test hello"], "for all but those")
    t.equal(t.ward("net", "deny", box, "*.test").rc, 0, "and is taken back")
    said = {e["object"] for e in events(t, box, "net.dns")
            if "approvals.never" in e.get("why", "")}
    t.equal(said, {"db.test", "x.evil.test"}, "on record")


def test_no_group(t):
    """A group that has such a host in it is not offered; the host beside it is."""
    world = World(t)
    box, ws = begin(t, world, ["host:evil.web.test", "host:db.test"])
    process = connect(t, box, ws, "api.web.test")
    q = asked(t)[0]
    r = t.ward("approve", q["id"], "--run", "--group")
    t.equal(r.rc, 125, "no group")
    t.contains(r.err, "approvals.never", "says why")
    t.equal(t.ward("approve", q["id"], "--deny").rc, 0, "a no is one always")
    t.equal(got(t, process), ["api.web.test ConnectionResetError"], "denied")


def test_requests_and_secrets(t):
    """Requests to such a host, and a secret that is named, are refused without a question; a rule
    beside it that does not ask goes on."""
    world = trusted_world(t)
    rules = [{"host": "web.test", "methods": ["GET"], "paths": ["/open/*", "/v1/*"]},
             {"host": "web.test", "methods": ["POST"], "paths": ["/v1/*"], "ask": True}]
    box, ws = start(t, world, rules, approvals={"mode": "ask", "never": ["host:web.test"]})
    answers = [status for status, _ in got_requests(t, send(
        t, box, ws, get("/open/a"), post("/v1/b", "the body", "text/plain")))]
    t.equal(answers, [200, 403], "what asks is refused")
    t.equal(questions(t), [], "without a question")
    clean(t)
    grants = {"mode": "just_in_time", "grants": [
        {"name": "key", "source": "file:" + secret_file(t), "hosts": ["web.test"],
         "header": "X-Api-Key: {}", "paths": ["/v1/*"], "as": "KEY", "ask": True}]}
    box, ws = start(t, world, [{"host": "web.test", "mode": "inspect"}], credentials=grants,
                    approvals={"mode": "ask", "never": ["credential:k*"]})
    (status, body), = got_requests(t, send(t, box, ws, get("/v1/a")))
    t.equal(status, 403, "no secret is put in")
    t.contains(body, "approvals.never", "says why")
    t.equal((questions(t), [line for line in world.log() if line.startswith("key ")]), ([], []),
            "no question, and the server saw none")


def test_files(t):
    """A path, everything below one, and what a link leads to."""
    d = data(t, **{"a": "first", "id.pem": "key", "deep/b": "second"})
    os.symlink(os.path.join(d, "a"), os.path.join(d, "link"))
    box, ws = begin(t, None, [f"path:{d}/deep", "path:*.pem"], [], {"read.py": READ},
                    filesystem={"ask": [d]})
    process = read(t, box, ws, os.path.join(d, "id.pem"), os.path.join(d, "deep", "b"),
                   os.path.join(d, "deep", "..", "a"))
    approve(t, asked(t)[0], "--once")
    t.equal(got_files(t, process), ["PermissionError 13", "PermissionError 13", "first"],
            "asked about the one that is not named")


def test_policy(t):
    """What is an entry; the plan shows them."""
    ws = t.workspace()
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    for entry, good in (("host:*.test", True), ("host:10.0.0.0/8", True), ("path:~/.ssh", True),
                        ("path:*.pem", True), ("program:git", True), ("credential:*", True),
                        ("host:a b", False), ("host:", False), ("path:x", False), ("git", False),
                        ("user:root", False), ("host:bücher.test", True)):
        with open(path, "w") as f:
            f.write(json.dumps({"version": 1, "approvals": {"mode": "ask", "never": [entry]}}))
        r = t.ward("plan", "-p", path, "--", "true", cwd=ws)
        t.equal(r.rc == 0, good, f"{entry}: {r.err}")
        t.contains(r.out if good else r.err, "no answer allows it" if good else "approvals.never",
                   entry)
