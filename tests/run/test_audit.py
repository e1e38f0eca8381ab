"""The journal: what is on record, that nothing inside can forge it, that every change of it is
found, what happens when it cannot be written."""
import json
import os
import re
import shutil

from harness import by_turns, needs
from harness.world import OTHER, WEB, World, attempts


def journal(t, run=None):
    """The events of the only run, or of run."""
    place = os.path.join(t.state_dir, "audit/runs")
    name = f"{run}.jsonl" if run else sorted(os.listdir(place))[-1]
    return [json.loads(line) for line in t.read(place, name).splitlines()]


def kinds(events):
    """In order, without what depends on how long the run took."""
    return [e["kind"] for e in events if e["kind"] != "run.sample"]


def good(t, *words):
    r = t.ward("audit", "verify", *words)
    t.equal(r.rc, 0, r.out + r.err)
    return r.out


def test_a_run_is_on_record(t):
    ws = t.workspace({"a": "x"})
    t.equal(t.ward("run", "--", "/bin/sh", "-c", "exit 7", cwd=ws).rc, 7)
    events = journal(t)
    t.equal(kinds(events), ["run.start", "run.end"])
    t.equal((events[0]["workspace"], events[0]["argv"], events[-1]["exit"]),
            (ws, ["/bin/sh", "-c", "exit 7"], 7))
    t.check("seccomp" in events[0]["layers"], events[0])
    t.equal([e["seq"] for e in events], list(range(1, len(events) + 1)))
    t.contains(good(t), "good: 1 journal")
    shown = t.ward("audit", "show", cwd=ws).out
    t.contains(shown, "run.end")
    t.contains(shown, "exit=7")
    t.equal(len(json.loads(t.ward("audit", "ls", "--json").out)), 1)
    t.equal(kinds([json.loads(s) for s in t.ward("audit", "show", "--json", "--kind", "run.end",
                                                 cwd=ws).out.splitlines()]), ["run.end"])


def test_limits_denials_and_the_quarantine(t):
    ws = t.workspace()
    t.ward("run", "--timeout", "0.2", "--", "/bin/sh", "-c",
           "echo evil > .envrc; unshare -U true; sleep 5", cwd=ws)
    events = journal(t)
    by_kind = {e["kind"]: e for e in events}
    t.equal(by_kind["limit.hit"]["object"], "timeout")
    t.equal(by_kind["limit.hit"]["remedy"], "--timeout")
    t.equal((by_kind["file.quarantine"]["action"],
             os.path.basename(by_kind["file.quarantine"]["object"])), ("deny", ".envrc"))
    t.equal((by_kind["exec.syscall"]["object"], by_kind["exec.syscall"]["action"]),
            ("unshare", "deny"))
    t.contains(by_kind["exec.syscall"]["exe"], "unshare")
    t.equal(by_kind["run.end"]["exit"], 124)
    shown = t.ward("audit", "show", "--action", "deny", cwd=ws).out
    t.check("run.start" not in shown and "file.quarantine" in shown, shown)


def test_a_refused_run_is_on_record(t):
    ws = t.workspace({"ward.yaml": "version: 1\nnetwork:\n  mode: open\n"})
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 125)
    index = t.read(t.state_dir, "audit/index.jsonl") or ""
    t.contains(index, '"kind":"run.refused"')
    t.contains(good(t), "good: 0 journals")


def test_names_forge_nothing(t):
    """What a sandbox names and runs goes into the journal; none of it can make a line or act on a
    terminal."""
    name = 'x\n{"seq":9,"kind":"run.end"}\x1b]0;owned\x07"}\u202e'
    ws = t.workspace()
    r = t.ward("run", "--", "/bin/sh", "-c", 'printf evil > .envrc; exit 3', name, cwd=ws)
    t.equal(r.rc, 3, r.err)
    text = t.read(t.state_dir, "audit/runs", os.listdir(os.path.join(t.state_dir, "audit/runs"))[0])
    events = [json.loads(line) for line in text.splitlines()]
    t.equal(events[0]["argv"][3], name)
    t.equal(kinds(events).count("run.end"), 1)
    t.check("\x1b" not in text and "\u202e" not in text, text)
    shown = t.ward("audit", "show", cwd=ws).out
    t.check("\x1b" not in shown and "\u202e" not in shown, shown)
    good(t)


