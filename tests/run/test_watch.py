"""Watch rules: what a sandbox does is counted, and what is too much is an alert, a question, a
sandbox that stands still, or its end."""
import json
import os
import signal
import time

from harness import by_turns, timeout
from harness.boxes import box, listed
from harness.world import World

STORM = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done; echo end"
DENIED = "for i in 1 2 3 4 5 6; do unshare -U true 2>/dev/null; done; sleep 0.3; echo end"
TICK = (DENIED[:-len("sleep 0.3; echo end")] +
        "i=0; while :; do i=$((i+1)); echo $i > tick; sleep 0.02; done")
TALK = r"""
import os, socket, sys, time
def to(name):
    with socket.create_connection((name, 5432), 20) as s:
        s.sendall(b"hello")
        return s.recv(5).decode()
for step in sys.argv[1:]:
    if step.startswith("read="):
        open(step[5:]).read()
        print("read", flush=True)
    elif step.startswith("go="):
        while not os.path.exists(step[3:]):
            time.sleep(0.02)
    elif step.startswith("wait="):
        time.sleep(float(step[5:]))
    else:
        print(step, to(step), flush=True)
"""


def rules(t, *watch, labels=(), **groups):
    """The path of a policy with these watch rules."""
    d = t.fresh_dir("policy")
    t.write(d, {"ward.json": json.dumps(
        {"version": 1, "watch": {"rules": list(watch), "labels": list(labels)}, **groups})})
    return os.path.join(d, "ward.json")


def events(t, run=None, cwd=None, kind="watch.alert"):
    r = t.ward("audit", "show", *([run] if run else []), "--json", cwd=cwd)
    t.equal(r.rc, 0, r.err)
    return [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == kind]


def the_alert(t, run=None, cwd=None):
    found = events(t, run, cwd)
    t.equal(len(found), 1, f"alerts: {found}")
    return found[0]


def stands_still(t, ws):
    """The sandbox, which writes all the time, does not."""
    before = t.read(ws, "tick")
    time.sleep(0.5)
    t.equal(t.read(ws, "tick"), before, "it goes on")


def test_kill(t):
    """A storm of programs ends the run; the alert names the rule, the process, its parents and what
    the rule saw."""
    ws = t.workspace()
    file = rules(t, {"name": "storm", "count": "execs", "above": 20, "within_seconds": 60,
                     "do": "kill"})
    r = t.ward("run", "-p", file, "--", "sh", "-c", STORM, cwd=ws)
    t.equal((r.rc, "end" in r.out), (137, False), f"it was killed ({r.err})")
    t.contains(r.err, "the watch rule storm ended the run: execs: 21 within 60 s, more than 20")
    alert = the_alert(t, cwd=ws)
    t.equal((alert["object"], alert["rule"], alert["change"], alert["action"], alert["value"]),
            ("storm", "execs", "kill", "deny", 21), "the alert")
    t.check(alert["cause"] and set(alert["cause"]) == {"exec.start log /bin/true"},
            f"what it saw: {alert['cause']}")
    t.check("/sh (" in alert["chain"][-1] or "/dash (" in alert["chain"][-1],
            f"the process and its parents: {alert['chain']}")
    t.equal(events(t, cwd=ws, kind="run.end")[0]["action"], "deny", "the end of the run")
    r = t.ward("explain", cwd=ws)
    t.contains(r.out, "storm")
    t.contains(r.out, "a false alarm is")


def test_below(t):
    """What stays at the threshold raises nothing, and a rule that logs lets the run go on."""
    ws = t.workspace()
    rule = {"name": "storm", "count": "execs", "above": 20, "within_seconds": 60}
    r = t.ward("run", "-p", rules(t, {**rule, "above": 200, "do": "kill"}), "--", "sh", "-c", STORM,
               cwd=ws)
    t.equal((r.rc, r.out), (0, "end\n"), "it goes on")
    t.equal(events(t, cwd=ws), [], "no alert")
    r = t.ward("run", "-p", rules(t, rule), "--", "sh", "-c", STORM, cwd=ws)
    t.equal((r.rc, r.out), (0, "end\n"), "it goes on")
    t.equal([(a["change"], a["action"]) for a in events(t, cwd=ws)][:1], [("log", "log")], "alert")
    except_true = {**rule, "except": ["program:/bin/true"], "do": "kill"}
    r = t.ward("run", "-p", rules(t, except_true), "--", "sh", "-c", STORM, cwd=ws)
    t.equal((r.rc, events(t, cwd=ws)), (0, []), "what is excepted is not counted")


