"""Tools with approval: always under ward mcp serve: a person says yes, or nothing runs."""
import json
import os
import time

from harness import timeout
from harness.mcp import META, Client, modern, shell, text, tool
from harness.mcp_http import Server, Session, next_event

ALWAYS = {"destructive": True, "approval": "always"}
FORMS = {"elicitation": {}}


def files(policy=None, **more):
    drop = shell(nature=ALWAYS, write=["out"])
    return {"out/.keep": "", "tools.yaml": json.dumps({
        "version": 1, "tools": {"drop": drop, "x": tool(["echo", "hi"])},
        **({"policy": "p.yaml"} if policy else {}), **more}),
        **({"p.yaml": json.dumps({"version": 1, **policy})} if policy else {})}


def serve(t, *options, capabilities=None, policy=None, **more):
    t.place = t.workspace(files(policy))
    if policy:
        t.equal(t.ward("trust", "--yes", "p.yaml", cwd=t.place).rc, 0)
    return Client(t, *t.ward_argv("mcp", "serve", "-f", "tools.yaml", *options), cwd=t.place,
                  capabilities=capabilities, **more)


def made(t, name="x"):
    return os.path.exists(os.path.join(t.place, "out", name))


def ask(c, code="touch out/x"):
    """Begins a call; (its id, the question that the client is asked)."""
    id = c.begin("tools/call", {"name": "drop", "arguments": {"code": code}})
    return id, c.read()


