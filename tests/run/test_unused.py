"""ward check --unused: which grants of a policy, or of a tools.yaml, no run of the last days used;
what the journals cannot tell is never called unused, and the narrowed file allows nothing more."""
import datetime
import hashlib
import json
import os
import xml.etree.ElementTree

NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}


def journal(t, *events, level="full", days=1, **start):
    """A journal as ward writes it, of a run that was so many days ago."""
    when = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days)
    first = {"kind": "run.start", "action": "allow", "object": "x", **start, "level": level}
    before, lines = bytes(32), []
    for i, event in enumerate([first, *events]):
        body = json.dumps({"seq": i + 1, "time": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                           "run": when.strftime("%Y%m%d-%H%M%S-aaaaaa"), **event},
                          separators=(",", ":"))[:-1]
        before = hashlib.sha256(before + body.encode()).digest()
        lines.append(f'{body},"hash":"{before.hex()}"}}\n')
    place = t.fresh_dir("journal")
    t.write(place, {"j.jsonl": "".join(lines)})
    return os.path.join(place, "j.jsonl")


def connect(host, port, how="transparent"):
    return {"kind": "net.connect", "action": "allow", "object": f"{host}:{port}", "host": host,
            "port": port, "how": how}


def request(method, host):
    return {"kind": "net.http", "action": "allow", "object": f"{method} https://{host}/",
            "host": host, "port": 443, "method": method, "url": f"https://{host}/"}


def look(t, ws, *words, rc=None):
    r = t.ward("check", "--unused", "--json", *words, cwd=ws)
    t.check(r.rc in ((0, 1) if rc is None else (rc,)), r)
    return json.loads(r.out)


def by_rule(found):
    """Findings by rule: what each is about, without why."""
    named = {"unused-grant": [], "use-not-on-record": []}
    for f in found["findings"]:
        named[f["rule"]].append(f["message"].split(": not used")[0].split(": its use")[0])
    return named["unused-grant"], named["use-not-on-record"]


POLICY = """version: 1   # of the project
network:
  mode: restricted
  egress_allowlist:
    - api.example.com   # the model
    - old.example.com   # nobody knows
    - {host: web.example.com, ports: [443, 8443]}
    - host: git.example.com
      methods: [GET, POST]
  host_services: ["postgres=127.0.0.1:5432", "redis=127.0.0.1:6379"]
  ingress: [8000, 9000]
credentials:
  mode: just_in_time
  grants:
    - {name: api, source: "env:A", hosts: [api.example.com, web.example.com]}
    - {name: old, source: "env:B", hosts: [old.example.com]}
process:
  children: 2
"""
NARROW = """version: 1   # of the project
network:
  mode: restricted
  egress_allowlist:
    - api.example.com   # the model
    - {host: web.example.com, ports: [8443]}
    - host: git.example.com
      methods: [GET]
  host_services: ["postgres=127.0.0.1:5432"]
  ingress: [9000]
credentials:
  mode: just_in_time
  grants:
    - {name: api, source: "env:A", hosts: [api.example.com]}
process: {}
filesystem:
  mode: read_only
"""


