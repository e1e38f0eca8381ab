"""Approvals: a connection that a rule asks about waits until a person has answered, and nothing but
that answer lets it through."""
import datetime
import json
import os
import shutil
import threading
import time

from harness import by_turns, native_only
from harness.boxes import clean
from harness.world import TRY, World

ASK = {"host": "*", "ports": [80, 443, 5432], "ask": True}
# each "host port" in a process of its own; answers land in FILE.N
MANY = r"""
import socket, sys, threading
def one(i, name):
    try:
        s = socket.create_connection((name, 5432), 60)
        s.sendall(b"hello")
        got = s.recv(5).decode()
        s.close()
    except OSError as error:
        got = type(error).__name__
    print(i, name, got, flush=True)
names = sys.argv[1:]
threads = [threading.Thread(target=one, args=(i, n)) for i, n in enumerate(names)]
[t.start() for t in threads]
[t.join() for t in threads]
"""


def start(t, world, rules=None, timeout=60, mode="ask"):
    """A detached idle sandbox whose rules ask; returns (id, workspace)."""
    ws = t.workspace({"try.py": TRY, "many.py": MANY})
    t.defer(clean, t)
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1,
                            "network": {"mode": "restricted",
                                        "egress_allowlist": [ASK] if rules is None else rules},
                            "approvals": {"mode": mode, "timeout_seconds": timeout}}))
    r = world.ward("run", "-d", "-p", path, cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def connect(t, box, ws, *names):
    """Connections inside, which may wait; the process."""
    return t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "many.py", *names), cwd=ws)


def got(t, process):
    """What each of them came to, sorted."""
    out, err = process.communicate(timeout=60)
    text = out if isinstance(out, str) else out.decode()
    return sorted(line.split(" ", 1)[1] for line in text.splitlines())


def questions(t):
    r = t.ward("approve", "--json")
    t.equal(r.rc, 0, f"approve ({r.err})")
    return json.loads(r.out)["questions"]


def asked(t, count=1):
    """Waits until there are so many questions."""
    t.wait_until(lambda: len(questions(t)) == count, 20, f"{count} questions are not asked")
    return questions(t)


def events(t, box, kind):
    r = t.ward("audit", "show", box, "--json")
    return [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == kind]


def test_once(t):
    """Held before anything is connected, asked about once, let through; the next one is asked about
    again."""
    world = World(t)
    box, ws = start(t, world)
    process = connect(t, box, ws, "db.test", "db.test", "db.test")
    t.wait_until(lambda: [q["count"] for q in questions(t)] == [3], 20, "three wait for one answer")
    q = questions(t)[0]
    t.equal((q["subject"], q["host"], q["port"], q["rule"], q["line"]),
            ("db.test:5432", "db.test", 5432, "*:80,443,5432", "db.test:5432"), "the question")
    t.check(0 < q["left_ms"] <= 60000, f"its time: {q['left_ms']}")
    time.sleep(0.3)
    t.equal([line for line in world.log() if "db.test" in line or "tcp" in line], [],
            "nothing was looked up or connected")
    r = t.ward("approve", q["id"], "--once")
    t.equal((r.rc, r.out), (0, "db.test:5432: allowed\n"), f"the answer ({r.err})")
    t.equal(got(t, process), ["db.test hello"] * 3, "all that waited")
    process = connect(t, box, ws, "db.test")
    again = asked(t)[0]
    t.check(again["id"] != q["id"], "another question")
    t.equal(t.ward("approve", again["id"].split(":")[1], "--deny").rc, 0, "by its number alone")
    t.equal(got(t, process), ["db.test ConnectionResetError"], "denied")
    t.equal(questions(t), [], "none is left")


