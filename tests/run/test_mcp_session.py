"""The built-in tools of ward mcp serve --session: one sandbox under review, and resources."""
import json
import os
import re
import signal

from harness import timeout
from harness.mcp import Client, modern, text

NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}
NAMES = ["edit_file", "list_files", "read_file", "run_command", "search_files", "show_changes",
         "write_file"]


def serve(t, *options, files=None):
    ws = t.workspace({"a.txt": "one\ntwo\nthree\n", "d/b.txt": "two\n", **(files or {})})
    return ws, Client(t, *t.ward_argv("mcp", "serve", "--session", *options), cwd=ws)


def boxes(t):
    return json.loads(t.ward("ps", "--json").out)["sandboxes"]


def fine(t, r):
    t.check(not r["isError"], r)
    return text(r)


def test_files_and_commands(t):
    ws, c = serve(t)
    t.equal([x["name"] for x in c.result("tools/list")["tools"]], NAMES)
    t.equal(fine(t, c.call("list_files")), "a.txt\nd/\n")
    t.equal(fine(t, c.call("read_file", path="a.txt")), "one\ntwo\nthree\n")
    t.equal(fine(t, c.call("read_file", path="a.txt", first_line=2, lines=1)), "two\n")
    t.equal(fine(t, c.call("search_files", pattern="^tw")), "./a.txt:2:two\n./d/b.txt:1:two\n")
    t.equal(fine(t, c.call("search_files", pattern="zzz")), "no line matches\n")
    fine(t, c.call("write_file", path="new/deep/f", content="caf\u00e9\n"))
    fine(t, c.call("edit_file", path="a.txt", old_text="two", new_text="2"))
    t.equal(fine(t, c.call("run_command", command="cat new/deep/f a.txt; pwd", directory=".")),
            f"caf\u00e9\none\n2\nthree\n{ws}\n")
    t.equal(fine(t, c.call("run_command", command="ls", directory="d")), "b.txt\n")
    r = c.call("run_command", command="echo bad >&2; exit 3")
    t.equal((r["isError"], text(r)), (True, "bad\nexit code 3\n"))
    r = c.call("run_command", command="sleep 60", timeout_seconds=1)
    t.check(r["isError"] and "124" in text(r), r)
    changes = fine(t, c.call("show_changes"))
    t.check("+caf\u00e9" in changes and "-two" in changes, changes)
    t.equal((t.read(ws, "a.txt"), os.path.exists(f"{ws}/new")), ("one\ntwo\nthree\n", False),
            "changes wait for the review")
    t.equal(c.end(), 0)
    t.equal(boxes(t), [], "the session ends with the server")
    t.equal(t.ward("apply", cwd=ws).rc, 0, "a person applies them")
    t.equal((t.read(ws, "a.txt"), t.read(ws, "new/deep/f")), ("one\n2\nthree\n", "caf\u00e9\n"))


def test_edits_that_do_not_fit(t):
    ws, c = serve(t)
    for arguments, why in (({"old_text": "nope", "new_text": ""}, "does not occur"),
                           ({"old_text": "t", "new_text": ""}, "more than once"),
                           ({"old_text": "", "new_text": "x"}, "does not occur"),
                           ({"old_text": "two"}, "new_text is missing"),
                           ({"old_text": "two", "new_text": 2}, "another type"),
                           ({"old_text": "a", "new_text": "", "x": 1}, "no such argument")):
        r = c.call("edit_file", path="a.txt", **arguments)
        t.check(r["isError"] and why in text(r), f"{arguments}: {r}")
    fine(t, c.call("edit_file", path="a.txt", old_text="t", new_text="T", replace_all=True))
    t.equal(fine(t, c.call("read_file", path="a.txt")), "one\nTwo\nThree\n")
    for r in (c.call("read_file", path="nothing"), c.call("read_file", path="d"),
              c.call("edit_file", path="nothing", old_text="a", new_text="b"),
              c.call("read_file", path=""), c.call("write_file", path="", content="x"),
              c.call("write_file", path="d", content="x"),
              c.call("run_command", command="true", directory="nothing"),
              c.call("run_command", command="true", timeout_seconds=0),
              c.call("run_command", command="true", timeout_seconds=99999)):
        t.check(r["isError"] and text(r), r)


