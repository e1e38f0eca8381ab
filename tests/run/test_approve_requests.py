"""Approvals of single requests: one that a rule asks about waits in the gateway behind its head, or
behind its body where the rule reads that, and goes on as it was shown or not at all."""
import json
import os

from harness import by_turns, timeout
from harness.boxes import clean
from harness.world import HERE, need, serve, trusted_world
from run.test_approve import asked, events, questions
from run.test_inspect_asked import CLIENT, NGINX, call, get, post

RULES = [{"host": "web.test", "methods": ["GET"], "paths": ["/open/*"]},
         {"host": "web.test", "methods": ["GET", "POST", "DELETE"], "paths": ["/v1/*"],
          "ask": True},
         {"host": "web.test", "paths": ["/mcp"], "json_rpc": ["tools/list"]},
         {"host": "web.test", "paths": ["/mcp"], "json_rpc": ["tools/call:*"], "ask": True}]


def start(t, world, rules=None, seconds=60, mode="ask", **more):
    """A detached idle sandbox; returns (id, workspace)."""
    ws = t.workspace({"client.py": CLIENT})
    t.defer(clean, t)
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1,
                            "network": {"mode": "restricted",
                                        "egress_allowlist": RULES if rules is None else rules},
                            "approvals": {"mode": mode, "timeout_seconds": seconds}, **more}))
    r = world.ward("run", "-d", "-p", path, cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def send(t, box, ws, *rows, name="requests.json"):
    """Requests inside, one after the other; the process."""
    t.write(ws, {name: json.dumps(rows)})
    return t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "-c",
                               CLIENT.replace("requests.json", name)), cwd=ws)


def got(t, process):
    out, err = process.communicate(timeout=60)
    return [json.loads(line) for line in (out if isinstance(out, str) else out.decode())
            .splitlines()]


def approve(t, q, how):
    r = t.ward("approve", q["id"], how)
    t.equal(r.rc, 0, f"approve {how} ({r.err})")


def seen(world):
    return [line.split(" ", 2)[2] for line in world.log() if line.startswith("http ")]


def test_heads(t):
    """By method and path: what another rule allows passes, the rest waits behind its head; once is
    once, a no is a 403, and the server has heard nothing."""
    world = trusted_world(t)
    box, ws = start(t, world)
    t.equal(got(t, send(t, box, ws, get("/open/x")))[0][0], 200, "no question")
    process = send(t, box, ws, get("/v1/a?key=1"), get("/v1/a?key=1"))
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["host"], q["port"]),
            ("request", "GET https://web.test/v1/a", "web.test", 443), "the question")
    t.equal(q["details"][0], "query: key=1", "its query")
    t.equal(q["line"], '{host: "web.test", ports: [443], methods: [GET], paths: ["/v1/a"]}',
            "what always adds")
    t.equal(seen(world), ["/open/x"], "it waits")
    approve(t, q, "--once")
    again = asked(t)[0]
    t.check(again["id"] != q["id"], "once is once")
    approve(t, again, "--deny")
    (first, _), (second, body) = got(t, process)
    t.equal((first, second, json.loads(body)["reason"]), (200, 403, "answered_no"), "the answers")
    t.equal(seen(world), ["/open/x", "/v1/a?key=1"], "one of them reached the server")
    process = send(t, box, ws, post("/v1/up", "the body", "text/plain"))
    q = asked(t)[0]
    t.check("body: not read by the rule" in " ".join(q["details"]), f"it says so: {q}")
    approve(t, q, "--once")
    t.equal(got(t, process), [[200, "the body"]], "the body follows")
    t.equal(got(t, send(t, box, ws, get("/other")))[0][0], 403, "no rule asks")
    asks = events(t, box, "approval.ask")
    t.equal([(e["question"], e["object"]) for e in asks][:1],
            [("request", "GET https://web.test/v1/a")], "on record")
    answers = events(t, box, "approval.answer")
    t.equal([(e["action"], e["change"], e["via"]) for e in answers],
            [("approve", "answer", "control"), ("deny", "answer", "control"),
             ("approve", "answer", "control")], "with who and how")


def test_bodies(t):
    """By the tool of a JSON-RPC call: it waits behind its body, which is shown and is what goes."""
    world = trusted_world(t)
    box, ws = start(t, world)
    tool = call("tools/call", params={"name": "rm", "arguments": {"path": "/precious"}})
    t.equal(got(t, send(t, box, ws, post("/mcp", call("tools/list"))))[0][0], 200, "no question")
    for how, status, pieces in (("--once", 200, 0), ("--deny", 403, 7), ("--once", 200, 7)):
        process = send(t, box, ws, post("/mcp", tool, pieces=pieces))
        q = asked(t)[0]
        t.equal(q["subject"], "POST https://web.test/mcp json_rpc=tools/call:rm", "the question")
        t.contains(" ".join(q["details"]), '"name": "rm", "arguments": {"path": "/precious"',
                   "its body")
        before = len(seen(world))
        approve(t, q, how)
        (was, body), = got(t, process)
        t.equal(was, status, f"{how} ({body})")
        t.equal(len(seen(world)) - before, status == 200, "what the server heard")
        if status == 200:
            t.equal(json.loads(body), tool, "the body as it was shown")


