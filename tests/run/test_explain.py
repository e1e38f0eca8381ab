"""ward explain and ward policy add: what was refused, and that the change which is offered allows
it and changes nothing else."""
import json
import os
import shlex

from harness.world import OTHER, WEB, World, attempts


def explained(t, ws, *words):
    r = t.ward("explain", "--json", *words, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return json.loads(r.out)["denials"]


def apply_command(t, ws, denial):
    """Runs the command that was offered, as a shell would."""
    words = shlex.split(denial["command"])
    t.equal(words[0], "ward")
    r = t.ward(*words[1:], "--yes", cwd=ws)
    t.equal(r.rc, 0, r.err)
    return r


def test_each_thing_is_explained_and_its_command_allows_it(t):
    """A system call, a planted name, a limit: refused, explained, allowed by the ready command."""
    ws = t.workspace({"ward.yaml": "# mine\nversion: 1\nresources:\n  output_limit: 1Ki  # few\n"})
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
    script = ("unshare -U true && echo NAMESPACE; echo x > .envrc; head -c 4000 /dev/zero | tr "
              "'\\0' x")
    r = t.ward("run", "--", "/bin/sh", "-c", script, cwd=ws)
    t.equal(r.rc, 137, r.err)
    found = {d["kind"]: d for d in explained(t, ws)}
    t.equal(sorted(found), ["exec.syscall", "file.quarantine", "limit.hit"])
    t.equal(found["limit.hit"]["changes"], [{"field": "resources.output_limit", "value": "2Ki"}])
    t.equal(found["exec.syscall"]["layer"], "seccomp")
    text = t.ward("explain", cwd=ws).out
    for part in ("allow it: ward policy add process.nesting true", "refused:", "by:",
                 "    nesting: true"):
        t.contains(text, part)
    one = explained(t, ws, t.ward("audit", "ls", "--json").out.split('"run":"')[1].split('"')[0],
                    str(found["limit.hit"]["event"]))
    t.equal([d["kind"] for d in one], ["limit.hit"])
    for kind in found:
        apply_command(t, ws, found[kind])
    t.equal(t.ward("policy", "add", "resources.output_limit", "1Mi", "--yes", cwd=ws).rc, 0)
    after = t.read(ws, "ward.yaml")
    for part in ("# mine\nversion: 1\n", "output_limit: \"1Mi\"  # few\n",
                 "protect:\n    - \"!/.envrc\"\n", "nesting: true\n"):
        t.contains(after, part)
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 0)	# what was approved stays trusted
    r = t.ward("run", "--", "/bin/sh", "-c", script, cwd=ws)
    t.contains(r.out, "NAMESPACE")
    t.equal(r.rc, 0, r.err)
    t.check(os.path.exists(os.path.join(ws, ".envrc")), "it was taken away again")
    t.contains(t.ward("explain", cwd=ws).out, "no recorded event was refused")