def test_the_walls_are_the_sandboxes(t):
    """Names that lead out, become options or reach a shell: the sandbox's files, or nothing."""
    secret = t.fresh_dir("outside")
    t.write(secret, {"key": "private\n"})
    ws, c = serve(t)
    fine(t, c.call("run_command", command=f"ln -s {secret}/key out; ln -s {secret} dir"))
    for path in ("out", "dir/key", f"{secret}/key", f"../{os.path.basename(secret)}/key",
                 "/proc/1/root" + secret + "/key", "/etc/shadow"):
        r = c.call("read_file", path=path)
        t.check(r["isError"] and "private" not in text(r), f"{path}: {r}")
        t.check("root:" not in text(r), f"{path}: {r}")
    for path in ("-rf", "--help", "$(touch pwned)", "`touch pwned`", "; touch pwned", "a b'\"\\",
                 "*", "\u202etxt", "a\nb"):
        fine(t, c.call("write_file", path=path, content="x\n"))
        t.equal(fine(t, c.call("read_file", path=path)), "x\n", repr(path))
        fine(t, c.call("edit_file", path=path, old_text="x", new_text="y"))
        t.equal(fine(t, c.call("list_files", path=path)).count("\n") > 0, True, repr(path))
        t.check("y" in fine(t, c.call("search_files", pattern="y", path=path)), repr(path))
    t.check("pwned" not in fine(t, c.call("list_files")).split("\n"), "no shell")
    t.equal(fine(t, c.call("search_files", pattern="-x")), "no line matches\n", "no option")
    connect = "import socket; socket.create_connection((\"192.0.2.1\", 443), 2)"
    r = c.call("run_command", command=f"python3 -c '{connect}'")
    t.check(r["isError"] and "unreachable" in text(r), f"no network: {r}")
    fine(t, c.call("run_command", command=r"printf 'a\033[2J\342\200\256b\000c' > odd"))
    shown = fine(t, c.call("read_file", path="odd"))
    t.check("\x1b" not in shown and "\u202e" not in shown and "2J" in shown, repr(shown))
    r = c.call("run_command", command="yes | head -c 3000000")
    t.check("left out" in text(r) and len(text(r)) < 1100000, "output is bounded")


def test_a_cancelled_command_is_killed(t):
    ws, c = serve(t)
    for trap in ("", "trap '' TERM HUP INT; "):
        id = c.begin("tools/call", {"name": "run_command", "arguments": {
            "command": f"{trap}touch started; while :; do sleep 0.2; done"}})
        t.wait_until(lambda: "started" in text(c.call("list_files")), 10, "it runs")
        c.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        t.wait_until(lambda: "sleep 0.2" not in text(c.call("run_command", command="cat /proc/*/"
                     "cmdline 2>/dev/null | tr '\\0' ' '")).replace("/cmdline", ""), 10, "killed")
        fine(t, c.call("run_command", command="rm started"))


@timeout(60)
def test_a_killed_server_leaves_no_sandbox(t):
    ws, c = serve(t)
    fine(t, c.call("write_file", path="made", content="x\n"))
    t.equal(len(boxes(t)), 1, "it runs")
    c.begin("tools/call", {"name": "run_command", "arguments": {"command": "sleep 1000"}})
    c.process.send_signal(signal.SIGKILL)
    t.wait_until(lambda: not boxes(t), 20, "the sandbox ends, too")
    t.contains(t.ward("diff", cwd=ws).out, "made", "what it changed is kept")
    t.ward("recover")


def test_a_policy_holds_for_the_session(t):
    ws, c = serve(t, "-p", "p.yaml", files={"p.yaml": "filesystem: {hide: [d/b.txt]}\n"})
    t.check("two" not in text(c.call("read_file", path="d/b.txt")), "hidden")
    t.equal(fine(t, c.call("read_file", path="a.txt")), "one\ntwo\nthree\n", "the rest is not")
    r = t.ward("mcp", "serve", "--session", "-p", "nothing.yaml", cwd=ws)
    t.check(r.rc == 125 and "session" in r.err and "nothing.yaml" in r.err, r)


def test_resources(t):
    tool = {"description": "a tool", "run": ["sh", "-c", "{code}"], "scope": {},
            "parameters": {"code": {}}, "nature": NATURE}
    ws = t.workspace({"a.txt": "one\n",
                      "tools.yaml": json.dumps({"version": 1, "tools": {"code": tool}})})
    c = Client(t, *t.ward_argv("mcp", "serve", "--session", "-f", "tools.yaml"), cwd=ws)
    t.check("code" in [x["name"] for x in c.result("tools/list")["tools"]], "both kinds")
    run = c.call("code", code="cat /root/.profile")["_meta"]["ward/run"]
    fine(t, c.call("run_command", command="echo two > a.txt"))
    found = [x["uri"] for x in c.result("resources/list")["resources"]]
    t.equal(found, ["ward://session/changes", f"ward://run/{run}/journal"])
    t.equal(c.result("resources/templates/list")["resourceTemplates"], [])
    got = c.result("resources/read", {"uri": found[0]})["contents"][0]
    t.check(got["mimeType"] == "text/x-diff" and "+two" in got["text"], got)
    got = c.result("resources/read", {"uri": found[1]})["contents"][0]["text"]
    kinds = {json.loads(line).get("kind") for line in got.splitlines()}
    t.check(any(re.search("start|begin", str(k)) for k in kinds), kinds)
    other = t.ward("run", "--", "true", cwd=ws, report=True).report["run"]
    for uri in (f"ward://run/{other}/journal", "ward://run//journal", "file:///etc/passwd", "",
                f"ward://run/{run}/journal/", f"ward://run/../{run}/journal"):
        t.equal(c.ask("resources/read", {"uri": uri})["error"]["code"], -32002, uri)
    t.equal(c.ask("resources/read", {})["error"]["code"], -32602)
    t.equal(c.ask("resources/read", {"uri": "x", **modern()})["error"]["code"], -32602)
    t.check(c.result("resources/list", modern())["ttlMs"] == 0, "a list that changes")


def test_a_name_is_taken_once(t):
    tool = {"description": "a tool", "run": ["true"], "scope": {}, "nature": NATURE}
    ws = t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": {"read_file": tool}})})
    r = t.ward("mcp", "serve", "--session", "-f", "tools.yaml", cwd=ws)
    t.check(r.rc == 125 and "read_file" in r.err and "--session" in r.err, r)
