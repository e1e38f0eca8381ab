"""Living with a detached sandbox: terminals, taking a session over, logs, numbers."""
import json
import os
import signal

from harness.boxes import Screen, box, listed

LEAVE = b"\x10\x11"


def screen(t, *args, **options):
    return Screen(t, t.ward_argv(*args), **options)


def test_exec_on_a_terminal(t):
    b = box(t, cwd=t.workspace())
    s = screen(t, "exec", "-it", b, "sh", rows=31, columns=99)
    s.wait_for(b"$ ")
    s.type(b"tty; stty size; echo t=$TERM\n")
    s.wait_for(b"/dev/pts/")
    s.wait_for(b"31 99")
    s.wait_for(b"t=xterm")
    s.type(b"sh -c 'echo g$((1+1))o; exec sleep 100'\n")
    s.wait_for(b"g2o")
    s.type(b"\x03")
    s.wait_for(b"$ ")
    s.type(b"exit 6\n")
    t.equal(s.end(), 6, "exit code")
    s = screen(t, "exec", "-t", b, "sh", "-c", "echo ready; cat")
    s.wait_for(b"ready")
    s.type(b"typed\n\x04")
    t.equal(s.end(), 0, "end of input")
    t.contains(s.shown.decode(), "typed", "what cat says")
    r = t.ward("exec", "-t", b, "sh", "-c", "test -t 0 && test -t 1 && echo yes", input="")
    t.equal(r.out, "yes\r\n", "-t without a terminal")


def test_terminal_is_put_back(t):
    b = box(t, cwd=t.workspace())
    s = Screen(t,
               ["/bin/sh", "-c",
                f"stty -a > a; {t.ward_path} exec -t {b} sh -c 'stty raw; echo up; sleep 100'; "
                                 "stty -a > b; echo after"])
    s.wait_for(b"up")
    t.equal(t.ward("kill", b).rc, 0, "kill")
    s.wait_for(b"after")
    s.end()
    t.equal(t.read(t.directory, "a"), t.read(t.directory, "b"), "the terminal's modes")


def test_attach(t):
    b = box(t, "-t", "--", "sh", cwd=t.workspace())
    one = screen(t, "attach", b, rows=33, columns=90)
    one.wait_for(b"leaves")
    one.type(b"echo a$((1+1))c\n")
    one.wait_for(b"a2c")
    two = screen(t, "attach", "--read-only", b)
    two.wait_for(b"read-only")
    two.type(b"echo x$((1+2))z\n")
    one.type(b"echo b$((2+2))d; stty size\n")
    for s in (one, two):
        s.wait_for(b"b4d")
    one.wait_for(b"33 90")
    t.check(b"x3z" not in one.shown + two.shown, "a read-only one typed")
    two.type(LEAVE)
    t.equal(two.end(), 0, "leaving")
    t.equal(listed(t)[b]["state"], "running", "it goes on")
    one.type(b"exit 8\n")
    t.equal(one.end(), 8, "the command's exit code")
    t.contains(t.ward("logs", b).out, "a2c", "the log")


ASKS = """
import os, select, sys, time, tty
tty.setraw(0)
def ask(query):
    os.write(1, query)
    answer = b""
    until = time.time() + 5
    while time.time() < until and select.select([0], [], [], 0.3 if answer else 5)[0]:
        answer += os.read(0, 100)
    return answer
def all_of_it():
    return repr([ask(b"\\033[c"), ask(b"\\033[2;5H\\033[6n")])
open("alone", "w").write(all_of_it())
while not os.path.exists("go"):
    time.sleep(0.05)
open("two", "w").write(all_of_it())
"""


def test_queries_are_answered_once(t):
    """A full-screen program asks its terminal: with nobody attached, and with two."""
    ws = t.workspace({"ask.py": ASKS})
    b = box(t, "-t", "--", "/usr/bin/python3", "ask.py", cwd=ws)
    t.wait_until(lambda: t.read(ws, "alone"), 30, "nobody answered")
    screens = [screen(t, "attach", b) for _ in range(2)]
    for s in screens:
        s.wait_for(b"leaves")
    t.write(ws, {"go": ""})
    t.equal(t.ward("wait", b).rc, 0, "exit code")
    alone, two = t.read(ws, "alone"), t.read(ws, "two")
    t.contains(alone, "\\x1b[?", "what the terminal is")
    t.contains(alone, "\\x1b[2;5R", "where the cursor stands")
    t.equal(two, alone, "answers with two attached")


