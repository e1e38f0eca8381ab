"""ward mcp serve on standard input and output: what a client gets, and what a hostile one does."""
import json
import os
import signal
import time

from harness import by_turns, timeout
from harness.mcp import META, MODERN, Client, gone, modern, shell, text, tool

TOKEN = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"
OBJECT = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def serve(t, tools, *options, files=None, client=None, **more):
    ws = t.workspace({"notes/a.txt": "first TODO\n", "secret.txt": "private\n", "out/.keep": "",
                      "tools.yaml": json.dumps({"version": 1, "tools": tools, **more}),
                      **(files or {})})
    return Client(t, *t.ward_argv("mcp", "serve", "-f", "tools.yaml", *options), cwd=ws,
                  **(client or {}))


def test_initialize_agrees_on_a_revision(t):
    for wanted, got in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"),
                        ("2025-03-26", "2025-03-26"), ("2024-11-05", "2024-11-05"),
                        ("2024-10-07", "2024-10-07"), ("2026-07-28", "2025-11-25"),
                        ("1999-01-01", "2025-11-25")):
        c = serve(t, {"x": tool()}, client={"initialize": False})
        info = c.initialize(wanted)
        t.equal((info["protocolVersion"], info["serverInfo"]["name"]), (got, "ward"), wanted)
        t.equal(c.ask("initialize", {"protocolVersion": wanted})["error"]["code"], -32600,
                "a session is opened once")
        t.equal(c.result("ping"), {}, "ping")
        t.equal(c.end(), 0, "the end of the input ends it")
    c = serve(t, {"x": tool()}, client={"initialize": False})
    t.equal(c.ask("tools/list")["error"]["code"], -32600, "initialize comes first")
    t.equal(c.result("ping"), {}, "but ping")
    t.equal(c.ask("nonsense")["error"]["code"], -32601, "an unknown method")


def test_the_stateless_revision(t):
    c = serve(t, {"x": tool(["echo", "hi"])}, client={"initialize": False})
    found = c.result("server/discover", modern())
    t.check(MODERN in found["supportedVersions"] and found["resultType"] == "complete", found)
    t.equal(found["_meta"][META + "serverInfo"]["name"], "ward")
    listed = c.result("tools/list", modern())
    t.check(listed["resultType"] == "complete" and listed["ttlMs"] > 0, listed)
    r = c.result("tools/call", {"name": "x", **modern()})
    t.equal((r["resultType"], text(r)), ("complete", "hi\n"))
    t.equal(c.ask("ping", modern())["error"]["code"], -32601, "it has no ping")
    wrong = {"_meta": {META + "protocolVersion": "2027-01-01", META + "clientCapabilities": {}}}
    error = c.ask("tools/list", wrong)["error"]
    t.equal((error["code"], error["data"]["requested"]), (-32022, "2027-01-01"))
    t.check(MODERN in error["data"]["supported"], error)
    bare = {"_meta": {META + "protocolVersion": MODERN}}
    t.equal(c.ask("tools/list", bare)["error"]["code"], -32602, "capabilities are required")


def test_annotations_are_made_from_the_scope(t):
    get = {"hosts": ["a.example.com"], "methods": ["GET"]}
    out = {"communicates_outside": True}
    c = serve(t, {"nothing": tool(), "writes": tool(scope={"write": ["out"]}),
                  "drops": tool(scope={"write": ["out"]}, nature={"destructive": True}),
                  "says": tool(nature={"destructive": True}),
                  "gets": tool(scope=get, nature=out),
                  "posts": tool(scope={"hosts": ["a.example.com"]}, nature=out)})
    hints = {x["name"]: tuple(x["annotations"][k + "Hint"] for k in
                              ("readOnly", "destructive", "idempotent", "openWorld"))
             for x in c.result("tools/list")["tools"]}
    t.equal(hints, {"nothing": (True, False, True, False), "writes": (False, False, False, False),
                    "drops": (False, True, False, False), "says": (False, True, False, False),
                    "gets": (True, False, True, True), "posts": (False, False, False, True)})