def flip(lines, key):
    lines[2] = lines[2].replace('"deny"', '"dony"', 1)


def flip_hash(lines, key):
    last = lines[1][-4]
    lines[1] = lines[1][:-4] + ("0" if last != "0" else "1") + lines[1][-3:]


def delete(lines, key):
    del lines[1]


def swap(lines, key):
    lines[1], lines[2] = lines[2], lines[1]


def truncate(lines, key):
    del lines[3:]


def cut_in_a_line(lines, key):
    lines[3] = lines[3][:40]


def forge(lines, key):
    lines.insert(2, lines[2].replace('"seq":3', '"seq":2'))


def append(lines, key):
    lines.append(lines[3].replace('"seq":4', '"seq":5'))


def rewrite(lines, key):
    """A whole chain anew, with every hash right: only the index knows better."""
    import hashlib
    before = bytes(32)
    for i, line in enumerate(lines):
        body = line[:line.rindex(',"hash":"')].replace('"exit":0', '"exit":1')
        before = hashlib.sha256(before + body.encode()).digest()
        lines[i] = f'{body},"hash":"{before.hex()}"}}\n'


CHANGES = [(flip, ":3: event 3 was changed"), (flip_hash, ":2: event 2 was changed"),
           (delete, ":2: expected event 2 here, found event 3: lines were removed"),
           (swap, ":2: expected event 2 here, found event 3"),
           (truncate, "its tail was cut off"), (cut_in_a_line, ":4: the last line is truncated"),
           (forge, ":3: expected event 3 here, found event 2"),
           (append, ":5: event 5 was changed"), (rewrite, "was rewritten")]