def test_scopes(t):
    """For the run, for a time: equal connections pass without another question, others do not."""
    world = World(t)
    box, ws = start(t, world)
    process = connect(t, box, ws, "db.test")
    t.equal(t.ward("approve", asked(t)[0]["id"], "--run").rc, 0, "for the run")
    t.equal(got(t, process), ["db.test hello"], "it goes on")
    t.equal(got(t, connect(t, box, ws, "db.test", "db.test")), ["db.test hello"] * 2, "and so on")
    process = connect(t, box, ws, "web.test")
    t.equal(t.ward("approve", asked(t)[0]["id"], "--for", "2").rc, 0, "for two seconds")
    t.equal(got(t, process), ["web.test hello"], "it goes on")
    t.equal(got(t, connect(t, box, ws, "web.test")), ["web.test hello"], "and so on")
    time.sleep(2.2)
    process = connect(t, box, ws, "web.test")
    t.equal(asked(t)[0]["host"], "web.test", "its time is over")
    t.equal(t.ward("net", "deny", box, "web.test").rc, 0, "a rule denies what waits")
    t.equal(got(t, process), ["web.test ConnectionResetError"], "denied")
    t.wait_until(lambda: not questions(t), 10, "and the question goes")
    process = connect(t, box, ws, "other.test")
    asked(t)
    t.equal(t.ward("net", "allow", box, "other.test:5432").rc, 0, "a rule allows what waits")
    t.equal(got(t, process), ["other.test hello"], "allowed")
    t.wait_until(lambda: not questions(t), 10, "and the question goes")
    r = t.ward("approve", "--for", "0", "1")
    t.equal(r.rc, 2, "no time")


def test_no_answer(t):
    """No answer in time is a no; so is a mode that asks nobody; private addresses stay refused."""
    world = World(t)
    box, ws = start(t, world, timeout=1)
    t.equal(got(t, connect(t, box, ws, "db.test")), ["db.test ConnectionResetError"], "too late")
    r = t.ward("approve", f"{box}:1", "--run")
    t.equal(r.rc, 125, "an answer after that")
    t.contains(r.err, "answered already", "says so")
    t.equal(got(t, connect(t, box, ws, "db.test")), ["db.test ConnectionResetError"], "still no")
    answers = events(t, box, "approval.answer")
    t.equal([(e["change"], e["action"]) for e in answers],
            [("timeout", "deny"), ("late", "log"), ("timeout", "deny")], "on record")
    t.equal([e["request"] for e in events(t, box, "approval.ask")], ["1", "2"], "the questions")
    box, ws = start(t, world)
    process = connect(t, box, ws, "private.test")
    t.equal(t.ward("approve", asked(t)[0]["id"], "--run").rc, 0, "a name is allowed")
    t.equal(got(t, process), ["private.test ConnectionResetError"], "its private address is not")
    box, ws = start(t, world, mode="deny")
    t.equal(got(t, connect(t, box, ws, "db.test")), ["db.test gaierror"], "nobody is asked")


def test_gone(t):
    """Who hangs up, a sandbox that is paused or killed: nothing waits for ever, nothing is left."""
    world = World(t)
    box, ws = start(t, world, timeout=2)
    process = connect(t, box, ws, "db.test")
    asked(t)
    process.terminate()
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")
    process = connect(t, box, ws, "db.test")
    q = asked(t)[0]
    t.equal(t.ward("pause", box).rc, 0, "paused")
    t.wait_until(lambda: not questions(t), 10, "its time passes all the same")
    t.equal(t.ward("resume", box).rc, 0, "resumed")
    t.equal(got(t, process), ["db.test ConnectionResetError"], "denied")
    process = connect(t, box, ws, "db.test")
    q = asked(t)[0]
    began = time.monotonic()
    t.equal(t.ward("kill", box).rc, 0, "killed")
    t.check(time.monotonic() - began < 5, "at once")
    t.equal(questions(t), [], "nothing waits")
    t.equal(t.ward("approve", q["id"], "--run").rc, 125, "nobody is there to be answered")
    t.equal([line for line in world.log() if line.startswith("tcp")], [], "nothing was connected")


def test_two_answers(t):
    """Of many answers at the same moment one counts, and all are on record."""
    world = World(t)
    box, ws = start(t, world)
    for turn in range(3):
        process = connect(t, box, ws, "db.test")
        q = asked(t)[0]["id"]
        codes = []
        threads = [threading.Thread(target=lambda how=how: codes.append(
            (how, t.ward("approve", q, how).rc))) for how in ("--deny", "--once") * 2]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        wins = [how for how, rc in codes if rc == 0]
        t.equal(len(wins), 1, f"one answer counts: {codes}")
        t.equal(got(t, process), ["db.test hello" if wins == ["--once"] else
                                  "db.test ConnectionResetError"], "and it is the one")
    answers = events(t, box, "approval.answer")
    t.equal(sorted(e["change"] for e in answers), ["answer"] * 3 + ["late"] * 9, "on record")
    uid = 0 if t.person is None else t.person.pw_uid if hasattr(t.person, "pw_uid") else None
    t.check(all(e["via"] == "control" and e["pid"] > 1 for e in answers), "with who")
    if uid is not None:
        t.equal({e["uid"] for e in answers}, {uid}, "and whose")