def test_take_over(t):
    b = box(t, "-t", "--", "sh", cwd=t.workspace())
    agent = screen(t, "attach", b)
    agent.wait_for(b"leaves")
    person = screen(t, "attach", "--exclusive", b)
    agent.wait_for(b"taken over the input")
    agent.type(b"echo agent$((1+1))\n")
    person.type(b"echo person$((1+1))\n")
    person.wait_for(b"person2")
    t.check(b"agent2" not in person.shown, "input that was taken over counted")
    person.type(LEAVE)
    t.equal(person.end(), 0, "leaving")
    agent.type(b"echo back$((1+1))\n")
    agent.wait_for(b"back2")
    t.check(b"agent2" not in agent.shown, "what was typed meanwhile came late")
    agent.type(LEAVE)
    agent.end()


def test_attach_without_a_terminal(t):
    ws = t.workspace()
    b = box(t, "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo out; exit 2", cwd=ws)
    s = screen(t, "attach", b)
    s.wait_for(b"without a terminal")
    t.write(ws, {"go": ""})
    t.equal(s.end(), 2, "exit code")
    t.contains(s.shown.decode(), "out", "output")
    idle = box(t, cwd=ws)
    r = t.ward("attach", idle)
    t.equal(r.rc, 125, "attach to an idle one")
    t.contains(r.err, "ward exec -t", "the remedy")


def test_stuck_client_blocks_nobody(t):
    ws = t.workspace()
    b = box(t, "-t", "--", "sh", "-c",
            "while [ ! -e go ]; do sleep 0.05; done; head -c 3000000 /dev/zero | tr '\\0' "
            "x; exit 4",
            cwd=ws)
    s = screen(t, "attach", b)
    s.wait_for(b"leaves")
    with t.root():
        os.kill(s.pid, signal.SIGSTOP)
    t.write(ws, {"go": ""})
    t.equal(t.ward("wait", b).rc, 4, "the command ends although nobody reads")


def test_logs(t):
    ws = t.workspace()
    b = box(t, "--", "sh", "-c",
            "printf 'one\\ntwo\\nthree\\n'; while [ ! -e go ]; do sleep 0.05; done; "
                                 "printf '\\033]0;title\\007\\033]52;c;x\\007four\\n'", cwd=ws)
    t.wait_until(lambda: t.ward("logs", b).out == "one\ntwo\nthree\n", 20, "no log")
    t.equal(t.ward("logs", "--tail", "2", b).out, "two\nthree\n", "--tail")
    t.equal(t.ward("logs", "--tail", "0", b).out, "", "--tail 0")
    t.equal(t.ward("logs", "--tail", "many", b).rc, 2, "--tail many")
    p = t.ward_start("logs", "-f", "--tail", "1", b)
    t.equal(p.stdout.readline(), b"three\n", "-f, what was there before")
    t.write(ws, {"go": ""})
    r = t.finish_ward(p)
    t.equal((r.rc, r.out), (0, "\033]0;title\007\033]52;c;x\007four\n"), "-f")
    s = screen(t, "logs", b)
    t.equal(s.end(), 0, "on a terminal")
    t.check(b"four" in s.shown and b"\033]" not in s.shown, f"a terminal got {s.shown!r}")


def test_log_is_bounded(t):
    b = box(t, "--", "sh", "-c", "head -c 11000000 /dev/zero | tr '\\0' 'a'; echo; echo last",
            cwd=t.workspace())
    t.equal(t.ward("wait", b).rc, 0, "exit code")
    path = os.path.join(t.state_dir, "boxes", b)
    with t.root():
        size = sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path)
                   if name.startswith("log"))
    t.check(4 << 20 <= size <= 8 << 20, f"the log has {size} bytes")
    t.equal(t.ward("logs", "--tail", "1", b).out, "last\n", "the end of it")


def test_stats(t):
    b = box(t, "--", "sh", "-c", "sleep 100 & sleep 100", cwd=t.workspace())
    other = box(t, cwd=t.workspace())

    def numbers(*names):
        return {s["id"]: s for s in json.loads(t.ward("stats", "--json", *names).out)["sandboxes"]}
    t.equal(set(numbers()), {b, other}, "all of them")
    t.wait_until(lambda: numbers(b)[b]["memory_bytes"] > 0 and numbers(b)[b]["pids"] >= 3, 20,
                 "nothing is counted")
    t.contains(t.ward("stats", "--no-stream", b).out, b, "the table")
    t.equal(t.ward("stats", "nobody").rc, 125, "of none")
