"""Approvals of commands: a guarded program is started by ward-init, with the words that were
decided about, and nothing inside can start it in another way or change what was shown."""
import json
import os
import re
import signal
import time

from harness import by_turns
from harness.boxes import clean
from run.test_approve import asked, events, questions
from run.test_approve_requests import approve

# shells and what tests need of coreutils; the guarded ones are cat and sleep
ALLOW = ["bash", "sh", "env", "ls", "python3", "pwd", "true", "false", "dd"]


def policy(t, commands, seconds=60, mode="ask", **approvals):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1, "process": {"commands": commands},
                            "approvals": {"mode": mode, "timeout_seconds": seconds,
                                          **approvals}}))
    return path


def start(t, commands, seconds=60, files=None, **more):
    """A detached idle sandbox; returns (id, workspace)."""
    ws = t.workspace({"a": "first\n", "b": "second\n", **(files or {})})
    t.defer(clean, t)
    r = t.ward("run", "-d", "-p", policy(t, commands, seconds, **more), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def run(t, box, ws, *words):
    return t.popen(t.ward_argv("exec", box, *words), cwd=ws)


def got(process):
    """(exit code, output, error)"""
    out, err = process.communicate(timeout=60)
    text = [x if isinstance(x, str) else (x or b"").decode() for x in (out, err)]
    return process.returncode, *text


def test_words_decide(t):
    """Words that are allowed start without a question, denied ones never, others after a yes; with
    a no the program was not started."""
    box, ws = start(t, {"allow": [*ALLOW, "cat a"], "ask": ["cat b *"], "deny": ["cat b secret"]})
    t.equal(got(run(t, box, ws, "cat", "a")), (0, "first\n", ""), "allowed")
    rc, out, err = got(run(t, box, ws, "cat", "b", "secret"))
    t.equal((rc, out), (126, ""), "denied")
    t.contains(err, "process.commands denies these words", "says why")
    rc, out, err = got(run(t, box, ws, "cat", "/etc/passwd"))
    t.equal((rc, out), (126, ""), "not in the list")
    t.contains(err, "with other words only", "says why")
    t.equal(questions(t), [], "no question until now")
    process = run(t, box, ws, "cat", "b", "a")
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["rule"]),
            ("command", "/usr/bin/cat b a", "process.commands: ask b *"), q)
    t.check(f"directory: {ws}" in q["details"] and
            any(d.startswith("standard input: ") for d in q["details"]), f"{q}")
    approve(t, q, "--once")
    t.equal(got(process), (0, "second\nfirst\n", ""), "after a yes")
    process = run(t, box, ws, "cat", "b", "a")
    approve(t, asked(t)[0], "--deny")
    rc, out, err = got(process)
    t.equal((rc, out), (126, ""), "after a no")
    t.contains(err, "a person was asked and said no", "says why")
    t.equal([(e["question"], e["action"]) for e in events(t, box, "approval.answer")],
            [("command", "approve"), ("command", "deny")], "on record")


def test_scopes(t):
    """For the run: these words in this directory; others ask again. No answer in time is a no, and
    so is a mode that asks nobody."""
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]})
    os.mkdir(os.path.join(ws, "sub"))
    t.write(ws, {"sub/a": "below\n"})
    process = run(t, box, ws, "cat", "a")
    approve(t, asked(t)[0], "--run")
    t.equal(got(process)[:2], (0, "first\n"), "once")
    t.equal(got(run(t, box, ws, "cat", "a"))[:2], (0, "first\n"), "and again")
    process = run(t, box, ws, "sh", "-c", "cd sub && cat a")
    q = asked(t)[0]
    t.check(any(d.endswith("/sub") for d in q["details"]), f"another directory: {q}")
    approve(t, q, "--deny")
    t.equal(got(process)[:2], (126, ""), "denied there")
    clean(t)
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]}, seconds=1)
    t.contains(got(run(t, box, ws, "cat", "a"))[2], "did not answer in time", "a timeout")
    clean(t)
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]}, mode="deny")
    t.contains(got(run(t, box, ws, "cat", "a"))[2], "approvals.mode is deny", "nobody")