FLOOD = r"""
import socket, sys
held = []
for i in range(int(sys.argv[1])):
    s = socket.socket()
    s.setblocking(False)
    try:
        s.connect((socket.gethostbyname(f"h{i}.test"), 5432))
    except BlockingIOError:
        pass
    held.append(s)
print("up", flush=True)
sys.stdin.read()
"""


def test_many(t):
    """Five hundred wait, what is beyond is refused at once, and what is allowed is not in its
    way."""
    world = World(t)
    box, ws = start(t, world, [ASK, "web.test:5432"])
    t.write(ws, {"flood.py": FLOOD})
    flood = t.popen(t.ward_argv("exec", "-i", box, "/usr/bin/python3", "flood.py", "520"), cwd=ws,
                    stdin=-1)
    t.wait_until(lambda: len(questions(t)) == 500, 30, "500 questions")
    t.equal(got(t, connect(t, box, ws, "one-more.test")), ["one-more.test ConnectionResetError"],
            "one more")
    t.equal(got(t, connect(t, box, ws, "web.test")), ["web.test hello"], "what is allowed")
    all_of_them = questions(t)
    t.equal(len({q["id"] for q in all_of_them}), 500, "all of them are different")
    t.equal(t.ward("approve", all_of_them[-1]["id"], "--deny").rc, 0, "the last can be answered")
    flood.stdin.close()
    t.wait_until(lambda: not questions(t), 20, "all go with the program")


def test_own_answer(t):
    """A sandbox cannot answer: the control socket is not there, and a socket from inside is
    refused."""
    world = World(t)
    box, ws = start(t, world)
    process = connect(t, box, ws, "db.test")
    asked(t)
    r = t.ward("exec", box, "/bin/sh", "-c",
               "find / -name control -type s 2>/dev/null; ls /run/ward /run/user 2>/dev/null; "
               "command -v ward && ward approve 1 --run; true")
    t.check("control" not in r.out and "allowed" not in r.out, f"inside: {r.out}")
    t.equal(len(questions(t)), 1, "it still waits")
    process.terminate()


def test_proxies_and_curl(t):
    """curl waits through the transparent way, the HTTP proxy and SOCKS, with TLS and without."""
    world = World(t)
    box, ws = start(t, world)
    t.write(ws, {"ca.pem": t.read(os.path.join(world.certificates, "ca.pem"))})
    for words in (["https://web.test/"], ["http://web.test/"],
                  ["-x", "http://127.0.0.1:3128", "https://web.test/"],
                  ["-x", "http://127.0.0.1:3128", "http://web.test/"],
                  ["-x", "socks5h://127.0.0.1:1080", "https://web.test/"]):
        for answer, code in (("--once", 0), ("--deny", None)):
            process = t.popen(t.ward_argv("exec", box, "/usr/bin/curl", "-sSf", "-m", "30",
                                          "--noproxy", "" if "-x" in words else "*",
                                          "--cacert", "ca.pem", *words), cwd=ws)
            q = asked(t)[0]
            t.equal(q["host"], "web.test", "the question")
            t.equal(t.ward("approve", q["id"], answer).rc, 0, "the answer")
            out, err = process.communicate(timeout=40)
            t.check((process.returncode == 0) == (code == 0),
                    f"{words} {answer}: {process.returncode} {err}")


TIMED = r"""
import socket, sys, time
s = socket.create_connection((sys.argv[1], 5432))
s.sendall(b"x")
s.recv(1)
print(time.clock_gettime(time.CLOCK_REALTIME), flush=True)
"""