def test_pages(t):
    c = serve(t, {f"x{i:03}": tool() for i in range(250)})
    names, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = c.result("tools/list", {"cursor": cursor} if cursor else {})
        names += [x["name"] for x in page["tools"]]
        cursor, pages = page.get("nextCursor"), pages + 1
    t.equal((pages, names), (3, [f"x{i:03}" for i in range(250)]))
    for bad in ("1", "999999", "-1", "x", "", 100, {}, "99999999999999999999999"):
        t.equal(c.ask("tools/list", {"cursor": bad})["error"]["code"], -32602, repr(bad))


def test_results(t):
    c = serve(t, {"code": shell(read=["notes"]),
                  "json": shell(more={"output": OBJECT}),
                  "typed": tool(["echo", "--", "{s}", "{n}", "{b}", "{l...}"], parameters={
                      "s": {}, "n": {"type": "integer"}, "b": {"type": "boolean"},
                      "l": {"list": True, "required": False}})})
    shown = {x["name"]: x for x in c.result("tools/list")["tools"]}
    t.equal(shown["json"]["outputSchema"], OBJECT)
    t.check("outputSchema" not in shown["code"], "no schema, no structure")
    t.equal(text(c.call("code", code="cat notes/a.txt")), "first TODO\n")
    r = c.call("json", code="echo '{\"a\": 1,\n\"b\": [\"x\"]}'")
    t.equal((r["structuredContent"], r["isError"]), ({"a": 1, "b": ["x"]}, False))
    t.equal(json.loads(text(r)), r["structuredContent"], "as text, too")
    r = c.call("json", code="echo '{\"a\": \"1\"}'")
    t.check(r["isError"] and "structuredContent" not in r and "expected integer" in text(r), r)
    r = c.call("code", code="echo out; echo bad >&2; exit 3")
    t.check(r["isError"] and "out\n" in text(r) and "bad\n" in text(r) and "exit code 3" in text(r),
            r)
    t.equal(r["_meta"]["ward/exit"], 3)
    r = c.call("code", code="cat secret.txt ../../etc/shadow; echo x > notes/b")
    t.check(r["isError"] and "private" not in text(r) and "notes/b" in text(r), r)
    r = c.call("code", code=f"echo {TOKEN}")
    t.check(r["isError"] and TOKEN not in text(r) and "github-token" in text(r), r)
    r = c.call("code", code=f"echo {TOKEN} >&2; exit 1")
    t.check(r["isError"] and TOKEN not in json.dumps(r) and "withheld" in text(r), r)
    r = c.call("typed", s="a b", n=5, b=True, l=["x", "y z"])
    t.equal(text(r), "-- a b 5 true x y z\n")
    for bad, why in (({"s": 1}, "another type"), ({"n": "5"}, "another type"), ({"n": 1.5}, "n"),
                     ({"b": "true"}, "another type"), ({"l": "x"}, "a list"), ({"l": [1]}, "type"),
                     ({"s": None}, "another type"), ({"s": {}}, "another type"), ({"x": "1"}, "x"),
                     ({"s": "-rf\n"}, "s")):
        r = c.call("typed", **{"s": "a", "n": 5, "b": True, **bad})
        t.check(r["isError"] and why in text(r), f"{bad}: {r}")
    for bad in ({"name": "no"}, {"name": 1}, {}, {"name": "typed", "arguments": []}):
        t.equal(c.ask("tools/call", bad)["error"]["code"], -32602, repr(bad))


def test_an_agent_has_its_own_tools(t):
    c = serve(t, {"a": tool(), "b": tool()}, "--agent", "one", agents={"one": {"tools": ["a"]}})
    t.equal([x["name"] for x in c.result("tools/list")["tools"]], ["a"])
    t.equal(c.ask("tools/call", {"name": "b"})["error"]["code"], -32602)