def test_freeze_detached(t):
    """A sandbox that is frozen stands still until its operator says otherwise."""
    ws = t.workspace()
    file = rules(t, {"name": "denied", "count": "denials", "above": 3, "do": "freeze"})
    one = box(t, "-p", file, "--", "sh", "-c", TICK, cwd=ws)
    t.wait_until(lambda: listed(t)[one]["state"] == "paused", 20, "it is not frozen")
    alert = the_alert(t, one)
    t.equal((alert["change"], alert["rule"]), ("freeze", "denials"), "the alert")
    t.check(alert["cause"][-1].startswith("exec.syscall deny unshare"), f"{alert['cause']}")
    stands_still(t, ws)
    before = t.read(ws, "tick")
    t.equal(t.ward("resume", one).rc, 0, "resume")
    t.wait_until(lambda: t.read(ws, "tick") != before, 20, "it does not go on")
    t.equal(t.ward("kill", one).rc, 0, "kill")


def test_freeze_foreground(t):
    """The one who sits there is told what happened and what to do; a frozen run can be killed."""
    ws = t.workspace()
    file = rules(t, {"name": "denied", "count": "denials", "above": 3, "do": "freeze"})
    run = t.ward_start("run", "-p", file, "--", "sh", "-c", TICK, cwd=ws)
    line = run.stderr.readline()
    line = line.decode() if isinstance(line, bytes) else line
    t.contains(line, "ward: watch rule denied: denials: ")
    name = line.split(" is frozen")[0].rsplit(" ", 1)[1]
    t.wait_until(lambda: name in listed(t), 20, "it is not listed")
    stands_still(t, ws)
    t.equal(t.ward("kill", name).rc, 0, "kill")
    r = t.finish_ward(run)
    t.equal((r.rc, r.out), (137, ""), f"{r.err}")


def test_freeze_is_not_undone(t):
    """Job control, a protected file that the host replaces, and the end with a time of grace do not
    let a frozen sandbox go on."""
    ws = t.workspace({"guarded": "old\n"})
    file = rules(t, {"name": "denied", "count": "denials", "above": 3, "do": "freeze"},
                 filesystem={"protect": ["guarded"]})
    run = t.ward_start("run", "-p", file, "--", "sh", "-c", TICK, cwd=ws)
    line = run.stderr.readline()
    line = line.decode() if isinstance(line, bytes) else line
    name = line.split(" is frozen")[0].rsplit(" ", 1)[1]
    t.wait_until(lambda: name in listed(t), 20, "it is not listed")
    for one in (signal.SIGTSTP, signal.SIGCONT):
        with t.root():
            os.kill(run.pid, one)
        time.sleep(0.3)
    stands_still(t, ws)
    t.write(ws, {"new": "new\n"})
    os.replace(os.path.join(ws, "new"), os.path.join(ws, "guarded"))
    stands_still(t, ws)
    t.equal(t.ward("kill", name).rc, 0, "kill")
    t.equal(t.finish_ward(run).rc, 137)
    two = box(t, "-p", file, "--", "sh", "-c", "trap 'echo on > last' TERM; " + TICK, cwd=ws)
    t.wait_until(lambda: listed(t)[two]["state"] == "paused", 20, "it is not frozen")
    t.equal(t.ward("stop", two).rc, 0, "stop")
    t.wait_until(lambda: two not in listed(t), 20, "it is not dead")
    t.equal(t.read(ws, "last"), None, "it went on once more")


def test_timeout_holds(t):
    """A frozen run still ends at its time limit."""
    ws = t.workspace()
    file = rules(t, {"name": "denied", "count": "denials", "above": 3, "do": "freeze"})
    r = t.ward("run", "--timeout", "2", "-p", file, "--", "sh", "-c", DENIED, cwd=ws)
    t.equal((r.rc, r.out), (124, ""), f"{r.err}")


