"""ward serve: who may do what (docs/serve.md, src/daemon/access.def): roles, tokens and their
limits, owners, the rate of a key, and the audit log."""
import json
import os
import pathlib
import sqlite3
import time

from harness.serve import Box, Server, messages

ROUTES = (pathlib.Path(__file__).resolve().parents[2] / "src/daemon/routes.def").read_text()
OTHER = "0000000000000000abcd"


def add_key(t, s, owner, *more):
    made = t.ward("serve", "--state", s.state, "--add-key", owner, *more)
    t.equal(made.rc, 0)
    return made.out.strip()


def token(t, s, role="runner", ttl=60, key=True, **limits):
    r = s.ask("POST", "/ward/v1/tokens", {"role": role, "ttl": ttl, **limits}, key=key)
    t.equal((r.status, r.json["role"], r.json["kind"]), (201, role, "token"))
    return r.json["token"], r.json["id"]


def statuses(s, key, *calls):
    return [s.ask(method, path, body, key=key).status for method, path, body in calls]


def test_serve_roles(t):
    """Each role at one call of each right; a role without it gets 403, and nothing happens."""
    s = Server(t)
    box = s.create()
    # none: a create that fails behind the check
    calls = {"read": ("GET", f"/sandboxes/{box.id}", None),
             "use": ("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}),
             "create": ("POST", "/v2/sandboxes", {"templateID": "none"}),
             "end": ("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 200}),
             "keep": ("DELETE", "/templates/none", None),
             "tokens": ("GET", "/ward/v1/tokens", None),
             "audit": ("GET", "/ward/v1/audit", None),
             "server": ("GET", "/metrics", None)}
    fine = {"read": 200, "use": 200, "create": 404, "end": 204, "keep": 404, "tokens": 200,
            "audit": 200, "server": 200}
    for role, rights in (("viewer", "read server"), ("runner", "read use create end"),
                         ("operator", "read use create end keep server"),
                         ("approver", "read"), ("admin", " ".join(calls))):
        key = add_key(t, s, "dev", "--role", role)
        for right, call in calls.items():
            wanted = fine[right] if right in rights.split() else 403
            t.equal((role, right, *statuses(s, key, call)), (role, right, wanted))
    # a viewer sees the sandbox, and nothing that opens it
    viewer = add_key(t, s, "dev", "--role", "viewer")
    info = s.ask("GET", f"/sandboxes/{box.id}", key=viewer).json
    t.equal([k for k in info if "oken" in k], [])
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["envdAccessToken"], box.token)
    bad = t.ward("serve", "--state", s.state, "--add-key", "dev", "--role", "root")
    t.equal((bad.rc, bad.out), (2, ""))
    t.contains(bad.err, "viewer, runner")
    bad = t.ward("serve", "--state", s.state, "--add-key", "dev", "--limits", '{"hours": "9"}')
    t.contains(bad.err, "HH:MM-HH:MM")


def test_serve_token_of_a_sandbox(t):
    s = Server(t)
    one, two = s.create(), s.create()
    secret, ident = token(t, s, sandboxID=one.id)
    t.equal([b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes", key=secret).json], [one.id])
    t.equal(statuses(s, secret, ("GET", f"/sandboxes/{two.id}", None),
                     ("DELETE", f"/sandboxes/{two.id}", None),
                     ("POST", "/v2/sandboxes", {"templateID": "base"}),
                     ("GET", "/ward/v1/tokens", None),
                     ("POST", "/ward/v1/tokens", {"role": "admin", "ttl": 9}),
                     ("POST", f"/sandboxes/{one.id}/fork", {})), [404, 404, 403, 403, 403, 403])
    # what opens the sandbox is the token's own, and ends with it
    r = s.ask("POST", f"/sandboxes/{one.id}/connect", {}, key=secret)
    t.equal((r.status, r.json["envdAccessToken"] == one.token), (200, False))
    mine = Box(s, r.json)
    t.equal(mine.sh("echo hello"), (0, "hello\n", ""))
    elsewhere = Box(s, {**r.json, "sandboxID": two.id})
    t.equal(elsewhere.rpc("process.Process/List", {})[0], 401)
    c, stream = mine.start("/bin/sh", "-c", "echo up; sleep 60", stdin=False)
    events = messages(stream)
    next(events), next(events)
    # revoked: the open stream is cut, and nothing begins
    t.equal(s.ask("DELETE", f"/ward/v1/tokens/{ident}").status, 204)
    t.equal(list(events), [])
    c.close()
    t.equal(mine.rpc("process.Process/List", {})[0], 401)
    t.equal(s.ask("GET", "/v2/sandboxes", key=secret).status, 401)
    t.equal(one.rpc("process.Process/List", {})[0], 200)


def test_serve_token_ends(t):
    """By its time; with the key that made it; and not later for a clock that was set back."""
    s = Server(t)
    box = s.create()
    secret, _ = token(t, s, ttl=2)
    mine = Box(s, s.ask("POST", f"/sandboxes/{box.id}/connect", {}, key=secret).json)
    c, stream = mine.start("/bin/sleep", "60")
    events = messages(stream)
    next(events)
    begin = time.monotonic()
    t.equal(list(events), [])
    t.equal(1 < time.monotonic() - begin < 10, True)
    c.close()
    t.equal(s.ask("GET", "/v2/sandboxes", key=secret).status, 401)
    key = add_key(t, s, "dev")
    secret, ident = token(t, s, "viewer", key=key)
    late, late_id = token(t, s, "viewer")
    t.equal(statuses(s, secret, ("GET", "/v2/sandboxes", None)), [200])
    listed = {e["id"]: e for e in s.ask("GET", "/ward/v1/tokens").json}
    with sqlite3.connect(os.path.join(s.state, "registry.db"), timeout=20) as db:
        parent, = db.execute("SELECT parent FROM credentials WHERE id = ?", (ident,)).fetchone()
        # as if the clock had been an hour further when it was made
        db.execute("UPDATE credentials SET made = made + 3600000, expires = expires + 3600000"
                   " WHERE id = ?", (late_id,))
    t.equal(statuses(s, late, ("GET", "/v2/sandboxes", None)), [401])
    t.equal(listed[parent]["kind"], "key")
    t.equal(s.ask("DELETE", f"/ward/v1/tokens/{parent}").status, 204)
    t.equal(statuses(s, secret, ("GET", "/v2/sandboxes", None)), [401])
    t.equal(statuses(s, key, ("GET", "/v2/sandboxes", None)), [401])
    # no secret is listed or kept
    t.equal([k for e in listed.values() for k in e if k == "token"], [])
    for name in os.listdir(s.state):
        if name.startswith(("registry", "audit")):
            with open(os.path.join(s.state, name), "rb") as f:
                t.equal(secret.encode() in f.read(), False)


def test_serve_token_limits(t):
    """Labels, templates, engines, addresses, hours: of a token, and of the key behind it."""
    s = Server(t)
    red, blue = s.create(metadata={"team": "red"}), s.create(metadata={"team": "blue"})
    secret, _ = token(t, s, "operator", labels={"team": "red"})
    t.equal([b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes", key=secret).json], [red.id])
    t.equal(statuses(s, secret, ("DELETE", f"/sandboxes/{blue.id}", None),
                     ("POST", "/v2/sandboxes", {"templateID": "base"}),
                     ("POST", "/v2/sandboxes", {"templateID": "base",
                                                "metadata": {"team": "blue"}})), [404, 403, 403])
    made = s.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"team": "red"}},
                 key=secret)
    t.equal(made.status, 201)
    # a snapshot has no labels: it may be of a sandbox that the token is not for
    snapshot = s.ask("POST", f"/sandboxes/{blue.id}/snapshots", {"name": "blue"}).json
    t.equal(s.ask("GET", "/snapshots", key=secret).json, [])
    r = s.ask("POST", "/v2/sandboxes", {"templateID": snapshot["snapshotID"],
                                        "metadata": {"team": "red"}}, key=secret)
    t.equal(r.status in (403, 404), True)
    for limits, listed, create in (({"templates": ["base"]}, 3, 201),
                                   ({"templates": ["other"]}, 0, 403),
                                   ({"engines": ["native"]}, 3, 201),
                                   ({"engines": ["vm"]}, 0, 403)):
        secret, _ = token(t, s, **limits)
        t.equal((limits, len(s.ask("GET", "/v2/sandboxes", key=secret).json)), (limits, listed))
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 30}, key=secret)
        t.equal((limits, r.status), (limits, create))
        if create == 201:
            Box(s, r.json).kill()
    minute = time.time() // 60 * 60
    clock = [time.strftime("%H:%M", time.gmtime(minute + d * 60)) for d in (-60, -30, -5, 30)]
    for limits, status in (({"sources": ["127.0.0.0/8"]}, 200), ({"sources": ["10.0.0.0/8"]}, 403),
                           ({"hours": f"{clock[1]}-{clock[3]}"}, 200),
                           ({"hours": f"{clock[0]}-{clock[2]}"}, 403)):
        secret, _ = token(t, s, "viewer", **limits)
        t.equal((limits, *statuses(s, secret, ("GET", "/v2/sandboxes", None))), (limits, status))
        key = add_key(t, s, "dev", "--limits", json.dumps(limits))
        r = s.ask("POST", "/ward/v1/tokens", {"role": "viewer", "ttl": 9}, key=key)
        t.equal((limits, r.status), (limits, 201 if status == 200 else 403))
    # a token has the limits of its key, too
    key = add_key(t, s, "dev")
    secret, ident = token(t, s, "viewer", key=key)
    t.equal(statuses(s, secret, ("GET", "/v2/sandboxes", None)), [200])
    with sqlite3.connect(os.path.join(s.state, "registry.db"), timeout=20) as db:
        db.execute("UPDATE credentials SET sources = '10.0.0.0/8' WHERE id ="
                   " (SELECT parent FROM credentials WHERE id = ?)", (ident,))
    t.equal(statuses(s, secret, ("GET", "/v2/sandboxes", None)), [403])