@by_turns
def test_scopes(t):
    """For the run, for a time: the same URL passes without another question, another does not."""
    world = trusted_world(t)
    box, ws = start(t, world)
    one, two = (send(t, box, ws, post("/v1/a", text, "text/plain"), name=f"{text}.json")
                for text in ("first", "second"))
    approve(t, asked(t, 2)[0], "--run")
    t.equal([got(t, one), got(t, two)], [[[200, "first"]], [[200, "second"]]], "both went on")
    t.equal(got(t, send(t, box, ws, post("/v1/a", "third", "text/plain"))), [[200, "third"]],
            "and so on")
    t.check(events(t, box, "approval.answer")[-1]["change"] == "covered", "which is on record")
    for row in (post("/v1/a?x", "body", "text/plain"), get("/v1/a"), get("/v1/b")):
        process = send(t, box, ws, row)
        approve(t, asked(t)[0], "--deny")
        t.equal(got(t, process)[0][0], 403, "another question")
    process = send(t, box, ws, get("/v1/b"))
    r = t.ward("approve", asked(t)[0]["id"], "--for", "2s")
    t.equal((r.rc, got(t, process)[0][0]), (0, 200), "for two seconds")
    t.equal(got(t, send(t, box, ws, get("/v1/b")))[0][0], 200, "in this time")
    t.wait_until(lambda: later(t, box, ws), 20, "its time is over")


def later(t, box, ws):
    process = send(t, box, ws, get("/v1/b"))
    t.wait_until(lambda: questions(t) or process.poll() is not None, 20, "an answer or a question")
    if not questions(t):
        process.communicate()
        return False
    approve(t, questions(t)[0], "--deny")
    return got(t, process)[0][0] == 403


def test_no_person(t):
    """No answer in time is a no; so is a mode that asks nobody; who hangs up takes the question
    along; a rule that denies closes what waits."""
    world = trusted_world(t)
    box, ws = start(t, world, seconds=1)
    (status, body), = got(t, send(t, box, ws, get("/v1/a")))
    t.equal((status, json.loads(body)["reason"]), (403, "unanswered"), "too late")
    box, ws = start(t, world, mode="deny")
    (status, body), = got(t, send(t, box, ws, get("/v1/a")))
    t.equal((status, json.loads(body)["reason"]), (403, "not_asked"), "nobody is asked")
    t.equal(got(t, send(t, box, ws, get("/open/a")))[0][0], 200, "what needs no answer passes")
    box, ws = start(t, world)
    process = send(t, box, ws, get("/v1/a"))
    asked(t)
    process.terminate()
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")
    process = send(t, box, ws, get("/v1/a"))
    asked(t)
    t.equal(t.ward("net", "deny", box, "web.test").rc, 0, "a rule that denies")
    t.check(got(t, process)[0][0] not in (200, 403), "the connection is closed")
    t.wait_until(lambda: not questions(t), 10, "and the question goes")
    t.equal([line for line in seen(world) if line.startswith("/v1")], [], "nothing was sent")


REWRITE = r"""
import socket, ssl, sys
context = ssl.create_default_context()
s = context.wrap_socket(socket.create_connection(("web.test", 443), 20),
                        server_hostname="web.test")
s.settimeout(60)
s.sendall(b"POST /v1/a HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\n\r\nfour")
# whatever comes behind it while it waits is another request
for _ in range(200):
    s.sendall(b"DELETE /v1/evil HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\n\r\nEVIL")
sys.stdin.read()
"""


def test_what_was_shown_is_sent(t):
    """A program that goes on to write while its request waits changes nothing about it."""
    world = trusted_world(t)
    box, ws = start(t, world)
    process = t.popen(t.ward_argv("exec", "-i", box, "/usr/bin/python3", "-c", REWRITE), cwd=ws,
                      stdin=-1)
    q = asked(t)[0]
    t.equal(q["subject"], "POST https://web.test/v1/a", "the question")
    approve(t, q, "--once")
    again = asked(t)[0]
    t.equal(again["subject"], "DELETE https://web.test/v1/evil", "the next is another question")
    t.equal(seen(world), ["/v1/a"], "what was shown, and nothing else")
    process.stdin.close()
    process.terminate()


def test_rule_that_never_asks(t):
    """A rule beside one that allows every request would never ask: an error that says so."""
    ws = t.workspace({})
    rules = [{"host": "web.test", "methods": ["DELETE"], "ask": True},
             {"host": "web.test", "mode": "inspect"}]
    t.write(ws, {"ward.yaml": json.dumps({"version": 1, "network": {
        "mode": "restricted", "egress_allowlist": rules}, "approvals": {"mode": "ask"}})})
    r = t.ward("plan", "-p", os.path.join(ws, "ward.yaml"), "--", "true", cwd=ws)
    t.equal(r.rc, 125, "refused")
    t.contains(r.err, "ask has no effect", "why")