def test_ask(t):
    """The sandbox stands still while a person is asked: yes lets it go on, no kills it, and so does
    no answer in time."""
    ws = t.workspace()
    rule = {"name": "denied", "count": "denials", "above": 3, "do": "ask"}

    def start(seconds, n):
        file = rules(t, rule, approvals={"mode": "ask", "timeout_seconds": seconds})
        one = box(t, "-p", file, "--", "sh", "-c", f"{DENIED}; echo on > went{n}; sleep 30", cwd=ws)
        t.wait_until(lambda: [q for q in json.loads(t.ward("approve", "--json").out)["questions"]
                              if q["sandbox"] == one], 20, "nobody is asked")
        return one, [q for q in json.loads(t.ward("approve", "--json").out)["questions"]
                     if q["sandbox"] == one][0]

    one, question = start(60, 1)
    t.equal((question["kind"], question["line"]), ("watch", ""), "the question")
    t.contains(question["subject"], "watch rule denied: denials: ")
    t.equal(listed(t)[one]["state"], "paused", "it stands still")
    r = t.ward("approve", question["id"], "--always")
    t.check(r.rc != 0 and "no rule that would allow this always" in r.err,
            f"an alert is not answered for ever: {r.err}")
    t.equal(t.ward("approve", question["id"], "--run").rc, 0, "yes")
    t.wait_until(lambda: t.read(ws, "went1") == "on\n", 20, "it does not go on")
    t.equal([e["action"] for e in events(t, one, kind="approval.answer")], ["approve"], "on record")

    two, question = start(60, 2)
    t.equal(t.ward("approve", question["id"], "--deny").rc, 0, "no")
    t.wait_until(lambda: two not in listed(t), 20, "it is not dead")
    t.equal(t.read(ws, "went2"), None, "nothing went on")

    three, _ = start(1, 3)
    t.wait_until(lambda: three not in listed(t), 20, "it waits for ever")
    t.equal(t.read(ws, "went3"), None, "nothing went on")


def test_one_answer_is_for_one_rule(t):
    """A yes about one rule does not end what another rule asks about, or what another has
    frozen."""
    rule = {"count": "denials", "above": 3}
    asks = {"mode": "ask", "timeout_seconds": 60}

    def start(*names):
        ws = t.workspace()
        file = rules(t, *({**rule, "name": n, "do": n.split("-")[0]} for n in names),
                     approvals=asks)
        one = box(t, "-p", file, "--", "sh", "-c", TICK, cwd=ws)
        wanted = sum(n.startswith("ask") for n in names)
        t.wait_until(lambda: len(waiting(one)) == wanted, 20, "nobody is asked")
        return ws, one

    def waiting(one):
        return [q["id"] for q in json.loads(t.ward("approve", "--json").out)["questions"]
                if q["sandbox"] == one]

    ws, one = start("ask-a", "ask-b")
    first, second = waiting(one)
    t.equal(t.ward("approve", first, "--run").rc, 0, "yes")
    stands_still(t, ws)
    t.equal(listed(t)[one]["state"], "paused", "the other question still waits")
    before = t.read(ws, "tick")
    t.equal(t.ward("approve", second, "--run").rc, 0, "yes")
    t.wait_until(lambda: t.read(ws, "tick") != before, 20, "it does not go on")

    ws, one = start("ask-a", "freeze-b")
    t.equal(t.ward("approve", waiting(one)[0], "--run").rc, 0, "yes")
    stands_still(t, ws)
    t.equal(listed(t)[one]["state"], "paused", "the other rule holds it")
    before = t.read(ws, "tick")
    t.equal(t.ward("resume", one).rc, 0, "resume")
    t.wait_until(lambda: t.read(ws, "tick") != before, 20, "it does not go on")