def test_never(t):
    """approvals.never names the program: nobody is asked."""
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]}, never=["program:cat"])
    rc, out, err = got(run(t, box, ws, "cat", "a"))
    t.equal((rc, out, questions(t)), (126, "", []), "refused")
    t.contains(err, "approvals.never", "says why")


WAYS = r"""
import os, shutil, subprocess, sys
def way(name, run):
    try:
        got = run()
    except OSError as error:
        got = type(error).__name__
    print(name, got, flush=True)
def out(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more).stdout
real = sys.argv[1]
way("copy", lambda: (shutil.copy(real, "mine"), os.chmod("mine", 0o755), out("./mine", "b"))[2])
way("proc", lambda: [out(f"/proc/{p}/exe", "b") for p in os.listdir("/proc")
                     if p.isdigit() and os.readlink(f"/proc/{p}/exe").find("memfd") >= 0])
way("argv0", lambda: out("tac", "b", executable=real))
way("link", lambda: (os.symlink(real, "linked"), out("./linked", "b"))[1])
"""


def test_other_ways(t):
    """Nothing inside has the program's file: a copy of what lies at its path, another name, a link,
    and the file that a started one runs from (which it can neither read, nor trace, nor execute)
    all end at the question."""
    box, ws = start(t, {"allow": [*ALLOW, "sleep 60", "cat a"], "ask": []},
                    files={"ways.py": WAYS})
    process = run(t, box, ws, "sleep", "60")
    t.wait_until(lambda: "sleep" in got(run(t, box, ws, "sh", "-c",
                                            "for i in /proc/[0-9]*; do read -r x < $i/comm && "
                                            "echo $x; done"))[1]
                 or "memfd" in got(run(t, box, ws, "sh", "-c",
                                       "for i in /proc/[0-9]*; do read -r x < $i/comm && "
                                       "echo $x; done"))[1], 20, "it runs")
    rc, out, err = got(run(t, box, ws, "/usr/bin/python3", "ways.py", "/usr/bin/cat"))
    rows = dict(line.split(" ", 1) for line in out.splitlines())
    t.equal(rows.get("argv0"), "", f"another name: {out} {err}")
    t.check("second" not in out, f"nothing read it: {out} {err}")
    process.kill()


ENV = r"""
import os, subprocess, sys
env = dict(os.environ, LD_PRELOAD="./evil.so", LD_LIBRARY_PATH=".", GIT_DIR="evil", FOO="evil",
           LANG="C.UTF-8", LC_ALL="C", COLUMNS="77", TERM="../evil", BASH_ENV="evil")
r = subprocess.run(["/usr/bin/printenv"], env=env, capture_output=True, text=True)
print(r.stdout, r.stderr)
"""


def test_environment(t):
    """What a loader or a program obeys does not come from whoever asks."""
    box, ws = start(t, {"allow": [*ALLOW, "printenv *"]}, files={"env.py": ENV})
    rc, out, err = got(run(t, box, ws, "/usr/bin/python3", "env.py"))
    t.check("LC_ALL=C" in out and "COLUMNS=77" in out, f"about the terminal: {out} {err}")
    t.check("evil" not in out, f"nothing else: {out}")
    t.check("PATH=" in out and "HOME=" in out, f"those of the start: {out}")


RACE = r"""
import array, os, socket, struct, sys, threading, time
def request(program, words, fds, variables=()):
    texts = [program, *words, *variables]
    body = b"".join(x.encode() + b"\0" for x in texts)
    data = struct.pack("<IIii", 0x31636477, 1, len(words), len(variables)) + body
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/.ward/guard/socket")
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    return s
def answer(s):
    s.settimeout(30)
    data = s.recv(4096)
    if not data:
        return None
    if struct.unpack("<IIii", data[:16])[1] == 3:
        data = s.recv(4096)
    op, value = struct.unpack("<IIii", data[:16])[1:3] if data else (0, 0)
    return (op, value)
null = os.open("/dev/null", os.O_RDWR)
"""