def test_every_change_is_found(t):
    ws = t.workspace()
    t.ward("run", "--", "/bin/sh", "-c", "echo > .envrc; echo > .bashrc; true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    good(t)
    directory = os.path.join(t.state_dir, "audit/runs")
    name = os.path.join(directory, os.listdir(directory)[0])
    with open(name, encoding="utf-8", newline="") as f:
        whole = f.readlines()
    t.equal(len(whole), 4)
    for change, message in CHANGES:
        lines = list(whole)
        change(lines, None)
        with open(name, "w", encoding="utf-8", newline="") as f:
            f.writelines(lines)
        for words in ([], [os.path.basename(name)[:-6]]):
            r = t.ward("audit", "verify", *words)
            t.equal(r.rc, 1, change.__name__ + r.out)
            t.contains(r.out, "runs/" + os.path.basename(name), change.__name__)
            t.contains(r.out, message, change.__name__)
        found = json.loads(t.ward("audit", "verify", "--json").out)
        t.equal((found["good"], bool(found["faults"])), (False, True), change.__name__)
    os.unlink(name)
    t.contains(t.ward("audit", "verify").out, "it was removed")
    with open(name, "w", encoding="utf-8", newline="") as f:
        f.writelines(whole)
    good(t)
    shutil.copy(name, os.path.join(directory, "20260101-000000-foreign.jsonl"))
    t.contains(t.ward("audit", "verify").out,
               "20260101-000000-foreign.jsonl: the index does not list this journal")


def test_the_index_and_the_key(t):
    ws = t.workspace()
    audit = os.path.join(t.state_dir, "audit")
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    key = t.ward("audit", "key").out.strip()
    t.check(re.fullmatch("[0-9a-f]{64}", key), key)
    t.equal(os.stat(os.path.join(audit, "key")).st_mode & 0o777, 0o600)
    t.contains(good(t, "--key", key), "signed until")
    t.equal(t.ward("audit", "verify", "--key", "0" * 64).rc, 1)
    index = t.read(audit, "index.jsonl")
    t.write(audit, {"index.jsonl": index.replace('"events":2', '"events":3', 1)})
    r = t.ward("audit", "verify")
    t.equal(r.rc, 1, r.out)
    t.contains(r.out, "index.jsonl:2: event 2 was changed")
    t.write(audit, {"index.jsonl": "".join(index.splitlines(True)[:1])})
    t.equal(t.ward("audit", "verify").rc, 1)
    t.write(audit, {"index.jsonl": index})
    # a signature that was made with the same key over something else
    lines = index.splitlines(True)
    signature = json.loads(lines[2])["signature"]
    t.write(audit,
            {"index.jsonl": index.replace(signature,
                                          signature[:-2]
                                          + ("00" if signature[-2:] != "00" else "11"))})
    t.contains(t.ward("audit", "verify").out, "index.jsonl:3")
    t.write(audit, {"index.jsonl": index})
    # another key signs from here on
    for name in ("key", "key.pub"):
        os.unlink(os.path.join(audit, name))
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    r = t.ward("audit", "verify")
    t.equal(r.rc, 1, r.out)
    t.contains(r.out, "the key was replaced")


def head_of(t):
    return json.loads(t.ward("audit", "verify", "--json").out)["head"]


def forget(*names):
    def act(audit):
        for name in names:
            path = os.path.join(audit, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    act.__name__ = "without " + " ".join(names)
    return act


def empty(*names):
    def act(audit):
        for name in names:
            os.truncate(os.path.join(audit, name), 0)
    act.__name__ = "emptied " + " ".join(names)
    return act


def cut_index(lines, *more):
    """The index loses its last lines, and whatever tells of them in the same directory goes as
    well."""
    def act(audit):
        path = os.path.join(audit, "index.jsonl")
        with open(path, encoding="utf-8") as f:
            kept = f.readlines()[:-lines]
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(kept)
        forget(*more)(audit)
    act.__name__ = f"cut by {lines} {more}"
    return act


def everything(audit):
    for name in os.listdir(audit):
        forget(name)(audit)


def moved(audit):
    os.rename(audit, audit + ".elsewhere")


@by_turns
def test_what_is_gone_is_found(t):
    """A journal, the index, a signature, or all of it: removed, emptied or moved away, before and
    after the next run."""
    ws = t.workspace()
    audit = os.path.join(t.state_dir, "audit")
    first = t.ward("run", "--", "true", cwd=ws, report=True).report["run"]
    last = t.ward("run", "--", "true", cwd=ws, report=True).report["run"]
    t.equal(t.ward("audit", "seal").rc, 0)
    good(t)
    journals = [f"runs/{run}.jsonl" for run in (first, last)]
    cases = [forget(journals[0]), forget(journals[1]), forget(*journals), forget("runs"),
             forget("index.jsonl"), forget("index.jsonl", *journals),
             forget("index.jsonl", "key", "key.pub", "sealed", *journals), forget("sealed"),
             forget("key.pub"), forget("../trusted-head"),
             empty(journals[0]), empty(journals[1]), empty("index.jsonl"),
             empty("index.jsonl", *journals), empty("../trusted-head"),
             cut_index(1), cut_index(1, "sealed"), cut_index(1, "sealed", "key", "key.pub"),
             cut_index(3, "sealed", "key", "key.pub", journals[1]),
             cut_index(1, "key", "key.pub"), everything, moved]
    for act in cases:
        shutil.copytree(t.state_dir, t.state_dir + ".kept", symlinks=True)
        act(audit)
        r = t.ward("audit", "verify")
        t.check(r.rc != 0, f"{act.__name__}: {r.out}{r.err}")
        if act.__name__ not in ("without sealed", "without key.pub", "without ../trusted-head",
                                "emptied ../trusted-head"):
            # what tells of it stays when ward goes on writing
            t.equal(t.ward("run", "--", "true", cwd=ws).rc, 0, act.__name__)
            r = t.ward("audit", "verify")
            t.equal(r.rc, 1, f"{act.__name__}, after the next run: {r.out}{r.err}")
        shutil.rmtree(t.state_dir)
        os.rename(t.state_dir + ".kept", t.state_dir)
        good(t)


def test_an_entry_that_was_noted_elsewhere(t):
    """--head finds what this user can hide: a history that was cut everywhere at once, or begun
    anew and signed with the same key."""
    ws = t.workspace()
    audit = os.path.join(t.state_dir, "audit")
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    key, early = t.ward("audit", "key").out.strip(), head_of(t)
    t.contains(good(t), f"head {early}")
    t.ward("run", "--", "true", cwd=ws)
    late = head_of(t)
    for head in (early, late):
        good(t, "--head", head)
    for head in ("1:" + early.split(":")[1], "99:" + "0" * 64):
        t.equal(t.ward("audit", "verify", "--head", head).rc, 1, head)
    for head in ("", "x", "1", "1:", ":" + "0" * 64, "0:" + "0" * 64, "1:" + "0" * 63,
                 "1:" + "0" * 64 + "0", "-1:" + "0" * 64):
        t.equal(t.ward("audit", "verify", "--head", head).rc, 2, head)
    # all that this user can do: a new history, with the old key and a mark of its own
    for name in ("index.jsonl", "runs", "sealed", "../trusted-head"):
        forget(name)(audit)
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    t.contains(good(t, "--key", key), "does not prove who held the key")
    r = t.ward("audit", "verify", "--head", late)
    t.equal(r.rc, 1, r.out)
    t.contains(r.out, "a different history")


def test_what_the_key_proves(t):
    ws = t.workspace()
    t.ward("run", "--", "true", cwd=ws)
    r = t.ward("audit", "verify", "--key", "0" * 64)
    t.equal(r.rc, 125, r.out)
    t.contains(r.err, "nothing is signed")
    t.equal(t.ward("audit", "seal").rc, 0)
    key = t.ward("audit", "key").out.strip()
    t.ward("run", "--", "true", cwd=ws)
    text = good(t, "--key", key)
    t.contains(text, "were signed with that key")
    t.contains(text, "nor anything about the 2 entries since")
    found = json.loads(t.ward("audit", "verify", "--json", "--key", key).out)
    t.equal((found["key_named"], found["unsigned"]), (True, 2))
    t.check("--key proves" not in good(t), "nothing was named")


def test_key_that_others_can_read(t):
    t.ward("run", "--", "true", cwd=t.workspace())
    t.equal(t.ward("audit", "seal").rc, 0)
    os.chmod(os.path.join(t.state_dir, "audit/key"), 0o644)
    r = t.ward("audit", "seal")
    t.equal(r.rc, 125)
    t.contains(r.err, "readable by others")


def test_signed_by_itself_now_and_then(t):
    ws = t.workspace()
    audit = os.path.join(t.state_dir, "audit")
    t.ward("run", "--", "true", cwd=ws)
    t.check(not os.path.exists(os.path.join(audit, "key")), "a run alone is not worth a signature")
    t.equal(t.ward("audit", "seal").rc, 0)
    os.utime(os.path.join(audit, "sealed"), (1, 1))
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.read(audit, "index.jsonl").count("journal.checkpoint"), 2)
    good(t)


def test_no_place_for_the_journal(t):
    """Stop: nothing is started. Continue: it runs, and the report says what is missing."""
    ws = t.workspace()
    t.write(t.state_dir, {"audit": "in the way"})
    t.defer(os.unlink, os.path.join(t.state_dir, "audit"))
    r = t.ward("run", "--", "/bin/echo", "STARTED-ANYWAY", cwd=ws)
    t.equal((r.rc, "STARTED-ANYWAY" in r.out), (125, False), r.err)
    t.contains(r.err, "audit.on_full=continue")
    r = t.ward("run", "--verbose", "--set", "audit.on_full=continue", "--", "/bin/echo",
               "STARTED-ANYWAY", cwd=ws)
    t.equal((r.rc, "STARTED-ANYWAY" in r.out), (0, True), r.err)
    t.contains(r.err, "events are missing in the journal")


def test_journal_removed_while_it_runs(t):
    ws = t.workspace()
    for how, code in (("stop", 125), ("continue", 0)):
        process = t.ward_start("run", "--verbose", "--set", f"audit.on_full={how}", "--", "/bin/sh",
                               "-c", "touch up; while [ ! -e go ]; do sleep 0.05; done; unshare -U "
                               "true; sleep 1",
                               cwd=ws)
        t.wait_until(lambda: os.path.exists(os.path.join(ws, "up")), 10)
        shutil.rmtree(os.path.join(t.state_dir, "audit/live"))
        t.write(ws, {"go": ""})
        r = t.finish_ward(process)
        t.equal(r.rc, code, how + r.err)
        t.contains(r.err, "cannot write the journal" if how == "stop"
                   else "events are missing in the journal")
        for name in ("up", "go"):
            os.unlink(os.path.join(ws, name))


def test_no_journal(t):
    ws = t.workspace()
    t.equal(t.ward("run", "--set", "audit.journal=none", "--", "true", cwd=ws).rc, 0)
    t.check(not os.path.exists(os.path.join(t.state_dir, "audit")), "something was put on record")
    r = t.ward("audit", "ls")
    t.equal(r.rc, 125)
    t.contains(r.err, "there is no journal yet")
    t.write(ws, {"ward.yaml": "version: 1\naudit: {journal: none}\n"})
    # a workspace cannot switch it off by itself
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 125)