def test_grants_of_a_policy(t):
    """Each kind is found or left alone, and the file without them is changed in nothing else."""
    ws = t.workspace({"ward.yaml": POLICY})
    used = journal(t, connect("api.example.com", 443), connect("web.example.com", 8443),
                   request("GET", "git.example.com"), connect("postgres", 5432),
                   {**connect("inside", 9000, "published"), "host": "10.0.0.1"},
                   {"kind": "credential.use", "action": "allow", "object": "api",
                    "host": "api.example.com", "grant": "api"},
                   {"kind": "net.connect", "action": "deny", "object": "old.example.com:443",
                    "host": "old.example.com", "port": 443},
                   {"kind": "net.dns", "action": "allow", "object": "old.example.com",
                    "host": "old.example.com"})
    found = look(t, ws, used, "ward.yaml", rc=1)
    unused, unknown = by_rule(found)
    t.equal(unused, ["network.egress_allowlist: old.example.com:443",
                     "network.egress_allowlist: web.example.com: port 443",
                     "network.egress_allowlist: git.example.com:443: method POST",
                     "network.host_services: redis=127.0.0.1:6379", "network.ingress: 8000",
                     "filesystem.mode: read_write",
                     "credentials.grants: api: host web.example.com", "credentials.grants: old",
                     "process.children: 2"], "each")
    t.equal(unknown, [], "all of it is on record")
    places = {f["message"].split(": not used")[0]: f["line"] for f in found["findings"]}
    t.equal((places["network.egress_allowlist: old.example.com:443"],
             places["network.ingress: 8000"]), (6, 11), "lines")
    t.equal(found["narrowed"], NARROW, "the narrowed file")
    t.contains(found["diff"], "-    - old.example.com   # nobody knows", "as a difference")
    t.equal(t.ward("check", "ward.yaml", cwd=ws).rc, 0, "the old file is as it was")
    t.write(ws, {"narrow.yaml": found["narrowed"]})
    t.equal(t.ward("check", "narrow.yaml", cwd=ws).rc, 0, "it is valid")
    found = look(t, ws, used, "narrow.yaml", rc=0)
    t.equal((found["findings"], found["narrowed"]), ([], None), "and all of it is used")


def test_what_is_not_on_record(t):
    """A level that shows too little, or lost events: unknown, not unused."""
    mount = t.fresh_dir("mount")
    ws = t.workspace({"ward.yaml": json.dumps({
        "version": 1, "process": {"commands": {"allow": ["sh", "git status *", "make"]}},
        "filesystem": {"host_mounts": [{"path": mount, "mode": "read_write"}, "/opt"]}})})
    mounts = [f"filesystem.host_mounts: {mount}", "filesystem.host_mounts: /opt"]
    changes = ["filesystem.mode: read_write"]
    commands = [f"process.commands: allow {c}" for c in ("sh", "git status *", "make")]
    ran = [{"kind": "exec.start", "action": "log", "object": f"/usr/bin/{argv[0]}",
            "observed": True, "argv": argv} for argv in (["sh"], ["git", "log"])]
    for level, wanted in (("basic", ([], mounts + changes + commands)),
                          ("exec", (commands[1:], mounts + changes)),
                          ("writes", (changes + commands[1:], mounts)),
                          ("full", (mounts + changes + commands[1:], []))):
        found = look(t, ws, journal(t, *(ran if level != "basic" else []), level=level),
                     "ward.yaml", rc=1 if wanted[0] else 0)
        t.equal(by_rule(found), wanted, level)
    one = journal(t, *ran)
    found = look(t, ws, one, journal(t, *ran, level="writes", days=2), "ward.yaml")
    t.equal(by_rule(found)[1], mounts, "one run showed less")
    t.contains(found["findings"][-1]["message"] + found["findings"][0]["message"], "1 of 2 runs")
    gap = journal(t, *ran, {"kind": "journal.gap", "action": "log", "object": "observer",
                            "lost": 7})
    found = look(t, ws, gap, "ward.yaml", rc=0)
    t.contains(found["findings"][0]["message"], "7 events of these runs are missing")
    wrote = journal(t, *ran, {"kind": "file.read", "action": "log", "object": f"{mount}/a",
                              "exe": "/bin/sh", "observed": True},
                    {"kind": "file.change", "action": "log", "object": f"{ws}/x",
                     "change": "create"}, workspace=ws)
    t.equal(by_rule(look(t, ws, wrote, "ward.yaml"))[0],
            [f"{mounts[0]}: mode: read_write", mounts[1]] + commands[1:], "read, never written")


