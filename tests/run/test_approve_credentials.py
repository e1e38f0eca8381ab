"""Approvals of secrets: a grant with ask puts its secret into no request before a person has said
yes, whatever the gateway's other processes think of it."""
import hashlib
import json
import os

from harness import timeout
from harness.creds import SECRET, secret_file
from harness.world import need, serve, trusted_world
from run.test_approve import asked, events, questions
from run.test_approve_requests import approve, got, send, start
from run.test_inspect_asked import NGINX, get, post

RULES = [{"host": "web.test", "ports": [443, 9443], "mode": "inspect"},
         {"host": "other.test", "mode": "inspect"}]


def grants(t, **more):
    """A grant that asks, for one path."""
    return {"mode": "just_in_time", "grants": [
        {"name": "key", "source": "file:" + secret_file(t), "hosts": ["web.test"],
         "header": "X-Api-Key: {}", "paths": ["/v1/*"], "as": "KEY", "ask": True, **more}]}


def keys(world):
    """What the servers saw of the secret."""
    return [line.split(" ")[2] for line in world.log() if line.startswith("key ")]


def requests(world):
    return [line.split(" ")[2] for line in world.log() if line.startswith("http ")]


def test_once_and_no(t):
    """The request waits for its secret; with a no it is refused, and the server hears nothing."""
    world = trusted_world(t)
    box, ws = start(t, world, RULES, credentials=grants(t))
    t.equal(got(t, send(t, box, ws, get("/open")))[0][0], 200, "a request without it")
    process = send(t, box, ws, get("/v1/a?n=1"), post("/v1/b", "the body", "text/plain"),
                   get("/v1/c"))
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["host"], q["rule"]),
            ("credential", "secret key for GET https://web.test/v1/a", "web.test", "key"), q)
    t.equal(q["details"][0], "query: n=1", "its query")
    t.equal((requests(world), keys(world)), (["/open"], []), "the server knows nothing of it")
    r = t.ward("approve", q["id"], "--always")
    t.equal(r.rc, 125, "there is no rule for that")
    approve(t, q, "--once")
    q = asked(t)[0]
    t.equal(q["subject"], "secret key for POST https://web.test/v1/b", "the next")
    approve(t, q, "--once")
    approve(t, asked(t)[0], "--deny")
    (first, _), second, (third, body) = got(t, process)
    t.equal((first, second, third), (200, [200, "the body"], 403), f"the answers {body}")
    t.contains(body, "a person was asked and said no", "why")
    t.equal(keys(world), [SECRET], "the secret went with the GET (the server logs no POST's)")
    t.equal(requests(world), ["/open", "/v1/a?n=1", "/v1/b"], "and /v1/c never")
    t.equal([(e["question"], e["action"], e["via"]) for e in events(t, box, "approval.answer")],
            [("credential", "approve", "control"), ("credential", "approve", "control"),
             ("credential", "deny", "control")], "on record")


def test_what_is_shown(t):
    """ward approve on a terminal says what a request is about; what is cut has a hash of all."""
    world = trusted_world(t)
    box, ws = start(t, world, RULES, credentials=grants(t))
    query, path = "n=" + "1" * 300, "/v1/" + "p" * 500
    process = send(t, box, ws, get(f"/v1/a?{query}"), get(path))
    q = asked(t)[0]
    shown = f"(sha256 {hashlib.sha256(query.encode()).hexdigest()[:12]})"
    t.contains(q["details"][0], shown)
    r = t.tty(*t.ward_argv("approve"), input=b"q", after=b"every request to this host")
    t.contains(r.out, shown)
    approve(t, q, "--once")
    q = asked(t)[0]
    t.contains(q["subject"], "(sha256 ")
    approve(t, q, "--deny")
    t.equal([status for status, _ in got(t, process)], [200, 403], "the answers")