def test_a_found_file_is_not_served(t):
    ws = t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": {"x": tool()}})})
    r = t.ward("mcp", "serve", cwd=ws)
    t.check(r.rc == 125 and r.out == "" and "ward tool trust" in r.err, r)
    r = t.ward("mcp", "serve", "-f", "nothing.yaml", cwd=ws)
    t.check(r.rc == 125 and "nothing.yaml" in r.err, r)
    for words, code in ((("mcp",), 2), (("mcp", "nonsense"), 2), (("mcp", "serve", "x"), 2),
                        (("mcp", "--help"), 0)):
        t.equal(t.ward(*words, cwd=ws).rc, code, repr(words))


@by_turns
def test_progress(t):
    c = serve(t, {"code": shell()})
    r = c.result("tools/call", {"name": "code", "arguments": {"code": "sleep 2.5; echo done"},
                                "_meta": {"progressToken": "p\"1"}})
    t.equal(text(r), "done\n")
    told = [m["params"] for m in c.others if m["method"] == "notifications/progress"]
    t.check(len(told) >= 2 and all(m["progressToken"] == "p\"1" for m in told), told)
    t.check(told[0]["progress"] < told[1]["progress"], told)
    c.others.clear()
    c.call("code", code="sleep 1.5")
    t.equal(c.others, [], "none without a token")


def test_cancellation_kills(t):
    c = serve(t, {"code": shell()})
    for trap in ("", "trap '' TERM INT HUP; "):
        mark = f"{t.directory}-{len(trap)}"
        id = c.begin("tools/call", {"name": "code", "arguments":
                                    {"code": f"{trap}while :; do sleep 1; done # {mark}"}})
        t.wait_until(lambda: not gone(mark), 20, "it runs")
        for _ in range(2):
            c.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": id, "reason": "test"}})
        t.wait_until(lambda: gone(mark), 10, "it is killed")
        t.check(c.silent(), "a call that was cancelled is not answered")
    for id in (999, "x", None, {}, [1], 1.5):
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    c.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    t.equal(c.result("ping"), {})
    t.check(not [n for n in os.listdir(t.runtime_dir) if n.startswith("new.")], "no litter")


@by_turns
@timeout(120)
def test_calls_run_at_the_same_time(t):
    c = serve(t, {"code": shell(), "x": tool(["echo", "hi"])})
    slow = c.begin("tools/call", {"name": "code", "arguments": {"code": "sleep 3; echo slow"}})
    ids = [c.begin("tools/call", {"name": "x"}) for _ in range(100)]
    first = c.read()
    t.check(first["id"] in ids, "the slow one holds up nobody")
    c.others.append(first)
    t.equal({text(c.wait(id, 60)["result"]) for id in ids}, {"hi\n"}, "100 calls")
    t.equal(text(c.wait(slow)["result"]), "slow\n")


IDS = (0, 1, -5, 9007199254740993, "", "a", "1", "\u00e9\u202e\n\"\\", "x" * 200)


def test_ids_of_all_kinds(t):
    c = serve(t, {"x": tool(["echo", "hi"])})
    for id in IDS:
        c.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}})
        t.equal(c.wait(id).get("result", {}).get("isError"), False, repr(id))
    c.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}})
    c.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    got = [c.read(), c.read()]
    t.equal(sorted("error" in m for m in got), [False, True], "an id is used once at a time")
    for bad in ("null", "1.5", "1e2", "true", "{}", "[]", "-0", '"' + "x" * 300 + '"'):
        c.send_bytes(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}\n' % bad.encode())
        m = c.read()
        t.equal((m["error"]["code"], m["id"]), (-32600, None), bad)