def test_sequence(t):
    """After a labelled file was read, the first new host ends the run; hosts from before do not,
    and without the file none does."""
    world = World(t)
    ws = t.workspace({"talk.py": TALK, "secrets/key": "k\n", "plain": "p\n"})
    groups = {"network": {"mode": "restricted", "egress_allowlist": ["*.test:5432"]}}
    file = rules(t, {"name": "leak", "count": "new_hosts", "after": "secret", "do": "kill"},
                 labels=[{"name": "secret", "paths": ["secrets/*"]}], **groups)

    def run(*steps):
        return world.ward("run", "-p", file, "--", "/usr/bin/python3", "talk.py", *steps, cwd=ws)

    r = run("db.test", "read=plain", "other.test")
    t.equal((r.rc, r.out), (0, "db.test hello\nread\nother.test hello\n"), f"{r.err}")
    r = run("db.test", "wait=0.5", "read=secrets/key", "db.test")
    t.equal((r.rc, r.out), (0, "db.test hello\nread\ndb.test hello\n"), f"{r.err}")
    r = run("db.test", "wait=0.5", "read=secrets/key", "other.test", "go=never")
    t.equal(r.rc, 137, f"{r.out} {r.err}")
    alert = the_alert(t, cwd=ws)
    t.equal((alert["object"], alert["why"]),
            ("leak", "new_hosts: 1 after secret, more than 0"), "the alert")
    t.equal(alert["cause"], ["net.connect allow other.test:5432"], "what it saw")
    t.check(any("python3" in p for p in alert["running"]), f"who was there: {alert['running']}")


def test_untrusted_then_push(t):
    """A label of hosts: whatever comes after untrusted content was fetched."""
    world = World(t)
    ws = t.workspace({"talk.py": TALK})
    file = rules(t, {"name": "after-forum", "count": "connections", "after": "untrusted"},
                 labels=[{"name": "untrusted", "hosts": ["*.evil.test", "evil.test"]}],
                 network={"mode": "restricted", "egress_allowlist": ["*.test:5432"]})
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "talk.py", "db.test", "evil.test",
                   cwd=ws)
    t.equal((r.rc, events(t, cwd=ws)), (0, []), f"nothing came after it ({r.err})")
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "talk.py", "evil.test", "wait=0.5",
                   "db.test", cwd=ws)
    t.equal((r.rc, the_alert(t, cwd=ws)["cause"]), (0, ["net.connect allow db.test:5432"]),
            f"{r.err}")


def test_bytes_out(t):
    """What leaves is counted while the connection lasts."""
    world = World(t)
    ws = t.workspace({"send.py": """
import socket, time
s = socket.create_connection(("db.test", 5432), 20)
s.settimeout(0.01)
for i in range(3000):
    s.sendall(b"x" * 10000)
    try: s.recv(1 << 20)
    except OSError: pass
time.sleep(30)
"""})
    file = rules(t, {"name": "much", "count": "bytes_out", "above": "1Mi", "do": "kill"},
                 network={"mode": "restricted", "egress_allowlist": ["db.test:5432"]})
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "send.py", cwd=ws)
    t.equal(r.rc, 137, f"{r.out} {r.err}")
    t.check(the_alert(t, cwd=ws)["value"] > 1 << 20, "the count")


@timeout(240)
def test_idle_cpu(t):
    """A second of processor time without a sign of life, however long that takes."""
    ws = t.workspace()
    file = rules(t, {"name": "loop", "count": "idle_cpu", "do": "kill"})
    r = t.ward("run", "--timeout", "200", "-p", file, "--", "sh", "-c", "while :; do :; done",
               cwd=ws, timeout=220)
    t.equal(r.rc, 137, f"{r.out} {r.err}")
    t.contains(the_alert(t, cwd=ws)["why"], "idle_cpu: ")