def test_killed_supervisor(t):
    ws = t.workspace()
    process = t.ward_start("run", "--", "/bin/sh", "-c", "sleep 0.3; touch up; sleep 60", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "up")), 10)
    process.kill()
    t.finish_ward(process)
    t.wait_until(lambda: not os.listdir(os.path.join(t.state_dir, "audit/live")), 10,
                 "nobody ended the journal")
    events = journal(t)
    t.equal((events[0]["kind"], events[-1]["kind"]), ("run.start", "journal.recover"))
    good(t)


def test_follow(t):
    ws = t.workspace()
    process = t.ward_start("run", "--", "/bin/sh", "-c",
                           "touch up; while [ ! -e go ]; do sleep 0.05; done; exit 9", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "up")), 10)
    t.contains(good(t), "still being written")
    follower = t.ward_start("audit", "show", "-f", "--json", cwd=ws)
    t.contains(follower.stdout.readline().decode(), "run.start")
    t.write(ws, {"go": ""})
    t.finish_ward(process)
    t.contains(t.finish_ward(follower).out, '"exit":9')


def test_prune(t):
    ws = t.workspace()
    for _ in range(4):
        t.ward("run", "--", "true", cwd=ws)
    count = lambda: len(os.listdir(os.path.join(t.state_dir, "audit/runs")))
    t.contains(t.ward("audit", "prune", "--keep", "1", "--dry-run").out, "would remove")
    t.equal(count(), 4)
    t.equal(t.ward("audit", "prune").rc, 2)
    for older in ("5", "0.5"):	# of what?
        r = t.ward("audit", "prune", "--older", older)
        t.equal(r.rc, 2, r.out)
        t.contains(r.err, f"--older {older}d")
    t.equal(count(), 4)
    t.equal(t.ward("audit", "prune", "--older", "1h").out, "")
    t.equal(json.loads(t.ward("audit", "prune", "--keep", "3", "--json").out), {"removed": 1})
    t.equal(count(), 3)
    good(t)
    t.equal(t.ward("audit", "prune", "--max-size", "1k", "--always").rc, 0)
    t.ward("run", "--", "true", cwd=ws)
    t.ward("run", "--", "true", cwd=ws)
    t.equal(t.ward("audit", "seal").rc, 0)
    t.equal(count(), 1)
    good(t)