@native_only("milliseconds")
def test_latency(t):
    """From the answer on record to the first byte of the server a few milliseconds: the least of
    some, for the machine may be busy."""
    world = World(t)
    box, ws = start(t, world)
    t.write(ws, {"timed.py": TIMED})
    for how in ("--once", "--run"):
        took = []
        for name in ("db.test", "web.test", "other.test", "www.web.test", "evil.test"):
            process = t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "timed.py", name),
                              cwd=ws)
            q = asked(t)[0]
            t.equal(t.ward("approve", q["id"], how).rc, 0, "the answer")
            out, _ = process.communicate(timeout=30)
            answer = [e for e in events(t, box, "approval.answer") if e["object"] == q["subject"]]
            at = datetime.datetime.fromisoformat(answer[-1]["time"].replace("Z", "+00:00"))
            took.append(1000 * (float(out) - at.timestamp()))
        t.check(min(took) < 15, f"{how}: {took} ms")


def test_foreground_and_offer(t):
    """ward run --ask: a run in the foreground asks, and at the end offers what the answers made."""
    world = World(t)
    ws = t.workspace({"try.py": TRY, "many.py": MANY})
    process = t.popen(t.ward_argv(
        "run", "--ask", "--", "/bin/sh", "-ec",
        "curl -sko /dev/null https://web.test/; curl -so /dev/null http://web.test/; "
        "echo through", wrap=world.wrap(ws)), cwd=ws, root=True)
    q = asked(t)[0]
    t.equal((q["rule"], q["port"]), ("*:22,80,443,8080,8443", 443), "the rule of --ask")
    t.equal(t.ward("approve", q["id"], "--run").rc, 0, "the answer")
    t.wait_until(lambda: [q["port"] for q in questions(t)] == [80], 20, "the next question")
    t.equal(t.ward("approve", questions(t)[0]["id"], "--once").rc, 0, "the answer")
    out, err = process.communicate(timeout=30)
    out, err = (x if isinstance(x, str) else x.decode() for x in (out, err))
    t.equal(process.returncode, 0, err)
    t.contains(err, "ward policy add", "the offer")
    t.contains(err, "network.egress_allowlist 'web.test'", "one rule")
    t.contains(err, "network.egress_allowlist 'web.test:80'", "the other")