def test_the_client_shows_the_question(t):
    c = serve(t, capabilities=FORMS)
    id, question = ask(c)
    t.equal(question["method"], "elicitation/create")
    t.check('drop wants to run "sh" "-c" "touch out/x"' in question["params"]["message"], question)
    t.equal(question["params"]["requestedSchema"]["required"], ["approve"])
    t.equal(text(c.call("x")), "hi\n", "others do not wait")
    t.check(not made(t), "nothing has run")
    for other in ("ward-999", 1, question["id"].upper()):
        c.send({"jsonrpc": "2.0", "id": other,
                "result": {"action": "accept", "content": {"approve": True}}})
    t.check(c.silent() and not made(t), "an answer to another question is none")
    c.send({"jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {"approve": True}}})
    t.equal((c.wait(id)["result"]["isError"], made(t)), (False, True))
    c.send({"jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {"approve": True}}})
    for answer in ({"result": {"action": "decline"}}, {"result": {"action": "cancel"}},
                   {"result": {"action": "accept"}}, {"result": {}},
                   {"result": {"action": "accept", "content": {"approve": False}}},
                   {"result": {"action": "accept", "content": {"approve": "true"}}},
                   {"result": {"action": "Accept", "content": {"approve": True}}},
                   {"result": {"action": "accept", "content": {"approved": True}}},
                   {"error": {"code": -32601, "message": "no"}}):
        id, question = ask(c, "touch out/no")
        c.send({"jsonrpc": "2.0", "id": question["id"], **answer})
        r = c.wait(id)["result"]
        t.check(r["isError"] and "the answer is no" in text(r) and not made(t, "no"), answer)


def test_a_question_cannot_be_disguised(t):
    c = serve(t, capabilities=FORMS)
    code = 'true" and nothing else\n\x7f'.replace("\x7f", "") + "touch out/x\u200b"
    id, question = ask(c, "echo '\"' ; touch out/x\necho \\\"")
    shown = question["params"]["message"]
    t.check("touch out/x" in shown and '\\"' in shown and "\n" not in shown, repr(shown))
    c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    late = c.read()
    t.equal((late["method"], late["params"]["requestId"]),
            ("notifications/cancelled", question["id"]), "the question is taken back")
    r = c.call("drop", code=code)
    t.check(r["isError"] and not made(t), "hidden characters are refused before anybody is asked")


def waiting(t):
    r = t.ward("approve", "--json", cwd=t.place)
    return json.loads(r.out)["questions"]


def wait_for_question(t):
    t.wait_until(lambda: waiting(t), 20, "a question waits")
    return waiting(t)[0]


def test_the_question_waits_for_ward_approve(t):
    c = serve(t)  # a client that shows no questions
    t.equal(waiting(t), [])
    id = c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/x"}})
    q = wait_for_question(t)
    t.equal((q["kind"], q["rule"]), ("tool", "approval: always"))
    t.check('drop wants to run "sh" "-c" "touch out/x"' in q["subject"], q)
    t.check(q["id"] in c.errors(), "how to answer stands on standard error")
    r = t.ward("approve", q["id"], "--run", cwd=t.place)
    t.check(r.rc == 125 and "allowed once only" in r.err and not made(t), r)
    t.equal(t.ward("approve", q["id"], "--once", cwd=t.place).rc, 0)
    t.equal((c.wait(id)["result"]["isError"], made(t)), (False, True))
    t.equal(waiting(t), [])
    id = c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/no"}})
    q = wait_for_question(t)
    t.equal(t.ward("approve", q["id"], "--deny", cwd=t.place).rc, 0)
    r = c.wait(id)["result"]
    t.check(r["isError"] and "the answer is no" in text(r) and not made(t, "no"), r)
    # one yes is for one call, also of equal ones
    ids = [c.begin("tools/call", {"name": "drop", "arguments": {"code": "echo . >> out/y"}})
           for _ in range(2)]
    t.wait_until(lambda: len(waiting(t)) == 2, 20, "two questions")
    t.equal(t.ward("approve", waiting(t)[0]["id"], "--once", cwd=t.place).rc, 0)
    first = c.read()
    t.check(first["id"] in ids and not first["result"]["isError"], first)
    c.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": [i for i in ids if i != first["id"]][0]}})
    t.wait_until(lambda: not waiting(t), 10, "who does not wait asks nothing")
    t.equal(t.read(t.place, "out/y"), ".\n")
    id = c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/no"}})
    q = wait_for_question(t)
    t.equal(t.ward("stop", q["sandbox"], cwd=t.place).rc, 0)
    t.check(c.wait(id)["result"]["isError"] and not made(t, "no"), "to stop it is a no")
    c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/no"}})
    q = wait_for_question(t)
    c.end()
    t.equal((waiting(t), made(t, "no")), ([], False), "the end of the server is a no")


CONNECT = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.settimeout(5)
s.send(bytes.fromhex("64770000" "17000000" "00000000" "00000000"))
print("answered" if s.recv(65536) else "closed")
"""


def test_a_sandbox_cannot_answer(t):
    c = serve(t)
    c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/x"}})
    q = wait_for_question(t)
    path = os.path.join(t.runtime_dir, "runs", q["sandbox"], "control")
    r = t.run("python3", "-c", CONNECT, path)
    t.check("answered" in r.out or r.rc == 0, r)
    r = t.run("unshare", "--user", "--map-current-user", "python3", "-c", CONNECT, path)
    if "unshare failed" in r.err:
        t.skip("no user namespaces")
    t.check("answered" not in r.out, r)
    r = t.ward("run", "--", "sh", "-c", f"ls {t.runtime_dir} {path}", cwd=t.place)
    t.check(r.rc != 0 and "control" not in r.out, r)
    c.end()


def test_no_answer_is_a_no(t):
    policy = {"approvals": {"timeout_seconds": 1}}
    for capabilities in (FORMS, None):
        c = serve(t, capabilities=capabilities, policy=policy)
        began = time.monotonic()
        r = c.call("drop", code="touch out/x")
        t.check(r["isError"] and "no answer came in time" in text(r) and not made(t), r)
        t.check(1 <= time.monotonic() - began < 8, "after the policy's time")
        late = [m["method"] for m in c.others]
        t.equal(late, ["elicitation/create", "notifications/cancelled"] if capabilities else [])


def stateless(**capabilities):
    m = modern()
    m["_meta"][META + "clientCapabilities"] = capabilities
    return m


def call(c, code, **more):
    return c.result("tools/call", {"name": "drop", "arguments": {"code": code},
                                   **stateless(**FORMS), **more})


def answered(asked, **answer):
    return {"requestState": asked["requestState"], "inputResponses": {"approve": answer}}


YES = {"action": "accept", "content": {"approve": True}}


def test_the_stateless_revision_asks_by_input_required(t):
    c = serve(t, initialize=False)
    asked = call(c, "touch out/x")
    t.equal(asked["resultType"], "input_required")
    request = asked["inputRequests"]["approve"]
    t.check(request["method"] == "elicitation/create" and
            '"touch out/x"' in request["params"]["message"], request)
    t.check(not made(t), "nothing has run")
    done = call(c, "touch out/x", **answered(asked, **YES))
    t.equal((done["resultType"], done["isError"], made(t)), ("complete", False, True))
    again = call(c, "touch out/x", **answered(asked, **YES))
    t.equal(again["resultType"], "input_required", "an answer counts once")
    other = call(c, "touch out/no", **answered(again, **YES))
    t.equal((other["resultType"], made(t, "no")), ("input_required", False),
            "and for what was shown only")
    for answer in ({"action": "decline"}, {"action": "accept"}, {},
                   {"action": "accept", "content": {"approve": False}}):
        asked = call(c, "touch out/no")
        r = call(c, "touch out/no", **answered(asked, **answer))
        t.check(r["isError"] and "the answer is no" in text(r) and not made(t, "no"), answer)
    for state in ("", "0" * 64, "x", asked["requestState"]):
        r = call(c, "touch out/no", **answered({"requestState": state}, **YES))
        t.equal((r["resultType"], made(t, "no")), ("input_required", False), repr(state))
    r = call(c, "touch out/no", requestState=r["requestState"])
    t.equal(r["resultType"], "input_required", "without an answer it is asked again")
    c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/q"}, **stateless()})
    q = wait_for_question(t)
    t.equal(t.ward("approve", q["id"], "--once", cwd=t.place).rc, 0)
    t.wait_until(lambda: made(t, "q"), 10, "a client that shows nothing: ward approve")


@timeout(120)
def test_over_http(t):
    t.place = t.workspace(files())
    s = Server(t, "-f", "tools.yaml", cwd=t.place)
    c = Session(s, capabilities=FORMS)
    token = {"_meta": {"progressToken": 1}}
    r = c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/x"}, **token})
    q = wait_for_question(t)
    t.equal(t.ward("approve", q["id"], "--once", cwd=t.place).rc, 0)
    found = [m for _, m in iter(lambda: next_event(r), None) if m and "method" not in m]
    t.equal((found[0]["result"]["isError"], made(t)), (False, True),
            "a client over HTTP may be in a sandbox: it is not asked")
    s = Server(t, "-f", "tools.yaml", "--approvals", "client", cwd=t.place)
    c, other = Session(s, capabilities=FORMS), Session(s, capabilities=FORMS)
    r = c.begin("tools/call", {"name": "drop", "arguments": {"code": "touch out/y"}})
    next_event(r)
    _, question = next_event(r)
    t.equal(question["method"], "elicitation/create")
    yes = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
    t.equal(other.post(yes).status, 202)
    time.sleep(0.5)
    t.check(not made(t, "y"), "another session's answer is none")
    t.equal(c.post(yes).status, 202)
    t.equal((next_event(r)[1]["result"]["isError"], made(t, "y")), (False, True))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "drop", "arguments": {"code": "touch out/z"}, **stateless(**FORMS)}}
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
               "Mcp-Name": "drop"}
    asked = s.ask(body=body, headers=headers).message["result"]
    t.equal(asked["resultType"], "input_required")
    body["params"].update(answered(asked, **YES))
    t.equal(s.ask(body=body, headers=headers).message["result"]["isError"], False)
    t.check(made(t, "z"), "it ran")