def test_usage(t):
    ws = t.workspace()
    t.ward("run", "--", "true", cwd=ws)
    for words in ([], ["foo"], ["ls", "x"], ["show", "--kind", "nett"],
                  ["show", "--since", "yesterday"], ["show", "--action", "denied"],
                  ["verify", "--key", "x"]):
        r = t.ward("audit", *words, cwd=ws)
        t.equal(r.rc, 2, str(words) + r.out)
        t.contains(r.err, "remedy:")
    t.equal(t.ward("audit", "show", "nosuchrun", cwd=ws).rc, 125)
    t.contains(t.ward("audit", "--help").out, "ward audit show --action deny")


def test_network(t):
    """Every name, connection and refusal, with the rule that decided; the ends with their bytes."""
    world = World(t)
    got, report = attempts(t, world, "db.test 5432", f"{OTHER} 7", "evil.test 443", f"{WEB} 443",
                           "8.8.8.8 53 udp")
    t.equal((got["db.test 5432"], got["evil.test 443"]), ("got hello", "EAI_NONAME"))
    events = [e for e in journal(t) if e["kind"].startswith("net.")]
    opened = [e for e in events if (e["kind"], e["action"]) == ("net.connect", "allow")]
    closed = {e["flow"]: e for e in events if e["kind"] == "net.close"}
    t.equal(sorted(e["object"] for e in opened), sorted(["db.test:5432", f"{OTHER}:7"]))
    t.equal(sorted(closed), sorted(e["flow"] for e in opened))
    first = next(e for e in opened if e["host"] == "db.test")
    t.equal((first["rule"], first["mode"], first["protocol"], first["how"]),
            ("db.test:5432", "tcp", "tcp", "transparent"))
    t.check(first["address"] and first["generation"] >= 0, first)
    t.equal(sum(e["bytes_in"] for e in closed.values()), report["network"]["bytes_in"])
    t.equal(sum(e["bytes_out"] for e in closed.values()), report["network"]["bytes_out"])
    t.check(any((e["kind"], e["action"], e["host"]) == ("net.dns", "allow", "db.test")
                for e in events), events)
    denied = {e["object"]: e for e in events if e["action"] == "deny"}
    t.equal((denied["evil.test"]["kind"], denied["evil.test"]["reason"]), ("net.dns", "not_listed"))
    t.equal(denied["evil.test"]["remedy"], 'network.egress_allowlist: ["evil.test"]')
    t.equal(denied[f"{WEB}:443"]["kind"], "net.connect")
    t.equal((denied["8.8.8.8:53"]["kind"], denied["8.8.8.8:53"]["protocol"]), ("net.packet", "udp"))
    shown = t.ward("audit", "show", "--all", "--json", "--host", "*.test", "--kind", "net").out
    t.check("db.test" in shown and "8.8.8.8" not in shown, shown)
    good(t)