def test_what_restricts_others_stays(t):
    """What would allow more if it were gone is named, and stays."""
    inside = {"workspace/keep/a": "", "workspace/b": ""}
    ws = t.workspace({**inside, "p.json": json.dumps({
        "version": 1, "process": {"commands": {"allow": ["one", "two"]}},
        "network": {"mode": "restricted", "egress_allowlist": [
            "*.example.com", {"host": "a.example.com", "methods": ["GET"]}, "b.example.com",
            {"host": "c.example.com", "ask": True}, {"host": "d.example.com", "methods": ["GET"],
                                                     "ports": [8443]}]},
        "filesystem": {"workspace": "workspace", "host_mounts": ["workspace/keep", "/opt"]}})})
    found = look(t, ws, journal(t, connect("x.example.com", 443)), "p.json", rc=1)
    kept = {f["message"].split(": not used")[0] for f in found["findings"]
            if f["fix"].startswith("keep it")}
    t.equal(kept, {"network.egress_allowlist: a.example.com:443",
                   "network.egress_allowlist: c.example.com:443", "process.commands: allow one",
                   f"filesystem.host_mounts: {ws}/workspace/keep"}, "what stays")
    new = json.loads(found["narrowed"])
    t.equal([r if isinstance(r, str) else r["host"] for r in new["network"]["egress_allowlist"]],
            ["*.example.com", "a.example.com", "c.example.com"], "rules")
    t.equal((new["process"]["commands"]["allow"], new["filesystem"]["host_mounts"]),
            (["one"], ["workspace/keep"]), "the rest")


def test_time_and_input(t):
    """Only the last days count; what was changed, is missing or makes no sense is refused."""
    ws = t.workspace({"ward.yaml": "network: {mode: restricted, egress_allowlist: [a.test]}\n"})
    old = journal(t, connect("a.test", 443), days=40)
    new = journal(t, days=2)
    unused = "network.egress_allowlist: a.test:443"
    t.check(unused in by_rule(look(t, ws, old, new, "ward.yaml", rc=1))[0], "too long ago")
    t.check(unused not in by_rule(look(t, ws, "--days", "41", old, new, "ward.yaml"))[0], "within")
    found = look(t, ws, new, "ward.yaml", rc=1)
    t.contains(found["narrowed"], "mode: none", "nothing was reached")
    for words, code, text in (((old, "ward.yaml"), 125, "no run of the last 30 days"),
                              (("ward.yaml",), 125, "no run of the last 30 days"),
                              (("--days", "0", new, "ward.yaml"), 2, "from 1 to"),
                              (("--days", "x", new, "ward.yaml"), 2, "from 1 to"),
                              (("--format", "xml", new, "ward.yaml"), 2, "expected text"),
                              (("--format", "", new, "ward.yaml"), 2, "is empty"),
                              ((new, "none.yaml"), 125, "cannot open"),
                              (("--replay", new, "ward.yaml"), 2, "--replay"),
                              (("--write", "ward.yaml", new, "ward.yaml"), 125, "does not exist")):
        r = t.ward("check", "--unused", *words, cwd=ws)
        t.check(r.rc == code and text in r.err, f"{words}: {r}")
    with open(new, "r+") as f:
        text = f.read().replace('"object":"x"', '"object":"y"')
        f.seek(0)
        f.write(text)
    r = t.ward("check", "--unused", new, "ward.yaml", cwd=ws)
    t.check(r.rc == 125 and "was changed" in r.err, r)
    t.write(ws, {"bad.yaml": "network: {mod: none}\n"})
    r = t.ward("check", "--unused", old, "bad.yaml", cwd=ws)
    t.check(r.rc == 125 and "bad.yaml:1:" in r.err, r)


def test_reports(t):
    ws = t.workspace({"ward.yaml": "network: {mode: restricted, egress_allowlist: [a.test, b.test]"
                                   "}\nfilesystem: {host_mounts: [/opt]}\n"})
    j = journal(t, connect("a.test", 443), level="writes")
    text = t.ward("check", "--unused", "--write", "new.yaml", j, "ward.yaml", cwd=ws)
    t.equal(text.rc, 1, text.err)
    for part in ("ward.yaml:1:", "network.egress_allowlist: b.test:443: not used in the last 30 "
                 "days (1 run) [unused-grant]", "[use-not-on-record]", "+++ ward.yaml (narrowed)",
                 "+network: {mode: restricted, egress_allowlist: [a.test]}", "1 used"):
        t.contains(text.out, part)
    t.contains(t.read(os.path.join(ws, "new.yaml")), "egress_allowlist: [a.test]}")
    t.check(t.ward("check", "--unused", "--write", "new.yaml", j, "ward.yaml", cwd=ws).rc == 125,
            "nothing is written over")
    sarif = json.loads(t.ward("check", "--unused", "--format", "sarif", j, "ward.yaml",
                              cwd=ws).out)["runs"][0]
    t.equal(sorted({(x["ruleId"], x["level"]) for x in sarif["results"]}),
            [("unused-grant", "error"), ("use-not-on-record", "warning")], "SARIF")
    suite = xml.etree.ElementTree.fromstring(
        t.ward("check", "--unused", "--format", "junit", j, "ward.yaml", cwd=ws).out)
    t.equal([c.get("name") for c in suite if c.find("failure") is not None], ["unused-grant"],
            "JUnit")