def test_files(t):
    """Files that are deleted, and files that look encrypted; a compressed one does not."""
    ws = t.workspace({f"f{i}": "text\n" * 2000 for i in range(6)})
    t.run("git", "init", "-q", cwd=ws)
    encrypt = """import gzip, os
for i in range(%d):
    open(f"f{i}", "wb").write(os.urandom(9000))
open("z.gz", "wb").write(gzip.compress(os.urandom(9000)))
open("text", "w").write("words and words " * 1000)
"""
    rule = {"name": "ransom", "count": "files_encrypted", "above": 3}
    r = t.ward("run", "-p", rules(t, rule), "--", "/usr/bin/python3", "-c", encrypt % 3, cwd=ws)
    t.equal((r.rc, events(t, cwd=ws)), (0, []), f"three are not too many ({r.err})")
    r = t.ward("run", "-p", rules(t, rule), "--", "/usr/bin/python3", "-c", encrypt % 4, cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(the_alert(t, cwd=ws)["value"], 4, "four are")
    marked = {os.path.basename(e["object"]): e.get("entropy", 0)
              for e in events(t, cwd=ws, kind="file.change")}
    t.check(marked["f0"] >= 790 and not marked["z.gz"] and marked["text"] < 500, f"{marked}")
    rule = {"name": "gone", "count": "files_deleted", "above": 2}
    r = t.ward("run", "-p", rules(t, rule), "--", "rm", "f0", "f1", "f2", cwd=ws)
    t.equal((r.rc, the_alert(t, cwd=ws)["value"]), (0, 3), f"{r.err}")


@by_turns
def test_more_files_than_are_followed(t):
    """However many files a run makes and deletes, and however long their names are, each counts."""
    ws = t.workspace()
    many = """import os
for i in range(16):
    os.mkdir("d" * 240); os.chdir("d" * 240)
for i in range(9000):
    open(f"{i}", "w").close()
for i in range(9000):
    os.unlink(f"{i}")
"""
    gone = {"name": "gone", "count": "files_deleted", "above": 8999}
    r = t.ward("run", "-p", rules(t, gone), "--", "/usr/bin/python3", "-c", many, cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.check(the_alert(t, cwd=ws)["value"] >= 9000, "all were counted")
    changes = events(t, cwd=ws, kind="file.change")
    t.check(any(e["object"] == "more of them, too many to follow" for e in changes) or
            sum(e["change"] == "delete" for e in changes) == 9000, "what was told")


def test_more_reads_than_are_listed(t):
    """After thousands of other files, a file with a label is still seen, and files are counted."""
    ws = t.workspace({f"many/{i}": "x" for i in range(5000)})
    t.write(ws, {"secrets/key": "k"})
    read = "cat many/* > /dev/null; cat secrets/nothing 2>/dev/null; {}; unshare -U true; true"
    leak = {"name": "leak", "count": "denials", "after": "secret"}
    read_much = {"name": "much", "count": "files_read", "above": 4999}
    file = rules(t, leak, read_much, labels=[{"name": "secret", "paths": ["secrets/*"]}])
    r = t.ward("run", "-p", file, "--", "sh", "-c", read.format("true"), cwd=ws)
    t.equal((r.rc, [a["object"] for a in events(t, cwd=ws)]), (0, ["much"]), r.err)
    r = t.ward("run", "-p", file, "--", "sh", "-c", read.format("cat secrets/key"), cwd=ws)
    t.equal((r.rc, sorted(a["object"] for a in events(t, cwd=ws))), (0, ["leak", "much"]), r.err)


def test_entropy_follows_no_link(t):
    """A link in the place of a changed file leads nowhere: what ward reads is in the workspace."""
    ws = t.workspace({"a": "x"})
    secret = os.path.join(t.fresh_dir("outside"), "random")
    with open(secret, "wb") as f:
        f.write(os.urandom(20000))
    rule = {"name": "ransom", "count": "files_encrypted"}
    r = t.ward("run", "-p", rules(t, rule), "--", "ln", "-s", secret, "link", cwd=ws)
    t.equal((r.rc, events(t, cwd=ws)), (0, []), f"{r.err}")


def test_level(t):
    """A rule raises audit.level to what it counts, and says so."""
    ws = t.workspace()
    r = t.ward("plan", "--full", "-p", rules(t, {"name": "storm", "count": "execs"}), "--", "true",
               cwd=ws)
    t.contains(r.out, "audit.level is exec, which the watch rule storm needs")
    r = t.ward("plan", "--full", "-p", rules(t, {"name": "f", "count": "files_deleted"}), "--",
               "true", cwd=ws)
    t.contains(r.out, "audit.level is writes, which the watch rule f needs")
    r = t.ward("plan", "--full", "-p", rules(t, {"name": "f", "count": "files_read"}), "--",
               "true", cwd=ws)
    t.contains(r.out, "audit.level is full, which the watch rule f needs")
    r = t.ward("plan", "--full", "-p", rules(t, {"name": "d", "count": "denials"}), "--", "true",
               cwd=ws)
    t.check("audit.level is" not in r.out, "not without need")


def test_refused(t):
    """What cannot be meant is one clear error, and nothing is started."""
    ws = t.workspace()
    for rule, said in (
            ({"name": "a", "count": "nonsense"}, "something that can be counted"),
            ({"name": "a", "count": "denials", "after": "x"}, "watch.labels has no label x"),
            ({"name": "a", "count": "denials", "do": "ask"}, "approvals.mode: ask"),
            ({"name": "a", "count": "spend", "above": 1}, "write above_cost"),
            ({"name": "a", "count": "denials", "except": ["x"]}, "KIND:PATTERN"),
            ({"count": "denials"}, '"name" is missing')):
        file = rules(t, rule)
        for verb in (("run", "-p", file, "--", "touch", "began"), ("check", file)):
            r = t.ward(*verb, cwd=ws)
            t.check(r.rc != 0 and said in r.err + r.out, f"{verb[0]} {rule}: {r.err} {r.out}")
    t.equal(t.read(ws, "began"), None, "nothing was started")


def test_narrowing(t):
    """A ward.yaml of the workspace may add rules, not take those of a profile or user away."""
    ws = t.workspace({"ward.yaml": "version: 1\nwatch: {rules: [{name: d, count: denials}]}\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal(r.rc, 0, f"rules only narrow ({r.err})")


def test_replay_and_suggest(t):
    """Rules are tried on past runs, and proposed from them."""
    ws = t.workspace()
    t.equal(t.ward("run", "--set", "audit.level=exec", "--", "sh", "-c", STORM, cwd=ws).rc, 0)
    run = json.loads(t.ward("audit", "ls", "--json", cwd=ws).out)[0]["run"]
    storm = {"name": "storm", "count": "execs", "above": 20, "within_seconds": 60, "do": "freeze"}
    r = t.ward("check", "--replay", "--json", rules(t, storm), cwd=ws)
    found = json.loads(r.out)["alerts"]
    t.equal((r.rc, [(a["rule"], a["do"], a["run"]) for a in found]),
            (1, [("storm", "freeze", run)]))
    t.check(found[0]["count"] >= 1 and found[0]["why"] == "execs: 21 within 60 s, more than 20",
            f"{found}")
    text = t.ward("check", "--replay", rules(t, storm), cwd=ws)
    t.contains(text.out, "watch rules that would have fired:\n  storm (freeze): execs: 21")
    r = t.ward("check", "--replay", "--json", rules(t, {**storm, "above": 200}), cwd=ws)
    t.equal((r.rc, json.loads(r.out)["alerts"][0]["count"]), (0, 0), "not above 200")
    r = t.ward("check", "--replay", rules(t, {"name": "f", "count": "files_deleted"}), cwd=ws)
    t.contains(r.out, "cannot be judged in runs whose audit.level was below writes")

    r = t.ward("watch", "suggest", "--json", cwd=ws)
    t.equal(r.rc, 0, r.err)
    suggested = {s["count"]: s for s in json.loads(r.out)["rules"]}
    t.check(suggested["execs"]["peak"] >= 60 and suggested["execs"]["above"] >= 120,
            f"{suggested['execs']}")
    t.equal((suggested["denials"]["above"], suggested["files_deleted"]["blind"]), (0, True))
    r = t.ward("watch", "suggest", cwd=ws)
    t.write(ws, {"suggested.yaml": r.out})
    t.equal(t.ward("check", "suggested.yaml", cwd=ws).rc, 0, r.out)
    t.equal(t.ward("check", "--replay", "suggested.yaml", cwd=ws).rc, 0, "no run breaks them")
    r = t.ward("watch", "suggest", cwd=t.workspace())
    t.check(r.rc != 0 and "no run of this workspace" in r.err, r.err)


def test_journal_none(t):
    """Rules count without a journal, too."""
    ws = t.workspace()
    file = rules(t, {"name": "storm", "count": "execs", "above": 20, "do": "kill"},
                 audit={"journal": "none"})
    t.equal(t.ward("run", "-p", file, "--", "sh", "-c", STORM, cwd=ws).rc, 137)