EXEC = ("run", "--set", "audit.level=exec", "--")


def test_exec_level(t):
    """Every program that is started, with its words, parent and directory; a shell's own words are
    not programs, and what is not there was not started."""
    ws = t.workspace()
    r = t.ward(*EXEC, "/bin/sh", "-c",
               "/bin/echo 'UNMISTAKABLE WORD' two; cd /tmp; /bin/true; /nowhere/at-all", cwd=ws)
    t.equal(r.rc, 127, r.err)
    events = [e for e in journal(t) if e["kind"] == "exec.start"]
    t.equal([e["object"] for e in events[1:]], ["/bin/echo", "/bin/true"])
    t.check("/tmp" not in r.err, f"it is there inside: {r.err}")
    t.equal((events[0]["object"], events[0]["argv"][:2]), ("/bin/sh", ["/bin/sh", "-c"]))
    t.equal(events[1]["argv"], ["/bin/echo", "UNMISTAKABLE WORD", "two"])
    t.equal((events[1]["ppid"], events[1]["observed"], events[1]["cwd"]),
            (events[0]["pid"], True, ws))
    t.equal(events[2]["cwd"], "/tmp")
    t.check(os.path.basename(events[1]["exe"]) in ("sh", "dash", "bash"), events[1])
    good(t)


def test_exec_level_by_name(t):
    """The command of the run is one event with its place and words, whoever runs ward; places of
    PATH where it is not are none."""
    ws = t.workspace({"own": "#!/bin/sh\n"})
    os.chmod(os.path.join(ws, "own"), 0o755)
    for command, found, rc in (["true", "a  b"], "/usr/bin/true",
                               0), (["./own", "x"], "./own", 0), (["no-such-program"], None,
                                                                  127), (["/no/such"], None, 127):
        r = t.ward(*EXEC, *command, cwd=ws, report=True)
        t.equal(r.rc, rc, r.err)
        events = [e for e in journal(t, r.report["run"]) if e["kind"] == "exec.start"
                  and e["action"] == "log"]
        t.equal([(e["object"], e["argv"], e["ppid"]) for e in events], [(found, command, 1)]
                if found else [], command)