SWAP = RACE + r"""
os.mkdir("good"); os.mkdir("evil")
open("good/f", "w").write("good\n"); open("evil/f", "w").write("evil\n")
os.chdir("good")
here = os.open(".", os.O_PATH | os.O_DIRECTORY)
r, w = os.pipe()
out = os.open("../out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
s = request("/usr/bin/cat", ["cat", "f"], [null, out, null, here])
# the directory that was shown is replaced by a link to another, 0-2 by other files
os.rename("../good", "../moved"); os.symlink("evil", "../good")
os.dup2(os.open("../evil/f", os.O_RDONLY), 0)
for fd in (here, out):
    os.dup2(null, fd)
print(answer(s), flush=True)
"""


def test_what_was_shown_is_started(t):
    """The directory is moved and a link put there, descriptors are closed and replaced, the asking
    process writes over its own words: what runs is what was shown."""
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]}, files={"swap.py": SWAP, "argv.py": ARGV})
    process = run(t, box, ws, "/usr/bin/python3", "swap.py")
    q = asked(t)[0]
    t.equal(q["subject"], "/usr/bin/cat f", "shown")
    t.wait_until(lambda: os.path.islink(os.path.join(ws, "good")), 20, "it is replaced")
    approve(t, q, "--once")
    t.equal(got(process)[1].strip(), "(4, 0)", "it ran")
    t.equal(t.read(os.path.join(ws, "out")) if hasattr(t, "read") else
            open(os.path.join(ws, "out")).read(), "good\n", "where it was shown")
    process = run(t, box, ws, "/usr/bin/python3", "argv.py")
    q = asked(t)[0]  # whatever was there when it asked
    approve(t, q, "--once")
    t.equal(got(process)[1], {"/usr/bin/cat a": "first\n",
                              "/usr/bin/cat b": "second\n"}[q["subject"]], "as it was shown")


# the stand-in's memory is written over by its parent while it waits
ARGV = r"""
import ctypes, os, subprocess, threading, time
p = subprocess.Popen(["/usr/bin/cat", "a"])
stop = False
def rewrite():
    while not stop:
        try:
            maps = open(f"/proc/{p.pid}/maps").read().splitlines()
            stack = next(m for m in maps if "[stack]" in m).split(" ")[0]
            low, high = (int(x, 16) for x in stack.split("-"))
            with open(f"/proc/{p.pid}/mem", "r+b", 0) as mem:
                mem.seek(low)
                data = mem.read(high - low)
                at = data.rfind(b"/usr/bin/cat\0a\0")
                if at >= 0:
                    mem.seek(low + at)
                    mem.write(b"/usr/bin/cat\0b\0")
        except (OSError, StopIteration, ValueError):
            pass
thread = threading.Thread(target=rewrite)
thread.start()
p.wait()
stop = True
thread.join()
"""

HOSTILE = RACE + r"""
import resource
def odd(data, fds):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/.ward/guard/socket")
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds
              else [])
    s.settimeout(30)
    try:
        return len(s.recv(100))
    except OSError as error:
        return type(error).__name__
here = os.open(".", os.O_PATH | os.O_DIRECTORY)
head = struct.pack("<IIii", 0x31636477, 1, 1, 0)
good = b"/usr/bin/cat\0cat\0"
print([odd(head + good, []), odd(head + good, [null] * 3), odd(head + good, [null] * 9),
       odd(b"x", [null] * 4), odd(head, [null] * 4), odd(head + good + b"more\0", [null] * 4),
       odd(head + good[:-1], [null] * 4), odd(struct.pack("<IIii", 0x31636477, 1, -1, 0) + good,
       [null] * 4), odd(struct.pack("<IIii", 0x31636477, 1, 1, 1) + good + b"LD_PRELOAD=x\0",
       [null] * 4), odd(b"x" * 120000, [null] * 4)], flush=True)
print(answer(request("/usr/bin/env", ["env"], [null] * 3 + [here])), flush=True)
print(answer(request("/usr/bin/cat", ["cat", "a"], [null] * 3 + [null])), flush=True)
many = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(300)]
for s in many:
    s.setblocking(False)
    try:
        s.connect("/.ward/guard/socket")
    except OSError:
        pass
time.sleep(0.5)
[s.close() for s in many]
print("end", flush=True)
"""


