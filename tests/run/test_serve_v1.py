"""ward serve: what stands under /ward/v1 (docs/serve.md): stop, events, approvals, templates, and
the OpenAPI document."""
import json
import os
import pathlib
import re
import subprocess
import threading

from harness import by_turns, timeout
from harness.serve import Server, messages, sdk

ROUTES = (pathlib.Path(__file__).resolve().parents[2] / "src/daemon/routes.def").read_text()
MORE = os.environ.get("WARD_SCHEMATHESIS")
ASKING = """version: 1
process: {user: user}
resources: {memory_limit: 1Gi, pids_limit: 256, disk_limit: 1Gi}
filesystem: {ask: [%s]}
approvals: {mode: ask, timeout_seconds: 60}
"""


def add_key(t, s, owner, *more):
    return t.ward("serve", "--state", s.state, "--add-key", owner, *more).out.strip()


def ids(s, key=True):
    return {b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes", key=key).json}


def test_serve_stop_by_labels(t):
    s = Server(t)
    red = [s.create(metadata={"team": "red", "n": str(n)}) for n in range(3)]
    blue = s.create(metadata={"team": "blue"})
    bob = add_key(t, s, "bob")
    theirs = s.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"team": "red"}},
                   key=bob).json["sandboxID"]
    s.ask("POST", f"/sandboxes/{red[0].id}/pause", {})
    c, r = red[1].start("/bin/sleep", "60")
    next(messages(r))
    for body in (None, {}, {"all": False}, {"all": True, "labels": {"team": "red"}},
                 {"labels": {}}, {"labels": {"team": 1}}, {"label": {"team": "red"}}, []):
        t.equal((body, s.ask("POST", "/ward/v1/stop", body).status), (body, 400))
    t.equal(len(ids(s)), 4)
    t.equal(s.ask("POST", "/ward/v1/stop", {"labels": {"team": "red"}}).json, {"stopped": 3})
    t.equal(ids(s), {blue.id})
    t.equal(list(messages(r)), [])	# broken off
    c.close()
    # gone as well for ward, and nothing of another owner's
    t.equal({b["name"] for b in json.loads(t.ward("ps", "--json").out)["sandboxes"]},
            {blue.id, theirs})
    t.equal(s.ask("POST", "/ward/v1/stop", {"labels": {"team": "red"}}).json, {"stopped": 0})
    # a token for some stops those alone
    blues = s.ask("POST", "/ward/v1/tokens", {"role": "operator", "ttl": 60,
                                              "labels": {"team": "blue"}}).json["token"]
    other = s.create()
    t.equal(s.ask("POST", "/ward/v1/stop", {"all": True}, key=blues).json, {"stopped": 1})
    t.equal(ids(s), {other.id})
    runner = add_key(t, s, "dev", "--role", "runner")
    t.equal(s.ask("POST", "/ward/v1/stop", {"all": True}, key=runner).status, 403)
    everybody = add_key(t, s, "*")
    t.equal(s.ask("POST", "/ward/v1/stop", {"all": True}, key=everybody).json, {"stopped": 2})
    t.equal((ids(s), ids(s, bob)), (set(), set()))


def test_serve_stop_freezes_first(t):
    """No sandbox can act on the end of another: all are frozen before the first is killed."""
    s = Server(t)
    boxes = [s.create() for _ in range(6)]
    kinds = []
    c = s.connection(60)
    c.request("GET", "/ward/v1/events", headers={"X-API-KEY": s.key})
    r = c.getresponse()
    reader = threading.Thread(target=lambda: read_events(r, kinds), daemon=True)
    reader.start()
    t.equal(s.ask("POST", "/ward/v1/stop", {"all": True}).json, {"stopped": len(boxes)})
    log = [json.loads(line) for line in s.log().splitlines() if line.startswith("{")]
    ends = [e["kind"] for e in log if e["kind"] in ("sandbox_frozen", "sandbox_ends")]
    t.equal(ends, ["sandbox_frozen"] * 6 + ["sandbox_ends"] * 6)
    t.wait_until(lambda: len([k for k, _ in kinds if k == "sandbox_gone"]) == 6, 10)

def read_events(r, kinds):
    kind = None
    try:
        for line in r:
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                kinds.append((kind, json.loads(line[6:])))
    except (OSError, ValueError, AttributeError):
        pass