def test_exec_level_later_commands(t):
    """So is each command of ward exec."""
    ws = t.workspace()
    r = t.ward("run", "-d", "--name", "later", "--set", "audit.level=exec", cwd=ws)
    t.equal(r.rc, 0, r.err)
    commands = [["echo", "one", "two three"], ["no-such-program"], ["/bin/echo", "four"]]
    for command in commands:
        t.ward("exec", "later", *command, cwd=ws)
    t.equal(t.ward("stop", "later", cwd=ws).rc, 0)
    events = [e for e in journal(t) if e["kind"] == "exec.start" and e["action"] == "log"]
    t.equal([(e.get("object"), e.get("argv")) for e in events],
            [("/usr/bin/echo", commands[0]), ("/bin/echo", commands[2])])
    t.ward("rm", "later", cwd=ws)


def test_basic_level_watches_no_program(t):
    t.ward("run", "--", "/bin/sh", "-c", "/bin/true; true", cwd=t.workspace())
    t.equal(kinds(journal(t)), ["run.start", "run.end"])


HOSTILE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char *many[301] = { 0 }, *big = malloc(100001),
	     *end = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *none[] = { NULL };
	memset(big, 'B', 100000); big[100000] = 0;
	munmap(end + 4096, 4096);
	memcpy(end + 4086, "/bin/true", 10);	/* its NUL is the last byte before nothing */
	for (int i = 0; i < 300; i++) many[i] = i == 1 ? big : (char *)"x";
	if (execve((char *)1, none, none) != -1 || errno != EFAULT) return 1;
	if (execve("/bin/true", (char **)8, none) != -1 || errno != EFAULT) return 2;
	if (execve(end + 4090, none, none) != -1) return 3;
	if (vfork() == 0) { execve(end + 4086, many, none); _exit(9); }
	int status; wait(&status); if (status) return 5;
	if (argc == 1) {
		char *words[] = { argv[0], (char *)"by-descriptor", NULL };
		syscall(322, open(argv[0], O_PATH), "", words, none,
			0x1000); /* execveat, AT_EMPTY_PATH */
		return 6;
	}
	execl("/bin/echo", "echo", "DONE-AT-LAST", NULL);
	return 7;
}
"""


def test_exec_level_hostile(t):
    """Bad pointers, words without end, a program by its descriptor: the callers get what they would
    get anyway, and the journal stays whole."""
    ws = t.workspace()
    shutil.copy(t.compile(HOSTILE), os.path.join(ws, "hostile"))
    os.chmod(os.path.join(ws, "hostile"), 0o755)
    r = t.ward(*EXEC, "./hostile", cwd=ws, timeout=60)
    t.equal((r.rc, r.out), (0, "DONE-AT-LAST\n"), r.err)
    events = [e for e in journal(t) if e["kind"] == "exec.start"]
    t.equal([e["object"] for e in events if "BBBB" in "".join(e.get("argv", []))],
            ["/bin/true"] * 2)
    t.check(all(e.get("cut") for e in events if "BBBB" in "".join(e.get("argv", []))), events)
    t.check(any(e.get("argv") == ["./hostile", "by-descriptor"] for e in events), events)
    t.equal(events[-1]["argv"], ["echo", "DONE-AT-LAST"])
    good(t)


def test_exec_level_first_of_its_own(t):
    """The first process of a pid namespace made inside is called 1 there, as ward-init is in the
    sandbox's: it is on record all the same."""
    ws = t.workspace()
    script = ("unshare -Urpf /bin/echo FIRST-OF-ITS-OWN; unshare -Urpf /bin/sh -c 'exec /bin/echo "
              "AND-ITS-SUCCESSOR'")
    r = t.ward("run", "--set", "audit.level=exec", "--set", "process.nesting=true", "--", "/bin/sh",
               "-c", script, cwd=ws)
    t.equal((r.rc, r.out), (0, "FIRST-OF-ITS-OWN\nAND-ITS-SUCCESSOR\n"), r.err)
    events = [e for e in journal(t) if e["kind"] == "exec.start"]
    words = [e.get("argv", [None])[-1] for e in events if e.get("object") == "/bin/echo"]
    t.equal(words, ["FIRST-OF-ITS-OWN", "AND-ITS-SUCCESSOR"], f"{events}")
    t.check(all(e["pid"] > 1 for e in events), f"numbers as the sandbox knows them: {events}")
    good(t)


