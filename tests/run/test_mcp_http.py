"""ward mcp serve --http: sessions and streams, what comes in and what does not."""
import json
import os
import signal
import socket
import threading
import time

from harness import by_turns, timeout
from harness.mcp import META, MODERN, gone, modern, shell, text, tool
from harness.mcp_http import Answer, Server, Session, next_event

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "x", **modern()}}
HEADERS = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "x"}
TOOLS = {"x": tool(["echo", "hi"]), "code": shell()}


def serve(t, *options, tools=None, files=None, **more):
    ws = t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": tools or TOOLS, **more}),
                      **(files or {})})
    return Server(t, "-f", "tools.yaml", *options, cwd=ws)


def test_a_session(t):
    s = serve(t)
    for wanted in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
        c = Session(s, wanted)
        t.equal(c.info["protocolVersion"], wanted)
        a = c.ask("tools/list")
        t.equal((a.status, [x["name"] for x in a.message["result"]["tools"]]), (200, ["code", "x"]))
        t.equal(text(c.call("x").message["result"]), "hi\n")
        a = c.ask("nonsense")
        t.equal((a.status, a.error["code"]), (200, -32601), "an error of the session is no status")
        t.equal(c.post({"jsonrpc": "2.0", "method": "notifications/x"}).status, 202)
        t.equal(s.ask("DELETE", headers=c.headers).status, 200)
        t.equal(c.ask("ping").status, 404, "it has ended")
        t.equal(s.ask("DELETE", headers=c.headers).status, 404)
    a = s.ask(body={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    t.equal((a.status, "mcp-session-id is missing" in a.error["message"]), (400, True))
    a = s.ask(body={"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {}})
    t.equal((a.status, a.error["code"], a.headers["mcp-session-id"]), (200, -32602, None),
            "a session that was not opened")
    c = Session(s, "2025-03-26")
    a = c.post([c.request("ping"), c.request("tools/list"), {"jsonrpc": "2.0", "method": "n"}])
    t.equal(sorted(m["id"] for m in a.messages), [2, 3], "a batch")
    t.equal(Session(s).post([{"jsonrpc": "2.0", "id": 7, "method": "ping"}]).error["code"],
            -32600, "and not in this revision")


def test_the_stateless_revision(t):
    s = serve(t)
    a = s.ask(body=CALL, headers=HEADERS)
    t.equal((a.status, a.message["result"]["resultType"], text(a.message["result"])),
            (200, "complete", "hi\n"))
    t.equal(a.headers["mcp-session-id"], None)
    for wrong in ({"Mcp-Method": "tools/list"}, {"Mcp-Method": None}, {"Mcp-Name": "y"},
                  {"Mcp-Name": None}, {"Mcp-Protocol-Version": "2025-11-25"},
                  {"Mcp-Protocol-Version": None}):
        a = s.ask(body=CALL, headers={**HEADERS, **wrong})
        t.equal((a.status, a.error["code"], a.message["id"]), (400, -32020, 1), repr(wrong))
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    a = s.ask(body=bare, headers={"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
    t.equal((a.status, a.error["code"]), (400, -32020), "the header alone names it")
    a = s.ask(body={**CALL, "method": "ping", "params": modern()},
              headers={"Mcp-Protocol-Version": MODERN, "Mcp-Method": "ping"})
    t.equal((a.status, a.error["code"]), (404, -32601))
    future = {"_meta": {META + "protocolVersion": "2027-01-01", META + "clientCapabilities": {}}}
    a = s.ask(body={**CALL, "method": "tools/list", "params": future},
              headers={"Mcp-Protocol-Version": "2027-01-01", "Mcp-Method": "tools/list"})
    t.equal((a.status, a.error["code"]), (400, -32022))
    t.equal(s.ask("GET", headers={"Mcp-Protocol-Version": MODERN}).status, 405)
    t.equal(s.ask("DELETE", headers={"Mcp-Protocol-Version": MODERN}).status, 405)


def test_who_goes_away_cancels_in_the_stateless_revision(t):
    s = serve(t)
    mark = f"{t.directory}-away"
    c = s.connection()
    body = {**CALL, "params": {"name": "code", "arguments": {
        "code": f"while :; do sleep 1; done # {mark}"}, **modern()}}
    c.request("POST", "/mcp", json.dumps(body), {
        **HEADERS, "Mcp-Name": "code", "Authorization": f"Bearer {s.token}",
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    t.wait_until(lambda: not gone(mark), 20, "it runs")
    c.close()
    t.wait_until(lambda: gone(mark), 10, "its client has gone, and so has the call")


EVIL = (
    (403, {"Host": "evil.example.com"}), (403, {"Host": "evil.example.com:80"}),
    (403, {"Host": "localhost.evil.example.com"}), (403, {"Origin": "http://evil.example.com"}),
    (403, {"Origin": "null"}), (403, {"Origin": "http://localhost.evil.example.com"}),
    (403, {"Origin": "file://"}), (403, {"Origin": "http://192.0.2.1"}),
    (403, {"Origin": "http://127.0.0.1.evil.example.com"}),
    (401, {"Authorization": None}), (401, {"Authorization": "Bearer "}),
    (401, {"Authorization": "Bearer wrong"}), (401, {"Authorization": "Basic eDp5"}),
    (415, {"Content-Type": "text/plain"}), (415, {"Content-Type": None}),
    (406, {"Accept": "application/json"}), (406, {"Accept": "text/event-stream"}),
    (406, {"Accept": "text/html"}), (400, {"Mcp-Protocol-Version": "1999-01-01"}),
    (400, {"Mcp-Protocol-Version": "x" * 100}), (404, {"Mcp-Session-Id": "0" * 32}),
    (404, {"Mcp-Session-Id": "x" * 500}),
)


def test_what_does_not_come_in(t):
    s = serve(t)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for status, headers in EVIL:
        a = s.ask(body=ping, headers=headers)
        t.equal((a.status, "error" in a.message), (status, True), repr(headers))
    t.equal(s.ask(body=ping, headers={"Authorization": None}).headers["www-authenticate"], "Bearer")
    for fine in ({"Host": "localhost:1"}, {"Host": "[::1]"}, {"Origin": "http://localhost:3000"},
                 {"Origin": "https://127.0.0.1"}, {"Authorization": f"bearer {s.token}"},
                 {"Content-Type": "application/json; charset=utf-8"}, {"Accept": "*/*"}):
        t.equal(s.ask(body=ping, headers=fine).status, 400, f"{fine}: comes in, names no session")
    t.equal(s.ask("PUT", body="x").status, 405)
    t.equal(s.ask("POST", body=ping, path="/").status, 404)
    t.equal(s.ask("GET", headers={"Accept": "application/json"}).status, 406)
    c = Session(s)
    for body, code in (("nonsense", -32700), ("{", -32700), ("[]", -32600), ("", -32700),
                       ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
                       ('{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}', -32600)):
        a = c.post(body)
        t.equal((a.status, a.error["code"]), (400, code), body)
    t.equal(c.ask("ping").message["result"], {}, "it goes on")
    a = c.post(json.dumps({"jsonrpc": "2.0", "method": "x", "params": {"a": "x" * (4 << 20)}}))
    t.equal(a.status, 413)


def raw(s, data, seconds=5):
    with socket.create_connection(("127.0.0.1", s.port), seconds) as c:
        c.sendall(data)
        found = b""
        try:
            while part := c.recv(65536):
                found += part
        except OSError:
            pass
        return found


def test_requests_that_can_be_read_in_two_ways(t):
    s = serve(t)
    head = (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {s.token}\r\n"
            "Content-Type: application/json\r\nAccept: */*\r\n").encode()
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for more in (b"Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n",
                 b"Content-Length: 40\r\nContent-Length: 41\r\n\r\n",
                 b"Content-Length : 40\r\n\r\n", b"Host: evil.example.com\r\n\r\n",
                 b"X: a\nY: b\r\n\r\n", b"X: \x00\r\n\r\n",
                 b"Transfer-Encoding: gzip, chunked\r\n\r\n"):
        got = raw(s, head + more + body)
        t.check(got.startswith(b"HTTP/1.1 400 ") and got.count(b"HTTP/1.1") == 1, (more, got))
    got = raw(s, head + b"Authorization: Bearer x\r\nContent-Length: 40\r\n\r\n" + body)
    t.check(got.startswith(b"HTTP/1.1 401 "), got)
    got = raw(s, head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    t.check(got.startswith(b"HTTP/1.1 400 "), got)
    got = raw(s, b"GET / HTTP/1.1\r\nX: " + b"x" * 40000 + b"\r\n\r\n")
    t.check(got.startswith(b"HTTP/1.1 431 "), got)
    t.check(raw(s, b"\x16\x03\x01\x00\xa5\x01").startswith(b"HTTP/1.1 400 "), "TLS")
    # one after the other on one connection, the second already there; and with "continue"
    c = Session(s)
    fields = "".join(f"{k}: {v}\r\n" for k, v in c.headers.items()).encode()
    one = head + fields + b"Content-Length: 40\r\n\r\n" + body
    got = raw(s, one + one.replace(b"Accept: */*", b"Accept: */*\r\nConnection: close"))
    t.equal(got.count(b'"result":{}'), 2, repr(got))
    one = head + fields + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: 40\r\n\r\n"
    with socket.create_connection(("127.0.0.1", s.port), 5) as sock:
        sock.sendall(one)
        t.equal(sock.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(body)
        t.check(b'"result":{}' in sock.recv(65536), "goes on")


@by_turns
def test_progress_and_cancellation(t):
    s = serve(t)
    c = Session(s)
    a = c.ask("tools/call", {"name": "code", "arguments": {"code": "sleep 1.5; echo done"},
                             "_meta": {"progressToken": 5}})
    t.check("text/event-stream" in a.headers["content-type"], a)
    t.equal((a.headers["cache-control"], a.headers["x-accel-buffering"]), ("no-cache", "no"))
    told = [m for m in a.messages if m.get("method") == "notifications/progress"]
    t.check(len(told) >= 2 and text(a.message["result"]) == "done\n", a.messages)
    t.check(a.events[0][0] and not a.events[0][1], "first of all an event without a message")
    older = Session(s, "2025-06-18").ask("tools/call", {
        "name": "code", "arguments": {"code": "sleep 1.5"}, "_meta": {"progressToken": 5}})
    t.check(all(data for _, data in older.events), "which older clients would not understand")
    mark = f"{t.directory}-cancel"
    code = {"name": "code", "arguments": {"code": f"while :; do sleep 1; done # {mark}"},
            "_meta": {"progressToken": 6}}
    r = c.begin("tools/call", code)
    t.wait_until(lambda: not gone(mark), 20, "it runs")
    other = Session(s)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled",
              "params": {"requestId": c.next_id}}
    t.equal(other.post(cancel).status, 202)
    time.sleep(0.3)
    t.check(not gone(mark), "one session cannot end another's call")
    t.equal(c.post(cancel).status, 202)
    t.wait_until(lambda: gone(mark), 10, "its own can")
    t.check(all("result" not in json.dumps(m) for _, m in iter(lambda: next_event(r), None)),
            "there is no answer, and the stream ends")
    r = c.begin("tools/call", code)
    t.wait_until(lambda: not gone(mark), 20, "it runs")
    t.equal(s.ask("DELETE", headers=c.headers).status, 200)
    t.wait_until(lambda: gone(mark), 10, "a session that ends ends its calls")


@by_turns
def test_a_client_that_comes_back(t):
    s = serve(t)
    c, other = Session(s), Session(s)
    r = c.begin("tools/call", {"name": "code", "arguments": {"code": "sleep 3; echo done"},
                               "_meta": {"progressToken": "p"}})
    first, message = next_event(r)
    t.equal(message, None, "the event without a message")
    seen, message = next_event(r)
    t.equal(message["method"], "notifications/progress")
    r.connection.close()
    for bad in ("1", "x-1", "-", "999-1", f"{seen}9", seen.replace("-", "-9"), "4294967297-0"):
        t.equal(c.get(bad).status, 400, bad)
    t.equal(other.get(seen).status, 400, "the stream is another session's")
    time.sleep(1.2)
    r = c.get(seen)
    t.equal(r.status, 200)
    again, answer = [], None
    while not answer:
        id, message = next_event(r)
        again.append(id)
        answer = message.get("result")
    t.equal(text(answer), "done\n", "the call has gone on meanwhile")
    t.equal(next_event(r), None, "and that was all")
    t.check(seen not in again and len(set(again)) == len(again), again)
    all = [id for id, _ in Answer(c.get(first)).events]
    t.equal(all, [seen, *again], "a moment later all of it can be had once more")


def test_a_stream_of_the_session(t):
    s = serve(t)
    c = Session(s)
    r = c.get()
    t.equal(r.status, 200)
    t.equal(c.get().status, 409, "there is one")
    r.connection.close()

    def free():
        again = c.get()
        again.connection.close()
        return again.status == 200
    t.wait_until(free, 5, "it can be had again")


def write(path, data):
    with open(path + ".new", "w") as f:
        f.write(data)
    os.rename(path + ".new", path)


def test_the_list_changes(t):
    tools = {"version": 1, "tools": {"x": tool(["echo", "hi"])}}
    ws = t.workspace({"tools.yaml": json.dumps(tools)})
    s = Server(t, "-f", "tools.yaml", cwd=ws)
    c = Session(s)
    r = c.get()
    subscribe = {"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True, "promptsListChanged": True}, **modern()}}
    listening = s.open(body=subscribe, headers={"Mcp-Protocol-Version": MODERN,
                                                "Mcp-Method": "subscriptions/listen"})
    _, message = next_event(listening)
    t.equal((message["method"], message["params"]["notifications"]),
            ("notifications/subscriptions/acknowledged", {"toolsListChanged": True}))
    tools["tools"]["y"] = tool(["cat", "/etc/passwd"])
    path = os.path.join(ws, "tools.yaml")
    write(path, json.dumps(tools))
    t.wait_until(lambda: "is not accepted" in s.errors(), 10, "it is seen")
    t.equal([x["name"] for x in c.ask("tools/list").message["result"]["tools"]], ["x"],
            "who writes the file does not decide what is served")
    t.equal(t.ward("tool", "trust", "-f", path, "--yes", cwd=ws).rc, 0)
    while True:
        _, message = next_event(r)
        if message:
            break
    t.equal(message, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    t.equal([x["name"] for x in c.ask("tools/list").message["result"]["tools"]], ["x", "y"])
    _, message = next_event(listening)
    t.equal((message["method"], message["params"]["_meta"]),
            ("notifications/tools/list_changed", {META + "subscriptionId": "l"}))
    write(path, "nonsense")
    t.wait_until(lambda: "stay as they were" in s.errors(), 10, "it is seen")
    t.equal(text(c.call("x").message["result"]), "hi\n", "what cannot be read changes nothing")


def test_the_front_is_locked_up(t):
    s = serve(t)
    Session(s)
    front = s.front()
    with open(f"/proc/{front}/status") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    t.equal((status["Seccomp"], status["NoNewPrivs"], int(status["CapEff"], 16)), ("2", "1", 0))
    if t.person.pw_uid == 0:
        t.check("0" not in status["Uid"].split(), f"uid {status['Uid']}")
    if os.geteuid() == 0:
        with open(f"/proc/{front}/environ", "rb") as f:
            t.equal(f.read(), b"", "nothing of the user's environment is in its memory")
        t.wait_until(lambda: len(os.listdir(f"/proc/{front}/fd")) == 5, 5, "0-2 and two sockets")
    # whoever of both dies, the other ends
    mark = f"{t.directory}-front"
    c = Session(s)
    c.begin("tools/call", {"name": "code", "_meta": {"progressToken": 1}, "arguments": {
        "code": f"while :; do sleep 1; done # {mark}"}})
    t.wait_until(lambda: not gone(mark), 20, "it runs")
    os.kill(front, signal.SIGKILL)
    t.equal(s.process.wait(10), 125)
    t.check("has ended" in s.errors() and gone(mark), s.errors())
    s = serve(t)
    front = s.front()
    s.process.send_signal(signal.SIGTERM)
    t.equal(s.process.wait(10), 0)
    t.wait_until(lambda: not os.path.exists(f"/proc/{front}"), 5, "the front ends, too")


@by_turns
@timeout(120)
def test_floods_over_http(t):
    s = serve(t)
    c = Session(s)
    held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(400)]
    held[0].sendall(b"POST /mcp HTTP/1.1\r\nHost: x")
    t.equal(c.ask("ping").message["result"], {}, "idle connections take nobody's place")
    for sock in held:
        sock.close()
    mine = [Session(s) for _ in range(140)]
    t.equal(mine[-1].ask("ping").status, 200, "the newest session is open")
    t.equal(c.ask("ping").status, 404, "the one that was not used for the longest time has gone")
    c = Session(s)
    answers = [None] * 100

    def one(i):
        answers[i] = text(c.post({"jsonrpc": "2.0", "id": 1000 + i, "method": "tools/call",
                                  "params": {"name": "x"}}, timeout=60).message["result"])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal(set(answers), {"hi\n"}, "100 calls at one time")


def test_tokens_and_addresses(t):
    ws = t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": TOOLS}),
                      "token": "a-token-of-20-bytes!\n", "short": "short\n", "bad": "a b" * 10})
    serve_words = ("mcp", "serve", "-f", "tools.yaml")
    for name in ("token", "short", "bad"):
        os.chmod(os.path.join(ws, name), 0o600)
    s = Server(t, "-f", "tools.yaml", "--token-file", "token", cwd=ws)
    t.equal(s.token, None, "what is in a file is not printed")
    s.token = "a-token-of-20-bytes!"
    Session(s)
    for words, why in ((("--http", "x"), "[ADDRESS:]PORT"), (("--http", "70000"), "[ADDRESS:]PORT"),
                       (("--http", "localhost:0"), "[ADDRESS:]PORT"),
                       (("--http", "::1:0"), "[ADDRESS:]PORT"),
                       (("--http", str(s.port)), "cannot listen"),
                       (("--http", "0", "--token-file", "short"), "fewer than 16"),
                       (("--http", "0", "--token-file", "bad"), "one word"),
                       (("--http", "0", "--token-file", "none"), "cannot open"),
                       (("--token-file", "token"), "is for --http"),
                       (("--approvals", "nobody"), "client or queue")):
        r = t.ward(*serve_words, *words, cwd=ws)
        t.check(r.rc in (2, 125) and why in r.err, (words, r))
    r = t.ward("mcp", "install", "--dry-run", "cursor", "-f", "tools.yaml", "--http", "0", cwd=ws)
    t.check(r.rc != 0 and "start a server themselves" in r.err, r)
    os.chmod(os.path.join(ws, "token"), 0o640)
    r = t.ward(*serve_words, "--http", "0", "--token-file", "token", cwd=ws)
    t.check(r.rc == 125 and "read by others" in r.err, r)