@timeout(90)
def test_http2(t):
    """Several streams of one connection wait, each for its own answer."""
    nginx, curl = need(t, "nginx", "curl")
    world = trusted_world(t)
    t.write(world.dir, {"nginx.conf": NGINX.format(d=world.dir, c=world.certificates)})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    base = {"host": "web.test", "ports": [9443]}
    box, ws = start(t, world, [{**base, "paths": ["/open/*"]},
                               {**base, "paths": ["/v1/*"], "ask": True},
                               {**base, "paths": ["/mcp"], "json_rpc": ["tools/call:*"],
                                "ask": True}])
    t.write(ws, {"body": "x" * 300000, "tool": json.dumps(call("tools/call",
                                                              params={"name": "rm"}))})
    one = lambda name, *words: ["-sS", "--http2", "-o", f"{name}.out", "-w",
                                f"{name} %{{http_version}} %{{http_code}}\n", *words]
    url = "https://web.test:9443"
    argv = one("open", f"{url}/open/1") + ["--next"] + one("a", f"{url}/v1/a?q=1") + [
        "--next"] + one("b", "--data-binary", "@body", f"{url}/v1/b") + [
        "--next"] + one("no", f"{url}/v1/no") + [
        "--next"] + one("tool", "-H", "Content-Type: application/json", "--data-binary", "@tool",
                        f"{url}/mcp") + [
        "--next"] + one("tool-no", "-H", "Content-Type: application/json", "--data-binary",
                        "@tool", f"{url}/mcp")
    process = t.popen(t.ward_argv("exec", box, curl, "-Z", *argv), cwd=ws)
    qs = {q["subject"]: q for q in asked(t, 4)}
    t.equal(sorted(qs), [f"GET {url}/v1/a", f"GET {url}/v1/no",
                         f"POST {url}/mcp json_rpc=tools/call:rm", f"POST {url}/v1/b"],
            "the questions")
    t.equal(qs[f"POST {url}/mcp json_rpc=tools/call:rm"]["count"], 2, "two equal ones")
    for subject, q in reversed(qs.items()):	# each answer is for its own alone
        approve(t, q, "--deny" if "/v1/no" in subject else "--once")
    out, err = process.communicate(timeout=60)
    out = out if isinstance(out, str) else out.decode()
    t.equal(sorted(out.splitlines()), ["a 2 200", "b 2 200", "no 2 403", "open 2 200",
                                       "tool 2 200", "tool-no 2 200"], f"{err}")
    t.equal(len(t.read(os.path.join(ws, "b.out"))), 300000, "the body came whole")
    process = t.popen(t.ward_argv("exec", box, curl, *one("gone", f"{url}/v1/gone")), cwd=ws)
    asked(t)
    process.terminate()
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")


PUSH = r"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_TERMINAL_PROMPT=0 HOME=/tmp
cd /tmp && rm -rf open && git clone -q https://web.test:9447/team/open.git && cd open
seq 100000 >big; git add big; git commit -qm "$1"; git rev-parse HEAD
git push -q origin HEAD:refs/heads/$1 2>&1 && echo pushed
"""


@timeout(90)
def test_git_push(t):
    """A push waits when its refs are known, with the commits that they shall name."""
    git, = need(t, "git")
    world = trusted_world(t)
    bare = os.path.join(world.dir, "team/open.git")
    os.makedirs(os.path.dirname(bare))
    t.run(git, "clone", "-q", "--bare", t.git_repo({"README": "x\n"}), bare, check=True)
    serve(t, world, ["/usr/bin/python3", os.path.join(HERE, "git_server.py"), world.certificates,
                     "9447", world.dir], 9447)
    base = {"host": "web.test", "ports": [9447], "repositories": ["/team/open"]}
    box, ws = start(t, world, [{**base, "git": ["fetch"]},
                               {**base, "git": ["push"], "refs": ["refs/heads/agent/*"],
                                "ask": True}])
    for how, branch in (("--once", "agent/yes"), ("--deny", "agent/no")):
        process = t.popen(t.ward_argv("exec", box, "/bin/bash", "-c", PUSH, "push", branch),
                          cwd=ws)
        q = asked(t)[0]
        t.check(q["subject"].endswith(f"git=push:refs/heads/{branch}"), f"subject: {q}")
        approve(t, q, how)
        out, _ = process.communicate(timeout=60)
        lines = (out if isinstance(out, str) else out.decode()).splitlines()
        t.check(f"body: refs/heads/{branch} new -> {lines[0][:12]}" in q["details"],
                f"the commit: {q['details']} {lines}")
        if how == "--once":
            t.equal(lines[1:], ["pushed"], "pushed")
        else:
            t.check("pushed" not in lines and "a person was asked and said no" in " ".join(lines),
                    f"git says why: {lines}")
    refs = t.run(git, "-c", "safe.directory=*", "-C", bare, "for-each-ref",
                 "--format=%(refname)", root=True).out.split()
    t.check("refs/heads/agent/yes" in refs and "refs/heads/agent/no" not in refs, f"{refs}")