def test_exec_level_storm(t):
    """What is too much to look at is counted, and nothing is missing without a count."""
    ws = t.workspace()
    source = r"""
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	char *none[] = { 0 };
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 500; k++)
				if (execve("/etc/passwd", none, none) == 0) return 1;
			_exit(0);
		}
	while (wait(0) > 0);
	return 0;
}
"""
    shutil.copy(t.compile(source), os.path.join(ws, "storm"))
    os.chmod(os.path.join(ws, "storm"), 0o755)
    r = t.ward(*EXEC, "./storm", cwd=ws, timeout=60)
    t.equal(r.rc, 0, r.err)
    events = [e for e in journal(t) if e["kind"] == "exec.start"]
    t.equal(sum(e.get("count", 1) for e in events if e.get("object") not in (None, "./storm")),
            2000)
    good(t)


@needs("plain")
def test_exec_level_needs_a_listener(t):
    """Inside another ward nobody can watch: refused, never silently less."""
    ws = t.workspace()
    inner = ("env WARD_STATE_DIR=/tmp/s WARD_RUNTIME_DIR=/tmp/r /opt/ward run --set audit.level=%s "
             "-- /bin/true")
    outer = ["run", "--set", "process.nesting=true", "--ro", f"{t.ward_path}:/opt/ward", "--",
             "/bin/sh", "-c"]
    r = t.ward(*outer, inner % "basic", cwd=ws)
    t.equal(r.rc, 0, r.err)
    r = t.ward(*outer, inner % "exec", cwd=ws)
    t.equal(r.rc, 125, r.err)
    t.contains(r.err, "seccomp")


def test_what_others_asked_for(t):
    """A detached sandbox: who asked it for what."""
    ws = t.workspace()
    box = t.ward("run", "-d", "--", "/bin/sleep", "60", cwd=ws).out.strip()
    t.equal(t.ward("exec", box, "/bin/echo", "UNMISTAKABLE").out, "UNMISTAKABLE\n")
    for verb in ("pause", "resume", "stop"):
        r = t.ward(verb, *(["--timeout", "1"] if verb == "stop" else []), box)
        t.equal(r.rc, 0, r.err)
    t.ward("rm", box)
    calls = [e for e in journal(t) if e["kind"] == "api.call"]
    t.equal([e["object"] for e in calls], ["exec", "pause", "resume", "stop"])
    t.equal((calls[0]["argv"], calls[0]["uid"], calls[0]["via"]),
            (["/bin/echo", "UNMISTAKABLE"], t.person.pw_uid, "control"))
    good(t)


def test_what_the_user_did_afterwards(t):
    """Reviews that are applied or dropped, things that come back from the quarantine, files that
    are trusted: in the user's own chain."""
    ws = t.workspace({"ward.yaml": "version: 1\nresources: {memory_limit: none}\n"})
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
    t.equal(t.ward("run", "--review", "--", "/bin/sh", "-c", "echo a > a; echo b > b",
                   cwd=ws).rc, 0)
    t.equal(t.ward("apply", "a", cwd=ws).rc, 0)
    t.equal(t.ward("discard", cwd=ws).rc, 0)
    t.equal(t.ward("run", "--", "/bin/sh", "-c", "echo > .envrc", cwd=ws).rc, 0)
    t.equal(t.ward("quarantine", "restore", cwd=ws).rc, 0)
    index = [json.loads(line) for line in t.read(t.state_dir, "audit/index.jsonl").splitlines()]
    by_kind = {e["kind"]: e for e in index}
    t.equal((by_kind["policy.trust"]["object"], len(by_kind["policy.trust"]["digest"])),
            (os.path.join(ws, "ward.yaml"), 64))
    t.equal((by_kind["file.apply"]["object"], by_kind["file.apply"]["applied"]), (ws, 1))
    t.equal((by_kind["file.discard"]["count"], by_kind["file.restore"]["object"]), (1, ".envrc"))
    shown = t.ward("audit", "show", by_kind["file.apply"]["run"], cwd=ws).out
    t.check("file.apply" in shown and "file.restore" not in shown, shown)
    good(t)