def call(tool, agent=None):
    return {"kind": "tool.call", "action": "allow", "object": tool,
            **({"from": agent} if agent else {}), "path": "/elsewhere/tools.yaml"}


TOOLS = """version: 1
tools:
  fetch:
    description: Fetches.
    run: [curl, --url, "{url}"]
    parameters: {url: {type: url}}
    scope: {hosts: [a.example.com, b.example.com], methods: [GET, POST], write: [out, cache]}
    nature: &n
  never:
    description: Is not called.
    run: ["true"]
    scope: {}
    nature: &n
  decoy:
    description: Is never called.
    canary: true
    run: ["false"]
    scope: {}
    nature: &n
agents:
  one: {tools: [fetch, never]}
  two: {tools: [fetch]}
""".replace("&n", json.dumps(NATURE))


def test_grants_of_tools(t):
    """Tools, who holds them, and the scopes of those that were called."""
    ws = t.workspace({"tools.yaml": TOOLS, "out/.keep": "", "cache/.keep": ""})
    used = journal(t, call("fetch", "one"), request("GET", "a.example.com"),
                   {"kind": "file.change", "action": "log", "object": f"{ws}/out/x",
                    "change": "create"})
    found = look(t, ws, used, "tools.yaml", rc=1)
    t.equal(by_rule(found), (["tools: never", "tools.fetch.scope.write: cache",
                              "tools.fetch.scope.hosts: b.example.com",
                              "tools.fetch.scope.methods: POST", "agents.two.tools: fetch"], []))
    new = found["narrowed"]
    t.check("  never:" not in new and "decoy" in new and "hosts: [a.example.com], methods: [GET], "
            "write: [out]" in new and "one: {tools: [fetch]}" in new and "two: {tools: []}" in new,
            new)
    nameless = journal(t, call("fetch"), days=2)
    t.equal(by_rule(look(t, ws, used, nameless, "tools.yaml"))[1], ["agents.two.tools: fetch: 1 of "
            "2 calls named no agent (--agent)"], "who it was is not known")


def test_calls_are_on_record(t):
    """ward tool says in each call's own journal which tool it was, and under which policy."""
    tool = {"description": "d", "run": ["true"], "scope": {}, "nature": NATURE}
    ws = t.workspace({"tools.yaml": json.dumps({
        "version": 1, "tools": {"one": tool, "two": tool},
        "agents": {"a": {"tools": ["one"]}, "b": {"tools": ["one", "two"]}}}),
        "ward.yaml": "network: {mode: restricted, egress_allowlist: [a.test]}\n"})
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0, "trust")
    r = t.ward("tool", "-f", "tools.yaml", "--agent", "a", "run", "--json", "one", cwd=ws)
    t.equal(r.rc, 0, r.err)
    shown = t.ward("audit", "show", "--json", "--kind", "tool", json.loads(r.out)["run"], cwd=ws)
    event = json.loads(shown.out)
    real = os.path.realpath(ws)
    t.equal((event["object"], event["from"], event["path"], event["policy"]),
            ("one", "a", f"{real}/tools.yaml", f"{real}/ward.yaml"), "the event")
    t.equal(by_rule(look(t, ws, "tools.yaml", rc=1))[0],
            ["tools: two", "agents.b.tools: one"], "of the tools")
    t.check("network.egress_allowlist: a.test:443" in by_rule(look(t, ws, rc=1))[0],
            "of the policy that they may not exceed")
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal((r.rc, look(t, ws)["runs"]), (0, 2), "with the runs under it")
