"""ward mcp wrap: a hostile server is contained, each attack seen to work without ward first; what a
person has accepted is what a client gets; and nothing of it outlives its client."""
import functools
import json
import os
import signal
import socket
import time

from harness import mcp_hostile, native_only, only_root, timeout
from harness.mcp import NATURE, Client, gone, text
from harness.mcp_hostile import TERMINAL, TOKEN

SERVER = ("/usr/bin/python3", "mcp_hostile.py")
CLIENTS = []


def place(t, files=None):
    with open(mcp_hostile.__file__) as f:
        return t.workspace({"mcp_hostile.py": f.read(), "notes.txt": "hello\n", **(files or {})})


def trust(t, ws, *options, server=SERVER):
    r = t.ward("mcp", "trust", "--yes", "--name", "hostile", *options, "--", *server, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return r


def wrap(t, ws, *options, server=SERVER, name="hostile", **more):
    """Ended by the end of its input, so that nothing has to be swept (see ended())."""
    CLIENTS.append(Client(t, *t.ward_argv("mcp", "wrap", "--name", name, *options,
                                          *(("--", *server) if server else ())), cwd=ws, **more))
    return CLIENTS[-1]


def ended(function):
    """When the test is over, the wrapped servers that it started end as they do for a client."""
    @functools.wraps(function)
    def run(t):
        CLIENTS.clear()
        function(t)
        for c in CLIENTS:
            if c.process.poll() is None:
                t.equal(c.end(15), 0, c.errors()[-1000:])
    return run


def bare(t, ws):
    """The control: the same server without ward."""
    return Client(t, *SERVER, cwd=ws)


def processes(mark):
    """Those of ours that have it in their command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if mark.encode() in f.read():
                    yield int(pid)
        except OSError:
            pass


def call(c, name, seconds=30, **arguments):
    r = c.call(name, seconds, **arguments)
    return text(r), r.get("isError", False)


@ended
def test_files_and_network(t):
    """Reading and writing outside, writing inside, and a way out."""
    home = t.fresh_dir("victim")
    t.write(home, {"secret": "private\n"})
    secret, planted = os.path.join(home, "secret"), os.path.join(home, "planted")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        port = listener.getsockname()[1]
        for wrapped in (False, True):
            ws = place(t)
            if wrapped:
                trust(t, ws)
            c = wrap(t, ws) if wrapped else bare(t, ws)
            got = {"read": call(c, "read", path=secret)[0],
                   "escape": call(c, "read", path="../../../../../../" + secret)[0],
                   "write": call(c, "write", path=planted)[0],
                   "inside": call(c, "write", path="notes.txt")[0],
                   "connect": call(c, "connect", port=port)[0]}
            try:
                listener.accept()[0].close()
                came = True
            except TimeoutError:
                came = False
            done = [k for k in got if got[k].startswith("done")]
            t.equal((done, came, os.path.exists(planted)),
                    ([], False, False) if wrapped else (list(got), True, True), repr(got))
            with open(os.path.join(ws, "notes.txt")) as f:
                t.equal(f.read(), "hello\n" if wrapped else "planted\n", "the workspace")
            t.equal(call(c, "read", path="mcp_hostile.py")[0][:5], "done:", "it has its workspace")
            if not wrapped:
                os.unlink(planted)
            c.end()


@ended
def test_lies_in_annotations(t):
    """The server says that write changes nothing; what a client is told is the policy's."""
    ws = place(t)
    said = {x["name"]: x for x in bare(t, ws).result("tools/list")["tools"]}
    t.equal(said["write"]["annotations"]["readOnlyHint"], True, "the lie")
    for options, expected in (((), (True, False, False)),
                              (("--set", "filesystem.mode=read_write"), (False, True, False)),
                              (("--rw", t.fresh_dir("more")), (False, True, False)),
                              (("--allow", "api.example.com"), (False, True, True))):
        trust(t, ws, *options)
        c = wrap(t, ws, *options)
        for shown in c.result("tools/list")["tools"]:
            hints = shown["annotations"]
            t.equal(tuple(hints[k + "Hint"] for k in ("readOnly", "destructive", "openWorld")),
                    expected, f"{options}: {shown['name']}")
        c.end()
    t.equal(set(hints), {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})


@ended
def test_output(t):
    """Terminal codes, hidden text, secrets, too much of it; unwrapped all of it arrives."""
    ws = place(t)
    c = bare(t, ws)
    t.equal(c.call("terminal")["content"][0]["text"], TERMINAL)
    t.check(TOKEN in call(c, "secret")[0], "the secret arrives")
    t.equal(len(call(c, "huge", bytes=3 << 20)[0]), 3 << 20)
    t.check(TERMINAL in c.errors(), "on standard error, too")
    c.end()
    os.truncate(c.log.name, 0)
    trust(t, ws)
    c = wrap(t, ws)
    r = c.call("terminal")
    t.check(not r["isError"] and "\\x1b]0;pwned\\x07" in text(r) and "\\u{200b}" in text(r), r)
    t.check("are shown as escapes" in text(r), r)
    whole = json.dumps(r, ensure_ascii=False)
    t.check("\\\\u{202e}" in json.dumps(r["structuredContent"]), r)
    for bad in ("\x1b", "\x07", "\u202e", "\u200b", "\\u001b"):
        t.check(bad not in whole, repr(bad))
    shown, failed = call(c, "fails")
    t.check(failed and "\x1b" not in shown and "answered with an error" in shown, shown)
    for name in ("secret", "secret_error"):
        shown, failed = call(c, name)
        t.check(failed and TOKEN not in shown and "github-token" in shown, shown)
    shown, failed = call(c, "huge", bytes=3 << 20)
    t.check(failed and "more than 1048576 bytes" in shown, shown)
    t.equal(len(call(c, "huge", bytes=1 << 19)[0]), 1 << 19, "what is below the limit arrives")
    shown, failed = call(c, "huge", bytes=5 << 20)  # a line that is too long for any message
    t.check(failed and "more than 4 MiB" in shown, shown)
    t.equal(call(c, "echo", text="again"), ("again", False), "the next call has a fresh server")
    t.check("\x1b" not in c.errors() and "\\x1b]0;pwned" in c.errors(), c.errors()[-500:])
    shown = c.call("kinds")["content"]
    t.equal([x["type"] for x in shown],
            ["image", "audio", "resource_link", "resource", "text", "text", "text"], shown)
    t.equal((shown[0], shown[3]["resource"]),
            ({"type": "image", "data": "aGk=", "mimeType": "image/png"},
             {"uri": "a:b", "text": "inside"}))
    t.check(all("left out" in x["text"] for x in shown[4:]), shown)


@ended
def test_messages_of_the_server(t):
    """Requests to the client, answers to calls that are not its own, and what is no message."""
    ws = place(t)
    trust(t, ws)
    c = wrap(t, ws, capabilities={"sampling": {}, "roots": {}, "elicitation": {}})
    shown, failed = call(c, "asks")
    answers = json.loads(shown)
    t.equal([(a["id"], a.get("error", {}).get("code"), a.get("result")) for a in answers],
            [("own-0", -32601, None), ("own-1", -32601, None), ("own-2", -32601, None),
             ("own-3", None, {})], shown)
    t.equal(c.others, [], "no request of the server reaches the client")
    shown, failed = call(c, "odd")
    t.check(failed and "no result of a tool" in shown, shown)
    waits = c.begin("tools/call", {"name": "never", "arguments": {}})
    t.equal(call(c, "forged")[0] in ("true", "forged"), True, "its own call is its own matter")
    t.check(not any(m.get("id") == waits for m in c.others) or
            "forged" in json.dumps(c.others), c.others)
    shown, failed = call(c, "structured", value={"n": "text"})
    t.check(failed and "does not match its schema" in shown, shown)
    t.equal(c.call("structured", value={"n": 5, "more": "x"})["structuredContent"],
            {"n": 5, "more": "x"})
    for name in ("resources/list", "prompts/list", "completion/complete", "logging/setLevel"):
        t.equal(c.ask(name)["error"]["code"], -32601, name)


@ended
def test_arguments(t):
    ws = place(t)
    t.equal(call(bare(t, ws), "echo", text="x", more=1)[0], "x", "the server does not look")
    trust(t, ws)
    c = wrap(t, ws)
    for bad, why in (({"text": 1}, "expected string"), ({}, "text"), ({"text": "x", "more": 1}, ""),
                     ({"text": None}, "expected string")):
        shown, failed = call(c, "echo", **bad)
        t.check(failed and "do not match the schema" in shown and why in shown, shown)
    t.equal(call(c, "echo", text="\u00e9 \"'$(id)\n--"), ("\u00e9 \"'$(id)\n--", False))
    t.equal(c.ask("tools/call", {"name": "none"})["error"]["code"], -32602)


@timeout(120)
@ended
def test_never_answers_and_ends(t):
    ws = place(t)
    trust(t, ws)
    c = wrap(t, ws, "--call-timeout", "1.5")
    begin = time.monotonic()
    shown, failed = call(c, "never")
    t.check(failed and "did not answer within 1.5 seconds" in shown, shown)
    t.check(time.monotonic() - begin < 10, "in time")
    t.equal(call(c, "echo", text="x"), ("x", False), "and the next call is served")
    id = c.begin("tools/call", {"name": "never", "arguments": {}})
    c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    t.check(c.silent(2), "a call that was cancelled is not answered")
    shown, failed = call(c, "die")
    t.check(failed and "the server has ended" in shown, shown)
    t.equal(call(c, "echo", text="x"), ("x", False), "it is started again")
    for _ in range(6):
        shown, failed = call(c, "die")
    t.check(failed and "5 times within a minute" in shown, shown)
    t.write(ws, {"mode": "silent"})
    c.end()
    c = wrap(t, ws, "--call-timeout", "1")
    shown, failed = call(c, "echo", text="x")
    t.check(failed and "did not answer within 1 seconds" in shown, shown)
    t.equal(c.end(), 0, "also a server that never began is ended")


@timeout(120)
@ended
def test_a_daemon_ends_with_the_client(t):
    ws = place(t)
    mark = f"{t.directory}-bare"
    c = bare(t, ws)
    t.equal(call(c, "daemon", text=mark)[0], "forked")
    c.end()
    t.check(not gone(mark), "without ward it lives on")
    for pid in processes(mark):
        os.kill(pid, signal.SIGKILL)
    trust(t, ws)
    for how in ("close", "kill"):
        mark = f"{t.directory}-{how}"
        c = wrap(t, ws)
        t.equal(call(c, "daemon", text=mark)[0], "forked")
        t.check(not gone(mark), "it runs inside")
        if how == "close":
            c.process.stdin.close()
        else:
            c.process.kill()
            t.wait_until(lambda: gone(mark), 15, f"{how}: nothing is left")
    trust(t, ws)  # removes what the one that was killed had in the runtime directory
    t.ward("recover")


@ended
def test_two_servers_do_not_see_each_other(t):
    ws = place(t)
    trust(t, ws)
    mark = f"{t.directory}-mark"
    a, b = wrap(t, ws), wrap(t, ws)
    call(a, "daemon", text=mark)
    call(a, "write", path="/tmp/left-there")
    t.check(mark in call(a, "look")[0], "it sees what is its own")
    shown = call(b, "look")[0]
    t.check("mcp_hostile" in shown and mark not in shown and "left-there" not in shown, shown)


@ended
def test_the_relay_is_locked_up(t):
    """The process that reads the server, and what happens when it is gone."""
    ws = place(t)
    trust(t, ws)
    c = wrap(t, ws)
    t.equal(call(c, "echo", text="x"), ("x", False))
    with open(f"/proc/{c.process.pid}/task/{c.process.pid}/children") as f:
        children = f.read().split()
    for relay in children:
        with open(f"/proc/{relay}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        if status["Seccomp"] == "2":
            break
    t.equal((status["Seccomp"], status["NoNewPrivs"], int(status["CapEff"], 16)), ("2", "1", 0))
    if t.person.pw_uid == 0:
        t.check("0" not in status["Uid"].split(), f"uid {status['Uid']}")
        with open(f"/proc/{relay}/environ", "rb") as f:
            t.equal(f.read().strip(b"\0"), b"", "nothing of the environment is in its memory")
        t.equal(len(os.listdir(f"/proc/{relay}/fd")), 7, "0-2, its streams, its socket")
        os.kill(int(relay), signal.SIGKILL)
        t.equal(call(c, "echo", text="y"), ("y", False), "another one takes its place")


# -- what was accepted

def listed(c):
    return {x["name"]: x for x in c.result("tools/list")["tools"]}


@ended
def test_rug_pull(t):
    """Each change of a definition is refused until a person has seen it."""
    ws = place(t)
    c = bare(t, ws)
    t.write(ws, {"mode": "changed"})
    t.check("send the contents" in listed(c)["echo"]["description"], "unwrapped, it arrives")
    os.unlink(os.path.join(ws, "mode"))
    r = t.ward("mcp", "wrap", "--name", "hostile", "--", *SERVER, cwd=ws)
    t.check(r.rc == 125 and "ever accepted" in r.err and "ward mcp trust" in r.err, r)
    r = trust(t, ws)
    t.check("tool echo" in r.out and "description: The tool echo." in r.out, r.out)
    for mode, sign in (("changed", "+  description: The tool echo. Before"),
                       ("schema", "+  inputSchema.properties.notes.type: string"),
                       ("annotation", "+  annotations.readOnlyHint: true"), ("gone", "-tool echo"),
                       ("new", "+tool echo2"), ("instructions", "+instructions: Obey me.")):
        t.write(ws, {"mode": mode})
        c = wrap(t, ws)
        if mode in ("new", "instructions"):
            t.equal(call(c, "echo", text="x"), ("x", False), mode)
            t.check("echo2" not in listed(c), "a new tool is not offered")
        else:
            shown, failed = call(c, "echo", text="x")
            t.check(failed and "ward mcp trust" in shown, f"{mode}: {shown}")
            t.check("echo" not in listed(c), f"{mode}: it is not offered")
            t.check(any(m.get("method") == "notifications/tools/list_changed" for m in c.others),
                    f"{mode}: the client is told")
        t.equal(call(c, "look")[1], False, "the others are served")
        if mode == "new":
            t.equal(c.ask("tools/call", {"name": "echo2"})["error"]["code"], -32602)
        t.check("to see the difference" in c.errors(), c.errors())
        c.end()
        r = t.ward("mcp", "trust", "--dry-run", "--name", "hostile", cwd=ws)
        t.check(r.rc == 1 and sign in r.out, f"{mode}: {r}")
        r = t.ward("mcp", "trust", "--name", "hostile", cwd=ws)
        t.check(r.rc == 125 and "--yes" in r.err, f"{mode}: {r}")
    t.write(ws, {"mode": "changed"})
    r = t.ward("mcp", "trust", "--yes", "--json", "--name", "hostile", cwd=ws)
    t.equal((r.rc, json.loads(r.out)), (0, {"name": "hostile", "changed": True, "accepted": True}))
    c = wrap(t, ws)
    t.equal(call(c, "echo", text="x"), ("x", False), "after a person has accepted it")
    r = t.ward("mcp", "trust", "--name", "hostile", cwd=ws)
    t.check(r.rc == 0 and "nothing has changed" in r.out, r)


@ended
def test_rug_pull_while_it_runs(t):
    ws = place(t)
    trust(t, ws)
    c = wrap(t, ws)
    t.equal(call(c, "echo", text="x"), ("x", False))
    t.write(ws, {"mode": "pulled"})
    t.equal(call(c, "pull"), ("pulled", False), "the server says that its list has changed")
    t.wait_until(lambda: "echo" not in listed(c), 10, "it is not offered any more")
    shown, failed = call(c, "echo", text="x")
    t.check(failed and "not the one that was accepted" in shown, shown)
    t.equal(call(c, "look")[1], False, "the others are")


@ended
def test_names_and_usage(t):
    ws = place(t)
    trust(t, ws)
    for words, why in ((("wrap", "--name", "hostile", "--", "/bin/true"), "another command"),
                       (("wrap", "--name", "none"), "ward mcp trust --name none"),
                       (("wrap",), "command is missing"),
                       (("wrap", "--name", "../x", "--", "/bin/true"), "a name has"),
                       (("wrap", "--name", "hostile", "--allow", "x.org"), "need the server's"),
                       (("wrap", "--session", "--", *SERVER), "no option --session"),
                       (("serve", "--allow", "x.org"), "no option --allow"),
                       (("ls", "--call-timeout", "5"), "no option --call-timeout"),
                       (("trust", "--name", "dead", "--", "/bin/true"), "the server has ended"),
                       (("trust", "--name", "dead", "--", "/bin/echo", "{}"), "has ended"),
                       (("forget", "none"), "ever accepted"), (("forget", "../x"), "no name")):
        r = t.ward("mcp", *words, cwd=ws)
        t.check(r.rc in (2, 125) and why in r.err, f"{words}: {r}")
    r = t.ward("mcp", "ls", cwd=ws)
    t.check(r.rc == 0 and max(map(len, r.out.splitlines())) <= 80, r.out)
    t.check(f"reads   {os.path.realpath(ws)}\n  writes  nothing\n  reaches nothing\n" in r.out,
            r.out)
    found = json.loads(t.ward("mcp", "ls", "--json", cwd=ws).out)["servers"]
    t.equal([(x["name"], x["read_only"], x["network"], x["writes"]) for x in found],
            [("hostile", True, "none", [])])
    t.check("echo" in [x["name"] for x in found[0]["tools"]], found)
    r = t.ward("mcp", "install", "--project", "--yes", "--name", "hostile", "cursor", cwd=ws)
    t.equal(r.rc, 0, r.err)
    with open(os.path.join(ws, ".cursor/mcp.json")) as f:
        entry = json.load(f)["mcpServers"]["hostile"]
    t.equal(entry["args"], ["mcp", "wrap", "--name", "hostile"], entry)
    c = Client(t, entry["command"], *entry["args"], cwd=t.fresh_dir("elsewhere"))
    CLIENTS.append(c)
    t.equal(call(c, "read", path="notes.txt")[0], "done: hello\n", "as it was accepted")
    c.end()
    r = t.ward("mcp", "uninstall", "--project", "--yes", "--name", "hostile", "cursor", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("mcp", "forget", "hostile", cwd=ws).rc, 0)
    t.equal(t.ward("mcp", "ls", cwd=ws).out, "")


def scoped(read=(), write=(), **more):
    return {"description": "ours", "mcp": {"server": "hostile", **more.pop("mcp", {})},
            "scope": {"read": ["mcp_hostile.py", *read], "write": list(write),
                      **more.pop("scope", {})},
            "nature": {**NATURE, **more.pop("nature", {})}, **more}


@ended
def test_scopes(t):
    """Each tool of a tools.yaml runs in the sandbox of its own scope; others are not offered."""
    tools = {"read": scoped(read=["notes.txt"]), "write": scoped(write=["out"]),
             "peek": scoped(mcp={"tool": "read"}),
             "echo": scoped(parameters={"text": {"max_length": 3}}),
             "asked": scoped(mcp={"tool": "look"}, nature={"approval": "always"}),
             "hidden": scoped(mcp={"tool": "terminal"}),
             "slow": scoped(mcp={"tool": "never"}, scope={"limits": {"timeout": 1}})}
    ws = place(t, {"private.txt": "private\n", "out/.keep": "", "tools.yaml": json.dumps(
        {"version": 1, "servers": {"hostile": {"command": list(SERVER)}}, "tools": tools})})
    trust(t, ws)
    c = wrap(t, ws, "-f", "tools.yaml", server=None, capabilities={"elicitation": {}})
    shown = listed(c)
    t.equal(set(shown), set(tools), "what has an entry")
    t.equal((shown["read"]["description"], shown["read"]["annotations"]["readOnlyHint"],
             shown["write"]["annotations"]["readOnlyHint"]), ("ours", True, False))
    t.equal(call(c, "read", path="notes.txt")[0], "done: hello\n")
    t.check(call(c, "peek", path="notes.txt")[0].startswith("failed"), "another scope")
    t.check(call(c, "read", path="private.txt")[0].startswith("failed"), "not in the scope")
    t.equal(call(c, "write", path="out/x")[0], "done: 8")
    t.check(call(c, "write", path="notes.txt")[0].startswith("failed"), "not writable")
    t.check(os.path.exists(os.path.join(ws, "out/x")), "it was written")
    t.equal((call(c, "echo", text="abc")[0], call(c, "echo", text="abcd")[1]), ("abc", True))
    shown, failed = call(c, "hidden")
    t.check(failed and "hide or act" in shown, shown)
    shown, failed = call(c, "slow")
    t.check(failed and "within 1 seconds" in shown, shown)
    id = c.begin("tools/call", {"name": "asked", "arguments": {}})
    question = c.read()
    t.check(question["method"] == "elicitation/create" and "asked wants" in
            question["params"]["message"], question)
    c.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    t.check("the answer is no" in text(c.wait(id)["result"]), "a no is a no")
    with open(os.path.join(ws, "tools.yaml"), "w") as f:
        json.dump({"version": 1, "servers": {"hostile": {"command": list(SERVER),
                                                         "pin": "sha256:" + "0" * 64}},
                   "tools": tools}, f)
    r = t.ward("mcp", "wrap", "--name", "hostile", "-f", "tools.yaml", cwd=ws)
    t.check(r.rc == 125 and "pins other tools" in r.err, r)


@timeout(200)
@ended
def test_learn(t):
    """An unknown server is wrapped by two commands."""
    more = t.fresh_dir("library")
    os.chmod(more, 0o755)
    t.write(more, {"needed.py": "X = 1\n"})
    ws = place(t)
    with open(os.path.join(ws, "server.py"), "w") as f:
        f.write(f"import sys\nsys.path.insert(0, {more!r})\nimport needed\n"
                "import mcp_hostile\nmcp_hostile.main()\n")
    r = t.ward("learn", "--mcp", "--name", "new", "-o", "new.yaml", "--", "/usr/bin/python3",
               "server.py", cwd=ws, timeout=150)
    t.check(r.rc == 0 and "accepted the tools of new" in r.err and "tool echo" in r.err, r)
    with open(os.path.join(ws, "new.yaml")) as f:
        t.check(more in f.read(), "what it lacked")
    c = wrap(t, ws, name="new", server=None)
    t.equal(call(c, "echo", text="x"), ("x", False))
    r = t.ward("learn", "--mcp", "--name", "bad", "--", "/bin/true", cwd=ws, timeout=60)
    t.check(r.rc == 1 and "no policy" in r.err, r)


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("Pss:"))


def children_of(pid):
    found = [pid]
    for one in found:
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children") as f:
                found += map(int, f.read().split())
    return found


@only_root
@native_only("a sanitizer's memory says nothing")
@ended
def test_idle_memory(t):
    """What ward adds to an idle server, in all of its processes."""
    ws = place(t)
    trust(t, ws)
    c = wrap(t, ws)
    t.equal(call(c, "echo", text="x"), ("x", False))

    def cost():
        total = 0
        for pid in children_of(c.process.pid):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if not f.read().startswith(b"/usr/bin/python3"):
                    total += pss_kib(pid)
        return total
    t.wait_until(lambda: cost() <= 1500, 15, f"it costs {cost()} KiB")
    print(f"idle: {cost()} KiB")