def test_always(t):
    """always shows the difference and writes the policy; without a yes to that there is no
    answer."""
    world = World(t)
    ws = t.workspace({"many.py": MANY, "ward.yaml": "network:\n  mode: restricted\n"
                      "  egress_allowlist:\n    - {host: \"*\", ports: [5432], ask: true}\n"
                      "approvals: {mode: ask}\n"})
    t.defer(clean, t)
    r = world.ward("run", "-d", "-p", os.path.join(ws, "ward.yaml"), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    box = r.out.strip()
    process = connect(t, box, ws, "db.test")
    q = asked(t)[0]
    before = t.read(os.path.join(ws, "ward.yaml"))
    r = t.ward("approve", q["id"], "--always")
    t.equal(r.rc, 125, "nobody says yes")
    t.equal((t.read(os.path.join(ws, "ward.yaml")), len(questions(t))), (before, 1), "as before")
    r = t.ward("approve", q["id"], "--always", "--yes")
    t.equal(r.rc, 0, f"always ({r.err})")
    t.contains(r.out, "+    - \"db.test:5432\"", "the difference")
    t.contains(t.read(os.path.join(ws, "ward.yaml")), "db.test:5432", "written")
    t.equal(got(t, process), ["db.test hello"], "it goes on")


def test_always_makes_a_policy(t):
    """A policy that always makes while the run goes on stays where it is at the run's end; one that
    the sandbox has changed by then, or has put there, does not."""
    world = World(t)
    for change, stays in (("", True), ("echo >>ward.yaml; ", False)):
        ws = t.workspace({"many.py": MANY.replace("5432", "443")})
        process = t.popen(t.ward_argv(
            "run", "--ask", "--", "sh", "-c", "/usr/bin/python3 many.py db.test; " + change +
            "cat ward.yaml", wrap=world.wrap(ws)), cwd=ws, root=True)
        q = asked(t)[0]
        t.equal(t.ward("approve", q["id"], "--always", "--yes").rc, 0, "always")
        out, err = process.communicate(timeout=60)
        t.contains(out.decode(), "db.test", "it was there")
        t.equal(os.path.exists(os.path.join(ws, "ward.yaml")), stays, f"{change} {err}")
    told = t.workspace({"copy": "version: 1\nnetwork:\n  mode: open\n"})
    os.rename(os.path.join(told, "copy"), os.path.join(told, "ward.yaml"))
    t.equal(t.ward("trust", "--yes", cwd=told).rc, 0, "accepted elsewhere")
    ws = t.workspace({"copy": t.read(told, "ward.yaml")})
    t.ward("run", "--", "cp", "copy", "ward.yaml", cwd=ws)
    t.check(not os.path.exists(os.path.join(ws, "ward.yaml")), "the sandbox's own is not spared")


def test_policy(t):
    """What ask can be combined with, what check and plan say, and what widens."""
    d = t.fresh_dir("p")
    rule = "network: {mode: restricted, egress_allowlist: [{host: a.example, ask: true%s}]}\n"
    for more, rc, words in (("", 0, ""), (", mode: tcp, private: true", 0, ""),
                            (", methods: [GET]", 0, ""), (", mode: inspect", 0, ""),
                            (", connection_limit: 3", 1, "ask cannot be combined")):
        t.write(d, {"p.yaml": rule % more})
        r = t.ward("check", "p.yaml", cwd=d)
        if rc == 0:
            t.equal(r.rc, 0, f"{more}: {r.out} {r.err}")
        p = t.ward("plan", "-p", "p.yaml", "--full", "--", "true", cwd=d)
        t.equal(p.rc == 0, rc == 0, f"plan {more}: {p.err}")
        t.contains(p.out + p.err, words or "denied: approvals.mode is deny", f"plan {more}")
    t.write(d, {"p.yaml": rule % "" + "approvals: {mode: ask, timeout_seconds: 5, "
                "on_timeout: deny}\n"})
    t.contains(t.ward("plan", "-p", "p.yaml", "--full", "--", "true", cwd=d).out, "asks first",
               "plan")
    t.contains(t.ward("plan", "--ask", "--full", "--", "true", cwd=d).out,
               "*:22,80,443,8080,8443", "--ask")
    t.write(d, {"q.yaml": "approvals: {on_timeout: allow}\n"})
    t.equal(t.ward("check", "q.yaml", cwd=d).rc, 1, "no answer is never a yes")


@by_turns
def test_approver_dies(t):
    """Who was about to answer is killed: the question still waits, another one answers, and without
    any its time passes."""
    world = World(t)
    box, ws = start(t, world, timeout=6)
    path = os.path.join(t.fresh_dir("socket"), "s")
    server = t.popen(t.ward_argv("approve", "--socket", path))
    t.wait_until(lambda: os.path.exists(path), 10, "no socket")
    process = connect(t, box, ws, "db.test")
    q = asked(t)[0]
    server.kill()
    server.wait()
    t.equal(len(questions(t)), 1, "it still waits")
    again = t.popen(t.ward_argv("approve", "--socket", path))
    time.sleep(0.3)
    t.check(again.poll() is None, "the socket of a killed one is taken over")
    t.equal(t.ward("approve", q["id"], "--once").rc, 0, "another one answers")
    t.equal(got(t, process), ["db.test hello"], "it goes on")
    t.equal(got(t, connect(t, box, ws, "db.test")), ["db.test ConnectionResetError"],
            "nobody answers")


def test_journal_is_gone(t):
    """An answer that cannot be put on record: with on_full stop the run ends and nothing is
    connected after it, with continue it goes on. Nothing hangs."""
    world = World(t)
    for how in ("stop", "continue"):
        ws = t.workspace({"many.py": MANY})
        path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        with open(path, "w") as f:
            f.write(json.dumps({"version": 1, "network": {
                "mode": "restricted", "egress_allowlist": [ASK]}, "approvals": {"mode": "ask"},
                "audit": {"on_full": how}}))
        process = t.popen(t.ward_argv("run", "-p", path, "--", "/usr/bin/python3", "many.py",
                                      "db.test", wrap=world.wrap(ws)), cwd=ws, root=True)
        q = asked(t)[0]
        shutil.rmtree(os.path.join(t.state_dir, "audit/live"))
        t.ward("approve", q["id"], "--once")
        out, err = process.communicate(timeout=30)
        t.equal(process.returncode, 125 if how == "stop" else 0, f"{how}: {err}")
        t.check(how == "stop" or b"db.test hello" in out, f"{how}: {out}")
        t.wait_until(lambda: not questions(t), 10, "nothing waits")
