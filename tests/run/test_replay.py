"""ward check --replay: past runs against a new policy: what would be lost, what would be gained, by
journals that are verified first."""
import hashlib
import json
import os
import shutil

from harness.world import World, attempts


def replay(t, policy, *journals, cwd=None, rc=None):
    journals = journals or ("--all",)
    r = t.ward("check", "--replay", "--json", *journals, policy, cwd=cwd)
    if rc is not None:
        t.equal(r.rc, rc, r.err or r.out)
    return json.loads(r.out)


def whats(found):
    return sorted({f["what"] for f in found})


def runs(t):
    """The oldest first."""
    return [j["run"] for j in sorted(json.loads(t.ward("audit", "ls", "--json").out),
                                     key=lambda j: j["began"])]


def policy_file(t, **groups):
    d = t.fresh_dir("policy")
    t.write(d, {"new.json": json.dumps({"version": 1, **groups})})
    return os.path.join(d, "new.json")


def test_names_and_connections(t):
    world = World(t)
    rules = ["web.test", "db.test:5432", {"host": "private.test", "ports": [5432], "private": True}]
    attempts(t, world, "web.test 443", "db.test 5432", "private.test 5432", "evil.test 443",
             rules=rules)
    same = policy_file(t, network={"mode": "restricted", "egress_allowlist": rules})
    found = replay(t, same, rc=0)
    t.equal((found["lost"], found["gained"], found["runs"]), ([], [], 1))
    other = policy_file(t,
                        network={"mode": "restricted",
                                 "egress_allowlist": ["web.test", "private.test:5432",
                                                      "*.test:443"]})
    found = replay(t, other, rc=1)
    t.equal(whats(found["lost"]), ["connection to db.test:5432", "connection to private.test:5432"])
    t.contains(next(f["why"] for f in found["lost"] if "private" in f["what"]), "private")
    t.equal(whats(found["gained"]), ["name evil.test"])
    text = t.ward("check", "--replay", "--all", other)
    t.equal(text.rc, 1)
    for part in ("would be refused:\n  connection to ", "would be newly allowed:\n  name evil.test",
                 " lost, "):
        t.contains(text.out, part)
    found = replay(t, policy_file(t, network={"mode": "none"}), rc=1)
    t.contains(whats(found["lost"]), "name web.test")


def test_limits_calls_and_programs(t):
    ws = t.workspace({"tool.sh": "#!/bin/sh\nexit 0\n"})
    os.chmod(os.path.join(ws, "tool.sh"), 0o755)
    other = t.fresh_dir("other")
    t.write(other, {"prog": "#!/bin/sh\nexit 0\n"})
    os.chmod(os.path.join(other, "prog"), 0o755)
    r = t.ward("run", "--ro", other, "--set", "audit.level=exec", "--", "/bin/sh", "-c",
               f"./tool.sh; {other}/prog; unshare -U true; echo x > .envrc; sleep 0.3", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("run", "--timeout", "0.1", "--", "sleep", "5", cwd=ws).rc, 124)
    first, second = runs(t)
    found = replay(t, policy_file(t, filesystem={"host_mounts": [other]}), first, second, rc=0)
    t.equal(whats(found["gained"]), ["limit on timeout"])
    found = replay(t,
                   policy_file(t, process={"nesting": True},
                               filesystem={"protect": ["!.envrc"], "hide": ["tool.sh"]},
                               resources={"timeout_seconds": "0.2", "memory_limit": "4Mi"}), first,
                   rc=1)
    t.equal({f["what"]: f["why"] for f in found["lost"] if f["kind"] == "exec.start"},
            {"program ./tool.sh": "it is hidden"})
    # /tmp is private there: a program of the run's own could be at that path
    t.equal(whats(found["unsure"]), [f"program {other}/prog"])
    end = next(f for f in found["lost"] if f["kind"] == "run.end")
    t.contains(end["why"], "milliseconds")
    t.equal(whats(found["gained"]), ["leaving .envrc", "system call unshare by /usr/bin/unshare"])


def journal_file(t, workspace, *events):
    """A journal as ward writes it, of events that a run may have had."""
    before, lines = bytes(32), []
    for i, event in enumerate([{"kind": "run.start", "action": "allow", "object": "x",
                                "workspace": workspace}, *events]):
        body = json.dumps({"seq": i + 1, "time": "2026-11-15T15:04:55.123456Z",
                           "run": "20261115-150455-aaaaaa", **event}, separators=(",", ":"))[:-1]
        before = hashlib.sha256(before + body.encode()).digest()
        lines.append(f'{body},"hash":"{before.hex()}"}}\n')
    d = t.fresh_dir("journal")
    t.write(d, {"j.jsonl": "".join(lines)})
    return os.path.join(d, "j.jsonl")