def test_scopes(t):
    """A yes for the run is for the grant at this host, and for no other grant or host."""
    world = trusted_world(t)
    path = secret_file(t)
    two = {"mode": "just_in_time", "grants": [
        {"name": name, "source": f"file:{path}", "hosts": [host], "header": "X-Api-Key: {}",
         "as": name.upper(), "ask": True} for name, host in (("one", "web.test"),
                                                            ("two", "other.test"))]}
    box, ws = start(t, world, RULES, credentials=two)
    process = send(t, box, ws, get("/a"), get("/b"), post("/c", "x", "text/plain"))
    approve(t, asked(t)[0], "--run")
    t.equal([status for status, _ in got(t, process)], [200] * 3, "one answer")
    other = [get("/a")[0].replace("web.test", "other.test"), "", 0]
    t.write(ws, {"other.py": t.read(os.path.join(ws, "client.py")).replace("web.test",
                                                                          "other.test"),
                 "requests.json": json.dumps([other])})
    process = t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "other.py"), cwd=ws)
    q = asked(t)[0]
    t.equal((q["host"], q["rule"]), ("other.test", "two"), "the other grant asks for itself")
    approve(t, q, "--deny")
    t.equal(got(t, process)[0][0], 403, "denied")


def test_no_person(t):
    """No answer in time, a mode that asks nobody, a grant that is revoked while it waits, a program
    that hangs up."""
    world = trusted_world(t)
    box, ws = start(t, world, RULES, seconds=1, credentials=grants(t))
    (status, body), = got(t, send(t, box, ws, get("/v1/a")))
    t.check(status == 403 and "did not answer in time" in body, f"too late: {status} {body}")
    box, ws = start(t, world, RULES, mode="deny", credentials=grants(t))
    (status, body), = got(t, send(t, box, ws, get("/v1/a")))
    t.check(status == 403 and "approvals.mode is deny" in body, f"nobody: {status} {body}")
    box, ws = start(t, world, RULES, credentials=grants(t))
    process = send(t, box, ws, get("/v1/a"))
    asked(t)
    process.terminate()
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")
    process = send(t, box, ws, get("/v1/a"))
    q = asked(t)[0]
    t.equal(t.ward("secret", "revoke", box, "key").rc, 0, "revoked")
    approve(t, q, "--once")
    (status, body), = got(t, process)
    t.check(status == 403 and "revoked" in body, f"a yes that comes too late: {status} {body}")
    t.equal(keys(world), [], "no server ever saw it")


@timeout(90)
def test_http2(t):
    """Streams of one connection wait each for itself; one that needs no secret does not."""
    nginx, curl = need(t, "nginx", "curl")
    world = trusted_world(t)
    t.write(world.dir, {"nginx.conf": NGINX.format(d=world.dir, c=world.certificates)})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    box, ws = start(t, world, RULES, credentials=grants(t))
    t.write(ws, {"body": "x" * 200000})
    one = lambda name, *words: ["-sS", "--http2", "-o", f"{name}.out", "-w",
                                f"{name} %{{http_version}} %{{http_code}}\n", *words]
    url = "https://web.test:9443"
    argv = one("open", f"{url}/open") + ["--next"] + one("yes", f"{url}/v1/yes") + [
        "--next"] + one("no", f"{url}/v1/no") + [
        "--next"] + one("body", "--data-binary", "@body", f"{url}/v1/body")
    process = t.popen(t.ward_argv("exec", box, curl, "-Z", *argv), cwd=ws)
    for q in asked(t, 3):
        approve(t, q, "--deny" if "/v1/no" in q["subject"] else "--once")
    out, err = process.communicate(timeout=60)
    out = out if isinstance(out, str) else out.decode()
    t.equal(sorted(out.splitlines()), ["body 2 200", "no 2 403", "open 2 200", "yes 2 200"], err)
    t.equal(len(t.read(os.path.join(ws, "body.out"))), 200000, "the body came whole")
    with t.root():	# nginx has made the directory its own
        t.equal(keys(world), [SECRET], "with the GET that was allowed alone")
    process = t.popen(t.ward_argv("exec", box, curl, *one("gone", f"{url}/v1/gone")), cwd=ws)
    asked(t)
    process.terminate()
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")


def test_policy(t):
    """plan says that a person is asked, or that nobody is."""
    d = t.fresh_dir("p")
    document = {"version": 1, "network": {"mode": "restricted", "egress_allowlist": RULES},
                "credentials": grants(t)}
    for mode, words in (("ask", "a person has to allow each use"),
                        ("deny", "never used: approvals.mode is deny")):
        t.write(d, {"p.yaml": json.dumps({**document, "approvals": {"mode": mode}})})
        r = t.ward("plan", "-p", "p.yaml", "--", "true", cwd=d)
        t.contains(r.out, words, f"plan ({r.err})")