HOSTILE = (b"nonsense", b"{", b"[]", b"[1]", b"null", b"\"x\"", b"{}", b"\xff\xfe", b"{\"a\":\x00}",
           b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
           b'{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}',
           b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"id":1,"method":"ping"}',
           b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
           b'{"jsonrpc":"2.0","id":1,"method":1}',
           b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 1000 + b'"}',
           b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
           b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
           b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5000 + b"1"
           + b"}" * 5001,
           b"[" * 100000, b'{"jsonrpc":"2.0","id":1,"method":"ping"}x',
           b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
           b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\u0000"}}',
           b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}', b"x" * (5 << 20))


def test_bad_messages_have_no_effect(t):
    c = serve(t, {"x": tool()})
    for bad in HOSTILE:
        c.send_bytes(bad + b"\n")
        m = c.read()
        t.check(m["error"]["code"] in (-32700, -32600), f"{bad[:60]}: {m}")
        t.equal(c.result("ping"), {}, "it goes on")
    # answers that nobody asked for, notifications that nobody knows, empty lines
    for quiet in (b'{"jsonrpc":"2.0","id":5,"result":{}}', b"", b"\r",
                  b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
                  b'{"jsonrpc":"2.0","method":"notifications/nonsense"}',
                  b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}'):
        c.send_bytes(quiet + b"\n")
        t.equal(c.result("ping"), {}, repr(quiet))
    t.equal(c.others, [], "none of them is answered")
    c.send_bytes(b'{"jsonrpc":"2.0",\r\t "id":77,"method":"ping"}\r\n')
    t.equal(c.wait(77)["result"], {}, "spaces within a line")


def test_batches_are_of_one_revision(t):
    c = serve(t, {"x": tool()}, client={"initialize": False})
    c.initialize("2025-03-26")
    c.send([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in (50, 51)])
    t.equal([c.read()["id"], c.read()["id"]], [50, 51])
    c.send([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(200)])
    t.equal(c.read()["error"]["code"], -32600, "a batch is bounded")


@by_turns
@timeout(120)
def test_floods(t):
    """More calls than wait are refused at once; a client that does not read is waited for."""
    c = serve(t, {"code": shell()})
    ids = [c.begin("tools/call", {"name": "code", "arguments": {"code": "sleep 60"}})
           for _ in range(1100)]
    refused = [c.read() for _ in range(1100 - 1024)]
    t.check(all(m["error"]["code"] == -32603 for m in refused), refused[:3])
    for id in ids:
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    t.equal(c.result("ping", seconds=60), {}, "it still answers")
    with open(f"/proc/{c.process.pid}/status") as f:
        before = f.read()
    t.check("ward-mcp" in before or c.process.poll() is None, before)
    os.set_blocking(c.process.stdin.fileno(), False)
    line, sent, end = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 1000, 0, 0
    end = time.monotonic() + 5
    while time.monotonic() < end and sent < 400 << 20:
        try:
            sent += os.write(c.process.stdin.fileno(), line)
        except BlockingIOError:
            time.sleep(0.05)
    with open(f"/proc/{c.process.pid}/status") as f:
        rss = next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))
    t.check(rss < 120 << 10, f"{rss} KiB after {sent >> 20} MiB of requests")


@by_turns
def test_the_end_of_the_input_ends_calls(t):
    mark = f"{t.directory}-end"
    code = {"code": f"trap '' TERM; while :; do sleep 1; done # {mark}"}
    for how in ("close", signal.SIGTERM, signal.SIGKILL):
        c = serve(t, {"code": shell(), "x": tool(["echo", "hi"])})
        c.begin("tools/call", {"name": "code", "arguments": code})
        t.wait_until(lambda: not gone(mark), 20, "it runs")
        if how == "close":
            quick = c.begin("tools/call", {"name": "x"})
            c.process.stdin.close()
            t.equal(text(c.wait(quick)["result"]), "hi\n", "what is quick is still answered")
        else:
            c.process.send_signal(how)
        status = c.process.wait(15)
        t.equal(status, -9 if how == signal.SIGKILL else 0, f"{how}")
        t.wait_until(lambda: gone(mark), 10, f"{how}: nothing is left")
    t.ward("recover")
