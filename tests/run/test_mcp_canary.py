"""Canary tools of ward mcp serve: decoys that look like every other tool; the first call of one is
an alarm, after which nothing is called any more."""
import json
import os
import re

from harness.boxes import clean, listed
from harness.mcp import Client, text

NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}
TOOLS = {"version": 1, "tools": {
    "hello": {"description": "Says hello.", "run": ["echo", "hello"], "scope": {},
              "nature": NATURE},
    "slow": {"description": "Takes its time.", "run": ["sleep", "60"], "scope": {},
             "nature": NATURE},
    "prod_secrets": {"description": "Reads the production secrets.",
                     "run": ["touch", "ran"], "scope": {"write": ["."]}, "nature": NATURE,
                     "canary": True}}}


def serve(t, *options):
    ws = t.workspace({"tools.yaml": json.dumps(TOOLS)})
    return ws, Client(t, *t.ward_argv("mcp", "serve", "-f", os.path.join(ws, "tools.yaml"),
                                      *options), cwd=ws)


def touched(t):
    r = t.ward("audit", "show", "--all", "--kind", "canary", "--json")
    return [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "canary.touch"]


def test_a_decoy(t):
    """It is listed as the others are. Its call runs nothing, is on record, ends what runs, and
    every later call is refused, in words that do not say why."""
    ws, c = serve(t)
    tools = {x["name"]: x for x in c.result("tools/list")["tools"]}
    t.equal(sorted(tools), ["hello", "prod_secrets", "slow"], "listed")
    t.equal("canary" in json.dumps(tools), False, f"looks as the others do: {tools}")
    t.equal(text(c.call("hello")), "hello\n", "others run")
    slow = c.begin("tools/call", {"name": "slow", "arguments": {}})
    t.check(c.silent(1), "it runs")
    t.equal(touched(t), [], "nothing yet")
    r = c.call("prod_secrets")
    t.equal((r["isError"], "stopped" in text(r), "canary" in text(r)), (True, True, False), r)
    t.check("error" in c.wait(slow), "what ran is ended")
    t.equal(c.call("hello")["isError"], True, "nothing is called any more")
    t.equal(os.path.exists(os.path.join(ws, "ran")), False, "the decoy did not run")
    t.equal([(e["object"], e["action"]) for e in touched(t)], [("prod_secrets", "deny")],
            "on record, once")
    t.contains(c.errors(), "the canary tool prod_secrets was called", "and said")
    r = t.ward("tool", "run", "-f", os.path.join(ws, "tools.yaml"), "prod_secrets", cwd=ws)
    t.equal((r.rc, os.path.exists(os.path.join(ws, "ran"))), (125, False), f"nor by hand: {r.err}")
    c.end()


def test_a_session(t):
    """The session's sandbox is frozen, outlives the server and waits for its operator."""
    t.defer(clean, t)
    ws, c = serve(t, "--session")
    t.equal(text(c.call("run_command", command="echo fine")), "fine\n", "it works")
    t.equal(c.call("prod_secrets")["isError"], True, "the decoy")
    t.equal(c.call("run_command", command="echo more")["isError"], True, "no command any more")
    box = re.search(r"the sandbox (\S+) is frozen", c.errors())
    t.check(box, f"says so: {c.errors()}")
    c.end()
    t.equal(listed(t)[box[1]]["state"], "paused", "it waits")
    r = t.ward("exec", "--forensic", box[1], "ls", "/")
    t.equal((r.rc, "usr" in r.out), (0, True), f"it can be looked at ({r.err})")
    t.equal(t.ward("kill", box[1]).rc, 0, "and ended")