def test_files_requests_and_secrets(t):
    ws = t.workspace({"a": "1\n"})
    change = {"kind": "file.change", "action": "log"}
    request = {"kind": "net.http", "action": "allow"}
    grant = {"kind": "credential.use", "action": "allow", "object": "api"}
    journal = journal_file(t, ws, {**change, "object": f"{ws}/a", "change": "update"},
                           {**change, "object": f"{ws}/out/b", "change": "create"},
                           {**change, "object": "/tmp/c", "change": "create"},
                           {**change, "object": f"{ws}/x", "change": "rename", "to": f"{ws}/y"},
                           {**request, "object": "GET https://a.test/v1/x", "host": "a.test",
                            "port": 443, "method": "GET", "url": "https://a.test/v1/x"},
                           {**request, "object": "POST https://a.test/v1/x", "host": "a.test",
                            "port": 443, "method": "POST", "url": "https://a.test/v1/x"},
                           {**grant, "host": "a.test", "grant": "api"})
    rule = {"host": "a.test", "mode": "inspect"}
    grants = [{"name": "api", "source": "env:API_KEY", "hosts": ["a.test"]}]
    network = {"mode": "restricted", "egress_allowlist": [rule]}
    secrets = {"mode": "just_in_time", "grants": grants}
    t.equal(replay(t, policy_file(t, network=network, credentials=secrets), journal, rc=0)["lost"],
            [])
    for changed, lost in ((dict(filesystem={"protect": ["out/b"]}),
                           {f"writing {ws}/out/b": "it is protected"}),
                          (dict(filesystem={"hide": ["a"]}), {f"writing {ws}/a": "it is hidden"}),
                          (dict(filesystem={"mode": "read_only"}),
                           {f"writing {ws}/{name}": "it is read-only"
                            for name in ("a", "out/b", "x")}),
                          (dict(filesystem={"protect": ["y"]}),
                           {f"writing {ws}/x": "it is protected"}),
                          (dict(network={**network,
                                         "egress_allowlist": [{**rule, "methods": ["GET"]}]}),
                           {"POST https://a.test/v1/x": "the rule does not allow this method"}),
                          (dict(network={**network,
                                         "egress_allowlist": [{**rule, "paths": ["/v2/*"]}]}),
                           dict.fromkeys([f"{m} https://a.test/v1/x" for m in ("GET", "POST")],
                                         "the rule does not allow this path")),
                          (dict(credentials={**secrets,
                                             "grants": [{**grants[0], "hosts": ["b.test"]}]}),
                           {"use of grant api to a.test": "the grant is not for this host"}),
                          (dict(credentials={"mode": "none"}),
                           {"use of grant api to a.test": "there is no such grant"})):
        found = replay(t, policy_file(t, **{"network": network, "credentials": secrets, **changed}),
                       journal, rc=1)
        t.equal({f["what"]: f["why"] for f in found["lost"]}, lost, changed)
    found = replay(t,
                   policy_file(t,
                               network={**network,
                                        "egress_allowlist": [{**rule, "headers": ["X-A: b"]}]},
                               credentials=secrets), journal, rc=0)
    t.equal(len(found["unsure"]), 2)	# headers are not on record
    url = "https://a.test/v1/" + "p" * 300 + "..."
    journal = journal_file(t, ws, {**request, "object": f"GET {url}", "host": "a.test", "port": 443,
                                   "method": "GET", "url": url, "cut": True})
    # of a long path the end is not on record
    for paths, unsure in ((["/v1/*/end"], 1), (["/v1/*"], 0)):
        found = replay(t,
                       policy_file(t,
                                   network={**network,
                                            "egress_allowlist": [{**rule, "paths": paths}]}),
                       journal, rc=0)
        t.equal((len(found["lost"]), len(found["unsure"])), (0, unsure), paths)


def test_journals_are_verified_first(t):
    ws = t.workspace()
    t.ward("run", "--", "/bin/sh", "-c", "unshare -U true", cwd=ws)
    run = runs(t)[0]
    new = policy_file(t, process={"nesting": True})
    journal = os.path.join(t.state_dir, "audit/runs", f"{run}.jsonl")
    copy = os.path.join(t.fresh_dir("elsewhere"), "j.jsonl")
    shutil.copy(journal, copy)
    for word in (run, run[-6:], copy):
        t.equal(len(replay(t, new, word, rc=0)["gained"]), 1, word)
    for path in (journal, copy):
        text = t.read(path)
        with open(path, "w") as f:
            f.write(text.replace("unshare", "unshore"))
    for word in (run, copy):
        r = t.ward("check", "--replay", word, new)
        t.equal(r.rc, 125, r.out)
        t.contains(r.err, "was changed")


def test_without_the_workspace(t):
    """As in CI: the journal is here, the workspace is not; what can be judged is, the rest is
    said."""
    ws = t.workspace()
    t.ward("run", "--", "/bin/sh", "-c", "unshare -U true", cwd=ws)
    shutil.rmtree(ws)
    found = replay(t, policy_file(t, process={"nesting": True}), rc=0)
    t.equal(len(found["gained"]), 1)
    t.contains(found["notes"][0], "are not judged")


def test_wrong_words(t):
    ws = t.workspace({"bad.yaml": "version: 9\n", "good.yaml": "version: 1\n"})
    r = t.ward("check", "--replay", "bad.yaml", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "bad.yaml:1:")
    r = t.ward("check", "--replay", "nosuchrun", "good.yaml", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "nosuchrun")
    t.equal(t.ward("check", "--replay", "--nothing", "good.yaml", cwd=ws).rc, 2)
    t.equal(t.ward("check", "good.yaml", "bad.yaml", cwd=ws).rc, 2)
    t.contains(t.ward("check", "--replay", "--help").out, "--replay")