def test_a_program_that_is_elsewhere(t):
    ws = t.workspace()
    tools = t.fresh_dir("tools")
    t.write(tools, {"mytool": "#!/bin/sh\necho TOOL RAN\n"})
    os.chmod(os.path.join(tools, "mytool"), 0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    t.equal(t.ward("run", "--", "mytool", cwd=ws, env=env).rc, 127)
    found = explained(t, ws)
    t.equal([d["command"] for d in found], ["ward policy add filesystem.programs mytool"])
    apply_command(t, ws, found[0])
    r = t.ward("run", "-p", "ward.yaml", "--", "mytool", cwd=ws, env=env)
    t.equal((r.rc, r.out), (0, "TOOL RAN\n"), r.err)
    t.equal(t.ward("run", "-p", "ward.yaml", "--", "nosuchtool", cwd=ws).rc, 127)
    t.equal(explained(t, ws)[0]["command"], None)


def test_names_and_connections(t):
    """What the gateway refused, and that the policy which explain makes of it lets it pass."""
    world = World(t)
    got, _ = attempts(t, world, "evil.test 443", "db.test 80", f"{WEB} 8080", "8.8.8.8 53 udp",
                      rules=["db.test:5432"])
    ws = json.loads(t.ward("audit", "show", "--all", "--json", "--kind",
                           "run.start").out.splitlines()[0])["workspace"]
    found = {d["what"]: d for d in explained(t, ws)}
    t.equal(found["name evil.test"]["changes"],
            [{"field": "network.egress_allowlist", "value": "evil.test"}])
    t.equal(found["connection to db.test:80"]["changes"][0]["value"], "db.test:80")
    t.equal(found[f"connection to {WEB}:8080"]["changes"][0]["value"], f"{WEB}:8080")
    udp = next(d for what, d in found.items() if "8.8.8.8" in what)
    t.equal(udp["changes"], [])
    t.contains(udp["advice"], "use TCP")


def test_the_last_run_and_wrong_words(t):
    ws = t.workspace()
    r = t.ward("explain", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "remedy:")
    t.ward("run", "--", "true", cwd=ws)
    t.contains(t.ward("explain", cwd=ws).out, "no recorded event was refused")
    run = json.loads(t.ward("audit", "ls", "--json").out)[0]["run"]
    for words, code, part in ((("explain", run, "x"), 2, "not an event number"),
                              (("explain", run, "1"), 125, "is not a denial"),
                              (("explain", run, "99"), 125, "no event 99"),
                              (("explain", "nosuchrun"), 125, "no journal"),
                              (("policy", "remove", "x"), 2, "ward policy add"),
                              (("policy", "add"), 2, "nothing to add"),
                              (("policy", "add", "network.mode"), 2, "missing value"),
                              (("policy", "add", "netwok.mode", "open"), 2, "network.mode"),
                              (("policy", "add", "network.egress_allow", "b.com"), 2,
                               "ward: network.egress_allow: there is"),
                              (("policy", "add", "network.egress_allow", "b.com"), 2,
                               "egress_allowlist"),
                              (("policy", "add", "network.mode", "opn"), 2, "open"),
                              (("policy", "add", "--from-event", f"{run}:1", "--yes"), 125,
                               "is not a denial")):
        r = t.ward(*words, cwd=ws)
        t.equal(r.rc, code, (words, r.err))
        t.contains(r.err, part)
    t.check(not os.path.exists(os.path.join(ws, "ward.yaml")), "it was written all the same")


def test_from_an_event(t):
    ws = t.workspace()
    t.ward("run", "--", "/bin/sh", "-c", "unshare -U true", cwd=ws)
    run = json.loads(t.ward("audit", "ls", "--json").out)[0]["run"]
    event = explained(t, ws)[0]["event"]
    r = t.ward("policy", "add", "--from-event", f"{run}:{event}", "--dry-run", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, "+  nesting: true")
    t.check(not os.path.exists(os.path.join(ws, "ward.yaml")), "a dry run wrote")
    r = json.loads(t.ward("policy", "add", "--from-event", str(event), "--yes", "--json",
                          cwd=ws).out)
    t.equal((r["changed"], r["written"], len(r["widens"])), (True, True, 1))
    t.equal(t.read(ws, "ward.yaml"), "version: 1\nprocess:\n  nesting: true\n")
    r = json.loads(t.ward("policy", "add", "--from-event", str(event), "--yes", "--json",
                          cwd=ws).out)
    t.equal((r["changed"], r["written"]), (False, False))
    shown = t.ward("audit", "show", "--all", "--json", "--kind", "policy.change").out
    t.contains(shown, '"object":"process.nesting: true"')


def test_somebody_is_asked(t):
    ws = t.workspace({"ward.yaml": "version: 1\n"})
    r = t.ward("policy", "add", "process.syscalls", "strict", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "--yes")
    answer = t.ward_tty("policy", "add", "process.syscalls", "strict", cwd=ws, input=b"n\n")
    t.equal(answer.rc, 1)
    t.equal(t.read(ws, "ward.yaml"), "version: 1\n")
    answer = t.ward_tty("policy", "add", "process.syscalls", "strict", cwd=ws, input=b"y\n")
    t.equal(answer.rc, 0)
    t.equal(t.read(ws, "ward.yaml"), "version: 1\nprocess:\n  syscalls: strict\n")


def test_secrets_are_not_widened_by_the_way(t):
    ws = t.workspace({"ward.yaml": "version: 1\n"})
    grant = '{name: api, source: "env:API_KEY", hosts: [api.example.com]}'
    for field, value in (("credentials.grants", grant), ("credentials.mode", "just_in_time"),
                         ("credentials.leaks", "log"), ("process.env", "GH_TOKEN"),
                         ("filesystem.host_mounts", "~/.ssh"),
                         ("filesystem.host_mounts", "{path: /home/x/.aws, mode: read_write}")):
        r = t.ward("policy", "add", field, value, "--yes", cwd=ws)
        t.equal(r.rc, 125, (field, r.out))
        t.contains(r.err, "--secrets")
    t.equal(t.read(ws, "ward.yaml"), "version: 1\n")
    t.equal(t.ward("policy", "add", "credentials.grants", grant, "--yes", "--secrets",
                   cwd=ws).rc, 0)
    t.contains(t.read(ws, "ward.yaml"), "grants:")


def test_the_file_is_replaced_whole_or_not_at_all(t):
    ws = t.workspace({"ward.yaml": "version: 1\n", "real.yaml": "version: 1\n",
                      "bad.yaml": "version: 1\nnetwork: 7\n"})
    os.chmod(os.path.join(ws, "ward.yaml"), 0o640)
    before = os.stat(os.path.join(ws, "ward.yaml"))
    t.equal(t.ward("policy", "add", "network.ingress", "8080", "--yes", cwd=ws).rc, 0)
    after = os.stat(os.path.join(ws, "ward.yaml"))
    t.equal((after.st_mode, after.st_uid, after.st_gid),
            (before.st_mode, before.st_uid, before.st_gid))
    t.equal([f for f in os.listdir(ws) if f.startswith(".ward")], [])
    # what has errors is not edited
    r = t.ward("policy", "add", "-p", "bad.yaml", "network.mode", "open", "--yes", cwd=ws)
    t.equal(r.rc, 2, r.err)
    t.contains(r.err, "bad.yaml:2:")
    t.equal(t.read(ws, "bad.yaml"), "version: 1\nnetwork: 7\n")
    os.rename(os.path.join(ws, "ward.yaml"), os.path.join(ws, "kept"))
    # a link that was only found is not followed; one that was named is
    os.symlink("real.yaml", os.path.join(ws, "ward.yaml"))
    r = t.ward("policy", "add", "network.mode", "open", "--yes", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "is a link")
    t.equal(t.ward("policy", "add", "-p", "ward.yaml", "network.mode", "open", "--yes",
                   cwd=ws).rc, 0)
    t.equal(t.read(ws, "real.yaml"), "version: 1\nnetwork:\n  mode: open\n")
    t.check(os.path.islink(os.path.join(ws, "ward.yaml")), "the link was replaced")
    t.write(ws, {"p.json": '{\n  "version": 1\n}\n'})
    t.equal(t.ward("policy", "add", "-p", "p.json", "network.egress_allowlist", "a.example",
                   "--yes", cwd=ws).rc, 0)
    t.equal(json.loads(t.read(ws, "p.json")),
            {"version": 1, "network": {"egress_allowlist": ["a.example"], "mode": "restricted"}})


def test_no_secret_goes_into_the_journal(t):
    ws = t.workspace()
    proxy = "http://bob:UNMISTAKABLEPW@proxy.example:3128"
    r = t.ward("policy", "add", "network.upstream_proxy", proxy, "--yes", cwd=ws)
    t.equal(r.rc, 125, r.out)
    t.contains(r.err, "--secrets")
    for field, value in (("network.upstream_proxy", proxy),
                         ("process.env", "API_KEY=UNMISTAKABLEONE"),
                         ("process.env", "[TOKEN=UNMISTAKABLETWO]")):
        t.equal(t.ward("policy", "add", field, value, "--yes", "--secrets", cwd=ws).rc, 0, field)
    t.equal(os.stat(os.path.join(ws, "ward.yaml")).st_mode & 0o777, 0o600)
    t.contains(t.read(ws, "ward.yaml"), "UNMISTAKABLETWO")
    told = [json.loads(line)["object"] for line in t.ward("audit", "show", "--all", "--json",
                                                          "--kind",
                                                          "policy.change").out.splitlines()]
    t.equal(told, ["network.upstream_proxy: http://***@proxy.example:3128", "process.env: API_KEY",
                   "process.env: [...]"])
    for directory, _, files in os.walk(os.path.join(t.state_dir, "audit")):
        for name in files:
            with open(os.path.join(directory, name), "rb") as f:
                t.check(b"UNMISTAKABLE" not in f.read(), name)


def test_a_rule_in_a_new_file_opens_the_network(t):
    ws = t.workspace()
    t.equal(t.ward("policy", "add", "network.egress_allowlist", "b.com", "--yes", cwd=ws).rc, 0)
    t.equal(t.read(ws, "ward.yaml"), "version: 1\nnetwork:\n  egress_allowlist:\n    - b.com\n"
            "  mode: restricted\n")
    t.equal(t.ward("policy", "add", "-p", "new.json", "network.egress_allowlist", "b.com", "--yes",
                   cwd=ws).rc, 0)
    t.equal(json.loads(t.read(ws, "new.json")),
            {"version": 1, "network": {"egress_allowlist": ["b.com"], "mode": "restricted"}})
    t.write(ws, {"off.yaml": "network:\n  mode: none\n"})	# what was said stays
    r = t.ward("policy", "add", "-p", "off.yaml", "network.egress_allowlist", "b.com", "--yes",
               cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, "has no effect; to enable it: ward policy add -p off.yaml network.mode "
               "restricted\n")
    t.contains(t.read(ws, "off.yaml"), "mode: none\n")
    t.contains(t.ward("check", "off.yaml", cwd=ws).out,
               "warning: network.mode is none: egress_allowlist has no effect")
    t.check("no effect" not in t.ward("check", cwd=ws).out, "a rule that counts")


def test_a_number_alone_is_an_event_of_the_last_run(t):
    ws = t.workspace({"p.yaml": "resources: {output_limit: 1Ki}\n"})
    t.ward("run", "-p", "p.yaml", "--", "/bin/sh", "-c", "head -c 4000 /dev/zero | tr '\\0' x",
           cwd=ws)
    event = next(d["event"] for d in explained(t, ws) if d["kind"] == "limit.hit")
    for word in (str(event), f"#{event}"):
        found = explained(t, ws, word)
        t.equal([(d["event"], d["kind"]) for d in found], [(event, "limit.hit")])
    t.check(found[0]["why"].startswith("a limit was reached") and "object" not in found[0]["why"],
            found[0]["why"])
    r = t.ward("explain", "99999", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "no event 99999")
    page = t.ward("audit", "report", cwd=ws).out
    t.contains(page, "<pre class=\"fix\">ward run --")
    t.contains(page, "resources.output_limit 2Ki")


def test_a_state_directory_that_cannot_be_looked_at(t):
    ws = t.workspace({"p.yaml": "version: 1\n"})
    loop = os.path.join(t.fresh_dir("loop"), "loop")
    os.symlink("loop", loop)
    for words in (["explain"], ["audit", "ls"], ["audit", "send"], ["check", "--replay", "p.yaml"]):
        r = t.ward(*words, cwd=ws, env={"WARD_STATE_DIR": loop})
        t.equal(r.rc, 125, (words, r.out))
        t.contains(r.err, "Too many levels of symbolic links", str(words))