def test_hostile_requests(t):
    """What is no request is dropped, a program that is not guarded is not started, a directory that
    is none fails, hundreds of connections change nothing for those after them."""
    box, ws = start(t, {"allow": [*ALLOW, "cat a"]}, files={"hostile.py": HOSTILE})
    rc, out, err = got(run(t, box, ws, "/usr/bin/python3", "hostile.py"))
    lines = out.splitlines()
    t.equal(lines[0], str([0] * 10), f"dropped: {out} {err}")
    t.equal((lines[1][:3], lines[-1]), ("(6,", "end"), f"refused: {out} {err}")
    t.equal(lines[2][:3], "(6,", f"not a directory: {out}")
    t.equal(got(run(t, box, ws, "cat", "a")), (0, "first\n", ""), "and it goes on")


@by_turns
def test_ends_and_signals(t):
    """Exit codes and signals come back; a signal for the stand-in reaches the program; a stand-in
    that is killed takes its question and its program along."""
    box, ws = start(t, {"allow": [*ALLOW, "sleep *", "kill *"], "ask": ["cat"]})
    script = ("sleep 60 & p=$!; %s wait $p; echo $?")
    pause = ("python3 -c 'import time; time.sleep(0.7)'; ")
    t.equal(got(run(t, box, ws, "sleep", "x"))[0], 1, "its exit code")
    for name, number in (("TERM", 15), ("HUP", 1), ("KILL", 9), ("USR1", 10)):
        code, out, err = got(run(t, box, ws, "bash", "-c",
                                 script % (pause + f"kill -{name} $p;")))
        t.equal(out.split(), [str(128 + number)], f"{name} {err}")
    running = ("for i in /proc/[0-9]*; do read -r x < $i/comm 2>/dev/null && echo $x; done")
    t.wait_until(lambda: not re.search(r"sleep|memfd", got(run(t, box, ws, "bash", "-c",
                                                               running))[1]), 20, "none is left")
    process = run(t, box, ws, "bash", "-c", f"cat a & p=$!; {pause} kill -9 $p; wait $p; echo $?")
    t.equal(got(process)[1].split(), ["137"], "killed while it waits")
    t.wait_until(lambda: not questions(t), 20, "its question is gone")
    # a stop and what ends it
    out = got(run(t, box, ws, "bash", "-c",
                  "set -m; sleep 1 & p=$!; " + pause + "kill -TSTP $p; " + pause +
                  "jobs; kill -CONT $p; " + pause * 2 + "wait $p; echo $?"))[1]
    t.check("Stopped" in out and out.split()[-1] == "0", f"job control: {out}")


def test_foreground(t):
    """As a run's own command, on the terminal's behalf, with standard input."""
    ws = t.workspace({"a": "first\n"})
    path = policy(t, {"allow": [*ALLOW, "cat *"]})
    r = t.ward("run", "-p", path, "--", "sh", "-c", "echo through | cat - a", cwd=ws)
    t.equal((r.rc, r.out), (0, "through\nfirst\n"), r.err)
    r = t.ward("run", "-p", path, "--", "cat", "a", cwd=ws)
    t.equal((r.rc, r.out), (0, "first\n"), r.err)


def test_policy(t):
    """What cannot be held is refused; the plan says what there is, and when it is no wall."""
    ws = t.workspace({"prog": "#!/bin/sh\n"})
    os.chmod(os.path.join(ws, "prog"), 0o755)
    for commands, words in (({"ask": ["nosuch"]}, "there is no program nosuch"),
                            ({"ask": [os.path.join(ws, "prog")]}, "is a script for"),
                            ({"ask": ["cat  a"]}, "not a pattern"),
                            ({"ask": ["/usr/bin/ x"]}, "names no program"),
                            ({"ask": ["cat a"]}, "ask is no wall then"),
                            ({"allow": ["cat a *", "true"]}, "/usr/bin/cat: allow a *")):
        r = t.ward("plan", "-p", policy(t, commands), "--full", "--", "true", cwd=ws)
        b = t.ward("plan", "-p", policy(t, commands), "--", "true", cwd=ws)
        t.contains(r.out + r.err + b.out, words, f"{commands}")