def listen(t, s, key, query=""):
    c = s.connection(60)
    c.request("GET", "/ward/v1/events" + query, headers={"X-API-KEY": key})
    r = c.getresponse()
    t.equal((r.status, r.headers["Content-Type"]), (200, "text/event-stream"))
    kinds = []
    thread = threading.Thread(target=read_events, args=(r, kinds), daemon=True)
    thread.start()
    return thread, kinds


def test_serve_events(t):
    s = Server(t)
    first = s.create()
    bob = add_key(t, s, "bob")
    made = s.ask("POST", "/ward/v1/tokens", {"role": "viewer", "ttl": 60}).json
    _, mine = listen(t, s, s.key)
    _, theirs = listen(t, s, bob)
    _, one = listen(t, s, s.key, f"?sandboxID={first.id}")
    cut, by_token = listen(t, s, made["token"])
    t.equal(s.ask("GET", f"/ward/v1/events?sandboxID={first.id}", key=bob).status, 404)
    t.equal(s.ask("GET", "/ward/v1/events?sandboxID=x").status, 400)
    second = s.create()
    s.ask("POST", f"/sandboxes/{second.id}/pause", {})
    wanted = [("sandbox_started", second.id), ("sandbox_paused", second.id),
              ("sandbox_ends", first.id), ("sandbox_gone", first.id)]
    t.wait_until(lambda: len(by_token) == 2, 10)
    # with its token the stream ends
    t.equal(s.ask("DELETE", f"/ward/v1/tokens/{made['id']}").status, 204)
    cut.join(10)
    t.equal(cut.is_alive(), False)
    first.kill()
    t.wait_until(lambda: len(mine) >= 4, 10)
    t.equal([(k, e["sandboxID"]) for k, e in mine], wanted)
    t.equal([(k, e["sandboxID"]) for k, e in one], wanted[2:])
    t.equal(theirs, [])
    # no more than so many at one time
    sockets = [listen(t, s, bob) for _ in range(31)]
    t.equal(len(sockets), 31)
    t.equal(s.ask("GET", "/ward/v1/events", key=bob).status, 429)


def test_serve_approvals(t):
    """A question of a sandbox is listed and answered by who may, and by nobody else."""
    templates, secret = t.fresh_dir("templates"), t.fresh_dir("secret")
    with open(os.path.join(secret, "plan.txt"), "w") as f:
        f.write("the plan\n")
    os.chmod(secret, 0o755)
    with open(os.path.join(templates, "asking.yaml"), "w") as f:
        f.write(ASKING % secret)
    s = Server(t, "--templates", templates)
    s.create()	# asks nothing
    box = s.create("asking")
    approver = add_key(t, s, "dev", "--role", "approver")
    runner = add_key(t, s, "dev", "--role", "runner")
    bob = add_key(t, s, "bob", "--role", "approver")
    t.equal(s.ask("GET", "/ward/v1/approvals", key=approver).json, [])
    for answer, output in (("deny", ""), ("once", "the plan\n")):
        found = []
        reader = threading.Thread(
            target=lambda: found.append(box.sh(f"cat {secret}/plan.txt")), daemon=True)
        reader.start()
        t.wait_until(lambda: s.ask("GET", "/ward/v1/approvals", key=approver).json, 20)
        q, = s.ask("GET", "/ward/v1/approvals", key=approver).json
        t.equal((q["sandboxID"], q["kind"], q["subject"]),
                (box.id, "file", f"read {secret}/plan.txt"))
        path = f"/ward/v1/approvals/{q['id']}"
        t.equal(s.ask("GET", "/ward/v1/approvals", key=bob).json, [])
        for key, status in ((bob, 404), (runner, 403)):
            t.equal(s.ask("POST", path, {"answer": "once"}, key=key).status, status)
        for bad in ({}, {"answer": "yes"}, {"answer": "time"}, {"answer": "once", "seconds": 5},
                    {"answer": "always"}, {"answer": "once", "by": "me"}):
            t.equal((bad, s.ask("POST", path, bad, key=approver).status), (bad, 400))
        t.equal(s.ask("POST", path, {"answer": answer}, key=approver).status, 204)
        reader.join(20)
        t.equal(found[0][1], output)
        t.equal(s.ask("POST", path, {"answer": answer}, key=approver).status, 409)
    for bad in (box.id, f"{box.id}:", f"{box.id}:x", "x:1", f"{box.id}:1:2"):
        t.equal((bad, s.ask("POST", f"/ward/v1/approvals/{bad}", {"answer": "once"},
                            key=approver).status), (bad, 404))
    # what was answered, and by whom, is on record
    events = s.ask("GET", "/ward/v1/audit").json["events"]
    t.equal([e["status"] for e in events if e.get("call") == "approve" and e["allowed"]][-1], 404)
    t.equal(len([e for e in events if e.get("call") == "approve" and e["status"] == 204
                 and e["role"] == "approver" and e["on"] == box.id]), 2)