def test_serve_owners_apart(t):
    """Nothing of one owner is seen or reached by another, by any call of the control plane."""
    s = Server(t)
    box = s.create(metadata={"a": "b"})
    snapshot = s.ask("POST", f"/sandboxes/{box.id}/snapshots", {"name": "mine"}).json
    _, ident = token(t, s)
    bob = add_key(t, s, "bob")
    routes = [line.split('"')[1:4:2] for line in ROUTES.splitlines()
              if line.startswith("ROUTE(") and "{id}" in line]
    t.equal(len(routes) > 12, True)
    for method, path in routes:
        for name in (box.id, OTHER):
            if name == box.id and "/templates/" in path:
                name = snapshot["snapshotID"]
            if name == box.id and "/tokens/" in path:
                name = ident
            r = s.ask(method, path.replace("{id}", name), {} if method in ("POST", "PUT") else None,
                      key=bob)
            t.equal((method, path, r.status), (method, path, 404))
            # the two answers differ in the id alone
            t.equal(r.body.replace(name.encode(), b"ID").count(b"not found")
                    + r.body.count(b"there is no"), 1)
    for path in ("/v2/sandboxes", "/sandboxes", "/snapshots", "/v2/sandboxes?metadata=a%3Db"):
        t.equal(s.ask("GET", path, key=bob).json, [])
    t.equal([e["owner"] for e in s.ask("GET", "/ward/v1/tokens", key=bob).json], ["bob"])
    events = s.ask("GET", "/ward/v1/audit", key=bob).json["events"]
    t.equal({e["owner"] for e in events}, {"bob"})
    r = s.ask("POST", "/v2/sandboxes", {"templateID": snapshot["snapshotID"]}, key=bob)
    t.equal(r.status, 404)
    t.equal(box.sh("true")[0], 0)
    # and the owner "*" sees all
    everybody = add_key(t, s, "*")
    t.equal([b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes", key=everybody).json], [box.id])
    t.equal(s.ask("DELETE", f"/sandboxes/{box.id}", key=everybody).status, 204)


def test_serve_owners_apart_in_time(t):
    """An id of another owner's sandbox is answered as fast as one that nobody has."""
    s = Server(t)
    boxes = [s.create() for _ in range(3)]
    bob = add_key(t, s, "bob")
    c = s.connection()
    times = {name: [] for name in (boxes[0].id, boxes[2].id, OTHER)}
    for _ in range(300):
        for name, all_times in times.items():
            begin = time.perf_counter()
            c.request("GET", f"/sandboxes/{name}", headers={"X-API-KEY": bob})
            c.getresponse().read()
            all_times.append(time.perf_counter() - begin)
    best = [sorted(v)[len(v) // 4] for v in times.values()]
    t.equal(max(best) < 1.5 * min(best) + 0.0002, True)


def test_serve_rate(t):
    s = Server(t, "--rate", "5")
    bob = add_key(t, s, "bob")
    found = statuses(s, True, *[("GET", "/v2/sandboxes", None)] * 30)
    t.equal((found[:10], 429 in found, found.count(200) < 25), ([200] * 10, True, True))
    # of another key, nothing is taken; a token has no rate of its own
    t.equal(statuses(s, bob, ("GET", "/v2/sandboxes", None)), [200])
    secret, _ = token(t, s, "viewer", key=bob)
    found = statuses(s, secret, *[("GET", "/v2/sandboxes", None)] * 20)
    t.equal((429 in found, 429 in statuses(s, bob, *[("GET", "/v2/sandboxes", None)] * 3)),
            (True, True))
    time.sleep(1)
    t.equal(statuses(s, bob, ("GET", "/v2/sandboxes", None)), [200])


def test_serve_bearer(t):
    s = Server(t)
    bearer = {"Authorization": f"Bearer {s.key}"}
    t.equal(s.ask("GET", "/v2/sandboxes", key=False, headers=bearer).status, 200)
    # two credentials in one request: neither is taken
    t.equal(s.ask("GET", "/v2/sandboxes", key=add_key(t, s, "bob"), headers=bearer).status, 401)


def test_serve_audit(t):
    """Each call is written down with who, what, on what, and which check refused it."""
    s = Server(t)
    box = s.create()
    secret, ident = token(t, s, "viewer", sandboxID=box.id)
    t.equal(statuses(s, secret, ("DELETE", f"/sandboxes/{box.id}", None),
                     ("GET", f"/sandboxes/{OTHER}", None)), [403, 404])
    for _ in range(40):
        s.ask("GET", "/v2/sandboxes", key="e2b_00")
    t.equal(box.sh("true")[0], 0)
    box.kill()
    page = s.ask("GET", "/ward/v1/audit").json
    events = page["events"]
    kill = [e for e in events if e.get("call") == "kill"]
    t.equal([(e["on"], e["credential"] == ident, e["allowed"], e.get("refused_by"), e["status"],
              e["source"]) for e in kill],
            [(box.id, True, False, "role", 403, "127.0.0.1"),
             (box.id, False, True, None, 204, "127.0.0.1")])
    start, = [e for e in events if e.get("path") == "/process.Process/Start"]
    t.equal((start["kind"], start["on"], start["port"]), ("sandbox_request", box.id, 49983))
    t.equal([e for e in events if e["owner"] != "dev"], [])
    # nothing is said twice on the next page, which has the call that read this one
    page = s.ask("GET", f"/ward/v1/audit?cursor={page['next']}").json
    t.equal([e["call"] for e in page["events"]], ["audit"])
    for bad in ("x", "-1", "old-", "99999999999999"):
        t.equal(s.ask("GET", f"/ward/v1/audit?cursor={bad}").status, 400)
    text = t.read(s.state, "audit.jsonl")
    unknown = [line for line in text.splitlines() if '"refused_by":"credential"' in line]
    t.equal((0 < len(unknown) <= 30, s.key in text, secret in text, box.token in text),
            (True, False, False, False))
    t.equal(os.stat(os.path.join(s.state, "audit.jsonl")).st_mode & 0o777, 0o600)