def test_serve_templates(t):
    templates = t.fresh_dir("templates")
    for name, text in (("small", "version: 1\nresources: {memory_limit: 256Mi}\n"),
                       ("broken", "version: 9\n"), (".hidden", "version: 1\n"), ("UP", "")):
        with open(os.path.join(templates, name + ".yaml"), "w") as f:
            f.write(text)
    s = Server(t, "--templates", templates)
    t.wait_until(lambda: s.ask("GET", "/ward/v1/templates").json, 10)
    found = {e["templateID"]: e for e in s.ask("GET", "/ward/v1/templates").json}
    t.equal(sorted(found), ["base", "code-interpreter-v1", "mcp-gateway", "small"])
    t.equal((found["small"]["memoryMB"], found["small"]["engine"], found["small"]["network"],
             found["base"]["memoryMB"]), (256, "native", False, 2048))
    only = s.ask("POST", "/ward/v1/tokens", {"role": "viewer", "ttl": 60,
                                             "templates": ["small"]}).json["token"]
    listed = s.ask("GET", "/ward/v1/templates", key=only).json
    t.equal([e["templateID"] for e in listed], ["small"])


def test_serve_openapi(t):
    """Each row of the route table is in the document, with its right, and with what it is for."""
    s = Server(t)
    r = s.ask("GET", "/ward/v1/openapi.json", key=False)
    t.equal(r.status, 200)
    rows = re.findall(r'^ROUTE\((\w+), "(\w+)", "([^"]+)", (\w+)\)', ROUTES, re.M)
    found = {(o["operationId"], method.upper(), path, o["x-ward-right"].upper()): o
             for path, methods in r.json["paths"].items() for method, o in methods.items()}
    t.equal(sorted(found), sorted(tuple(row) for row in rows))
    for (name, *_), o in found.items():
        t.equal((name, o["summary"] != name), (name, True))
    # without a key: each but the open ones is refused, whatever its method
    for name, method, path, right in rows:
        status = s.ask(method, path.replace("{id}", "x"), key=False).status
        t.equal((name, status), (name, 200 if right == "OPEN" else 401))


@by_turns
@timeout(600)
def test_serve_schemathesis(t):
    """Requests made from the document find no answer of 500 or more. WARD_SCHEMATHESIS=N makes
    more of them, and about a sandbox that exists: minutes."""
    place = sdk(t, "pip", "schemathesis")
    s = Server(t, "--quota", "3", "--rate", "0")
    work = t.fresh_dir("schemathesis")
    with open(os.path.join(work, "schemathesis.toml"), "w") as f:
        if MORE:
            f.write(f'[parameters]\n"path.id" = "{s.create().id}"\n')
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "schemathesis.cli", "run",
         f"http://127.0.0.1:{s.port}/ward/v1/openapi.json", "--header", f"X-API-KEY: {s.key}",
         "--checks", "not_a_server_error", "--phases", "coverage,fuzzing" if MORE else "fuzzing",
         "--max-examples", MORE or "2", "--seed", "7", "--exclude-path", "/ward/v1/events",
         "--exclude-operation-id", "kill", "--exclude-operation-id", "stop", "--no-color"],
        env={"PYTHONPATH": place, "PATH": "/usr/bin:/bin", "HOME": t.fresh_dir("home")},
        cwd=work, capture_output=True, text=True, timeout=240)
    t.equal((done.returncode, done.stdout[-3000:] if done.returncode else ""), (0, ""))
    t.equal(int(re.search(r"(\d+) generated", done.stdout)[1]) > 50, True)
    t.equal(s.ask("GET", "/healthz", key=False).status, 200)
