"""Detached sandboxes: they start, are found, run commands, end and leave nothing; nothing that is
dead or stuck blocks."""
import json
import os
import signal
import time

from harness import by_turns
from harness.boxes import box, listed, look, supervisor


def test_life(t):
    ws = t.workspace({"f": "inside\n"})
    b = box(t, "--name", "web", cwd=ws)
    t.equal(listed(t)[b]["state"], "running", "state")
    t.equal(listed(t)[b]["name"], "web", "name")
    for word in ("web", b, b[-6:], b[-6:-2], b[:-1]):
        t.equal(t.ward("exec", word, "cat", "f").out, "inside\n", f"by {word}")
    r = t.ward("ps")
    t.contains(r.out, "web", "ps")
    t.contains(r.out, "(idle)", "ps")
    t.equal(t.ward("ps", "-q").out, "web\n", "ps -q")
    t.equal(t.ward("rm", "web").rc, 125, "rm of a living one")
    t.equal(t.ward("stop", "web").rc, 0, "stop")
    t.equal(listed(t), {}, "ps after stop")
    t.equal(listed(t, "-a")[b]["state"], "ended", "ps -a after stop")
    r = t.ward("exec", "web", "true")
    t.equal(r.rc, 125, "exec in one that has ended")
    t.contains(r.err, "has ended with exit code 0", "exec in one that has ended")
    t.equal(t.ward("rm", "web").rc, 0, "rm")
    t.equal(listed(t, "-a"), {}, "ps -a after rm")
    t.equal(t.ward("exec", "web", "true").rc, 125, "exec of none")


def test_command(t):
    ws = t.workspace()
    b = box(t, "--", "sh", "-c",
            "echo out; echo err >&2; while [ ! -e go ]; do sleep 0.05; done; exit 7", cwd=ws)
    t.equal(listed(t)[b]["command"][0], "sh", "command")
    t.write(ws, {"go": ""})
    r = t.ward("wait", b)
    t.equal((r.rc, r.out), (7, "7\n"), "wait")
    r = t.ward("wait", "--json", b)
    t.equal(json.loads(r.out)["exit"], {"code": 7, "signal": None}, "wait --json")
    t.equal(json.loads(r.out)["run"], b, "the report's run")


def test_not_found(t):
    """Who leaves a sandbox running learns at once that there is no such command; nothing of it is
    left."""
    ws = t.workspace({"script": "#!/no/such/shell\n", "text": "no program\n"})
    os.chmod(os.path.join(ws, "script"), 0o755)
    for command, code in (("no-such-program", 127), ("./script", 127), ("./text", 126)):
        r = t.ward("run", "-d", "--name", "none", "--", command, cwd=ws)
        t.equal((r.rc, r.out), (code, ""), f"run -d of {command}")
        t.contains(r.err, f"running {command} inside", command)
    t.contains(t.ward("run", "-d", "--", "no-such-program", cwd=ws).err, "--ro DIR")
    t.equal(json.loads(t.ward("run", "-d", "--json", "--", "no-such-program",
                              cwd=ws).err)["refused"]["what"], "running no-such-program inside")
    t.equal(listed(t, "-a"), {}, "ps -a")
    for code in (0, 3):
        b = box(t, "--", "sh", "-c", f"exit {code}", cwd=ws)
        t.equal(t.ward("wait", b).rc, code, "one that ends at once")


def test_all_last_words_are_heard(t):
    """Ends of several commands that its supervisor reads all at once, the sandbox's own behind
    them."""
    ws = t.workspace()
    wait = "touch ready.$1; until [ -e go ]; do sleep 0.02; done; "
    b = box(t, "--", "sh", "-c", wait + "sleep 0.5; exit 7", "sh", "0", cwd=ws)
    others = [t.ward_start("exec", b, "--", "sh", "-c", wait, "sh", str(i)) for i in range(1, 5)]
    t.wait_until(lambda: all(os.path.exists(f"{ws}/ready.{i}") for i in range(5)), 20,
                 "all of them run")
    pid = supervisor(t, b)
    inside = int(look(t, f"/proc/{pid}/task/{pid}/children").split()[0])
    with t.root():
        os.kill(pid, signal.SIGSTOP)
    t.write(ws, {"go": ""})

    def is_over():
        return not os.path.exists(f"/proc/{inside}") or look(t,
                                                             f"/proc/{inside}/stat").rpartition(
                                                                 ")")[2].split()[0] == "Z"
    t.wait_until(is_over, 20, "the sandbox ends")
    with t.root():
        os.kill(pid, signal.SIGCONT)
    t.equal(t.ward("wait", b).rc, 7, "its exit code")
    for p in others:
        t.equal(p.wait(), 0, "an exec's exit code")


def test_exec_exit_and_streams(t):
    ws = t.workspace({"script": "#!/bin/sh\n"})
    b = box(t, cwd=ws)
    r = t.ward("exec", b, "--", "sh", "-c", "echo out; echo err >&2; exit 9")
    t.equal((r.rc, r.out, r.err), (9, "out\n", "err\n"), "streams")
    data = os.urandom(1 << 20)
    r = t.ward("exec", "-i", b, "cat", input=data)
    t.check(r.out_bytes == data, "a megabyte through cat came back changed")
    t.equal(t.ward("exec", b, "cat", input="x").out, "", "standard input without -i")
    t.equal(t.ward("exec", b, "sh", "-c", "kill -TERM $$").rc, 143, "signal")
    r = t.ward("exec", b, "no-such-program")
    t.equal(r.rc, 127, "not found")
    t.contains(r.err, "no-such-program", "not found")
    t.equal(t.ward("exec", b, "./script").rc, 126, "not executable")
    r = t.ward("exec", "-C", "/no/such", b, "true")
    t.equal(r.rc, 125, "no such directory")
    t.contains(r.err, "/no/such", "no such directory")
    t.equal(t.ward("exec", "-C", "/tmp", b, "pwd").out, "/tmp\n", "-C")
    t.equal(t.ward("exec", b, "pwd").out, ws + "\n", "the directory")
    r = t.ward("exec", "--env", "A=b c", "--env", "PASSED", "--env", "HOME=/x", b, "sh", "-c",
               "echo $A,$PASSED,$HOME",
               env={"PASSED": "on"})
    t.equal(r.out, "b c,on,/x\n", "--env")
    r = t.ward("exec", "--env", "NOT_THERE", b, "true")
    t.equal(r.rc, 125, "--env without a value")
    t.equal(t.ward("exec", b, "sh", "-c", "sleep 60 & echo done").out, "done\n",
            "what is left behind does not block")
    r = t.ward("exec", b, "sh", "-c", "echo " + "x" * 100000)
    t.equal(len(r.out), 100001, "a long command line")
    r = t.ward("exec", b, "sh", "-c", ": " + "x" * 60000, "y" * 60000, "z" * 60000)
    t.equal(r.rc, 125, "a command line that is too long")
    t.contains(r.err, "longer than", "a command line that is too long")
    t.equal(t.ward("exec", b).rc, 2, "no command")


def test_exec_signals(t):
    ws = t.workspace()
    b = box(t, cwd=ws)
    p = t.ward_start("exec", b, "sh", "-c",
                     "trap 'echo got; exit 5' TERM; touch ready; while :; do sleep 0.05; done",
                     cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 20, "the command did not start")
    with t.root():
        p.send_signal(signal.SIGTERM)
    r = t.finish_ward(p)
    t.equal((r.rc, r.out), (5, "got\n"), "SIGTERM to ward exec")
    # who goes away hangs up
    p = t.ward_start("exec", b, "sh", "-c",
                     "exec 2>/dev/null; trap 'touch hup; exit' HUP; touch two; while :; do sleep "
                     "0.05; done", cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/two"), 20, "the command did not start")
    with t.root():
        p.kill()
    t.wait_until(lambda: os.path.exists(f"{ws}/hup"), 20, "the command got no SIGHUP")


def test_many_at_once(t):
    b = box(t, cwd=t.workspace())
    running = [t.ward_start("exec", b, "sh", "-c", f"sleep 0.2; exit {i}") for i in range(20)]
    t.equal([t.finish_ward(p).rc for p in running], list(range(20)), "exit codes")


def test_refusals(t):
    ws = t.workspace({"bad.yaml": "version: 1\nfilesystem: {mode: no-such}\nnetwork: 3\n"})
    r = t.ward("run", "-d", "-p", "bad.yaml", "--", "true", cwd=ws, report=True)
    t.equal(r.rc, 125, "a bad policy")
    t.contains(r.err, "bad.yaml:2:", "every error of the policy is printed")
    t.contains(r.err, "bad.yaml:3:", "every error of the policy is printed")
    t.check("refused" in r.report, "the report says why")
    r = t.ward("run", "-d", "--json", "-p", "bad.yaml", "--", "true", cwd=ws)
    t.check("refused" in json.loads(r.err.splitlines()[-1]), "--json says why")
    for name in ("-x", "", "a" * 64, "a/b", "..", "a b", "a\n"):
        r = t.ward("run", "-d", f"--name={name}", cwd=ws)
        t.equal(r.rc, 125, f"name {name!r}")
    r = t.ward("run", "--name", "x", "--", "true", cwd=ws)
    t.equal(r.rc, 125, "--name without -d")
    box(t, "--name", "taken", cwd=ws)
    r = t.ward("run", "-d", "--name", "taken", cwd=ws)
    t.equal(r.rc, 125, "a name that is taken")
    t.contains(r.err, "already a sandbox named", "a name that is taken")
    t.equal(len(listed(t, "-a")), 1, "refused ones leave nothing")
    t.equal(t.ward("stop", "taken").rc, 0, "stop")
    box(t, "--name", "taken", cwd=ws)
    r = t.ward("run", "-d", cwd=t.runtime_dir)
    t.equal(r.rc, 125, "the runtime directory as workspace")
    t.contains(r.err, "runtime directory", "the runtime directory as workspace")
    for verb in ("stop", "kill", "pause", "resume", "wait", "rm", "exec"):
        words = ["nobody", "true"] if verb == "exec" else ["nobody"]
        r = t.ward(verb, *words)
        t.equal(r.rc, 125, f"{verb} of none")
        t.contains(r.err, "there is no sandbox nobody", verb)
    t.equal(t.ward("kill", "--signal", "NOPE", "taken").rc, 2, "a signal that is none")
    t.equal(t.ward("stop", "--timeout", "soon", "taken").rc, 2, "a time that is none")
    t.equal(t.ward("stop").rc, 2, "stop of nothing")


def test_report_file(t):
    ws = t.workspace()
    path = os.path.join(t.fresh_dir(), "report.json")
    b = box(t, "--report", path, "--", "sh", "-c", "exit 3", cwd=ws)
    t.equal(t.ward("wait", b).rc, 3, "wait")
    t.wait_until(lambda: t.read(path), 20, "no report")
    t.equal(json.loads(t.read(path))["exit"]["code"], 3, "--report")


def test_stop_and_kill(t):
    ws = t.workspace()
    obeys = box(t, "--", "sh", "-c", "trap 'exit 4' TERM; touch a; while :; do sleep 0.05; done",
                cwd=ws)
    stubborn = box(t, "--", "sh", "-c", "trap '' TERM; touch b; while :; do sleep 0.05; done",
                   cwd=ws)
    usr1 = box(t, "--", "sh", "-c", "trap 'echo yes > usr1; exit 6' USR1; touch c; while :; do "
               "sleep 0.05; done", cwd=ws)
    t.wait_until(lambda: all(os.path.exists(f"{ws}/{n}") for n in "abc"), 20, "they did not start")
    t.equal(t.ward("stop", obeys).rc, 0, "stop")
    t.equal(t.ward("wait", obeys).out, "4\n", "a command that cleans up")
    r = t.ward("stop", "--timeout", "0.3", stubborn)
    t.equal(r.rc, 0, "stop by force")
    t.equal(t.ward("wait", stubborn).rc, 143, "one that was stopped")
    t.equal(t.ward("kill", "--signal", "SIGUSR1", usr1).rc, 0, "kill --signal")
    t.equal(t.ward("wait", usr1).rc, 6, "a signal that the command handles")
    t.equal(t.read(ws, "usr1"), "yes\n", "the handler ran")


def test_kill_all(t):
    ws = t.workspace()
    ids = [box(t, "--", "sh", "-c", f"sleep 100 & sleep 100 & touch r{i}; wait", cwd=ws)
           for i in range(4)]
    t.wait_until(lambda: all(os.path.exists(f"{ws}/r{i}") for i in range(4)), 20,
                 "they did not start")
    r = t.ward("kill", "--all", "--json")
    t.equal(r.rc, 0, "kill --all")
    t.equal({s["id"]: s["state"] for s in json.loads(r.out)["sandboxes"]},
            {i: "ended" for i in ids}, "all have ended")
    t.equal(t.ward("rm", "--all").rc, 0, "rm --all")
    t.equal(listed(t, "-a"), {}, "ps -a")


def test_pause(t):
    ws = t.workspace()
    b = box(t, "--", "sh", "-c", "while :; do echo x >> ticks; sleep 0.02; done", cwd=ws)

    def ticks():
        return len(t.read(ws, "ticks") or "")
    t.wait_until(lambda: ticks() > 4, 20, "it did not start")
    t.equal(t.ward("pause", b).rc, 0, "pause")
    t.equal(listed(t)[b]["state"], "paused", "state")
    t.wait_until(lambda: still(ticks), 20, "it went on")
    r = t.ward("exec", b, "true")
    t.equal(r.rc, 125, "exec while paused")
    t.contains(r.err, "ward resume", "the remedy")
    before = ticks()
    t.equal(t.ward("resume", b).rc, 0, "resume")
    t.wait_until(lambda: ticks() > before, 20, "it did not go on")
    t.ward("pause", b)
    t.equal(t.ward("kill", b).rc, 0, "kill while paused")
    t.equal(listed(t), {}, "it is gone")


def still(count):
    before = count()
    time.sleep(0.3)
    return count() == before


def test_killed_supervisor(t):
    ws = t.git_repo()
    b = box(t, "--", "sh", "-c",
            "mkdir -p sub/.git/hooks; echo evil > .envrc; touch ready; sleep 100", cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 20, "it did not start")
    pid = supervisor(t, b)
    with t.root():
        os.kill(pid, signal.SIGKILL)
    t.wait_until(lambda: listed(t).get(b, {}).get("state") == "dead", 20,
                 "ps does not show it as dead")
    t.wait_until(lambda: not os.path.exists(f"{ws}/.envrc"), 20, "it was not swept")
    r = t.ward("exec", b, "true")
    t.equal(r.rc, 125, "exec in a dead one")
    t.contains(r.err, "supervisor was killed", "exec in a dead one")
    t.equal(t.ward("wait", b).rc, 137, "wait for a dead one")
    t.equal(t.ward("rm", b).rc, 0, "rm of a dead one")
    t.equal(listed(t, "-a"), {}, "ps -a")


def test_half_made_entries(t):
    """What a ward-box that was killed while it was starting left in the register is not in the way,
    and goes."""
    b = box(t, cwd=t.workspace())
    old = "20200101-000000-aaaaaa"
    for top in (t.state_dir, t.runtime_dir):
        path = os.path.join(top, "boxes", old)
        t.run("mkdir", "-m", "700", path, check=True)
    t.run("touch", os.path.join(t.state_dir, "boxes", old, "info.new"), check=True)
    t.equal(set(listed(t, "-a")), {b}, "ps")
    # an entry that is being made just now is left alone: only age tells
    t.equal(t.ward("recover").rc, 0, "recover")
    t.check(os.path.isdir(os.path.join(t.state_dir, "boxes", old)),
            "one that is being made was removed")

    def gone():
        t.ward("recover")
        return not any(os.path.isdir(os.path.join(top, "boxes", old))
                       for top in (t.state_dir, t.runtime_dir))
    t.wait_until(gone, 30, "it stays")
    t.equal(t.ward("exec", b, "true").rc, 0, "the living one")


test_half_made_entries.slow = True


@by_turns
def test_stuck_supervisor(t):
    b = box(t, cwd=t.workspace())
    pid = supervisor(t, b)
    with t.root():
        os.kill(pid, signal.SIGSTOP)
    t.equal(listed(t)[b]["state"], "running", "ps asks nobody")
    r = t.ward("exec", b, "true")
    t.equal(r.rc, 125, "exec in a stuck one")
    t.contains(r.err, "does not answer", "exec in a stuck one")
    r = t.ward("rm", "--force", b)
    t.equal((r.rc, r.err), (0, ""), "rm --force")
    t.equal(listed(t, "-a"), {}, "ps -a")


def test_supervisor_keeps_nothing_of_the_caller(t):
    ws = t.workspace()
    reading, writing = os.pipe()
    b = box(t, cwd=ws, pass_fds=(writing,))
    os.close(writing)
    t.equal(os.read(reading, 1), b"", "a descriptor of the caller's is still open in ward-box")
    os.close(reading)
    pid = supervisor(t, b)
    t.equal(look(t, f"/proc/{pid}/comm"), "ward-box\n", "name")
    with t.root():
        t.equal([os.readlink(f"/proc/{pid}/fd/{i}") for i in range(3)], ["/dev/null"] * 3, "0-2")
        t.equal(os.readlink(f"/proc/{pid}/cwd"), "/", "directory")
        t.equal(os.getsid(pid), pid, "session")


def test_idle_is_cheap(t):
    b = box(t, cwd=t.workspace())
    pid = supervisor(t, b)
    t.equal(t.ward("exec", b, "true").rc, 0, "exec")

    def pids():
        children = look(t, f"/proc/{pid}/task/{pid}/children").split()
        return [pid, *map(int, children)]

    def pss():
        total = 0
        for p in pids():
            for line in look(t, f"/proc/{p}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        return total

    def wakeups():
        for line in look(t, f"/proc/{pid}/status").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
        return 0
    t.wait_until(lambda: still(wakeups), 20, "an idle sandbox wakes up")
    if "asan" not in t.ward_path:
        t.wait_until(lambda: pss() <= 400, 20, "an idle sandbox holds more than 400 KiB")


def test_supervisor_is_confined(t):
    """It gives up what it does not need, and can still do what it must: mount again, sweep, remove
    its cgroups."""
    ws = t.git_repo({".envrc": "old\n"})
    b = box(t, "--", "sleep", "100", cwd=ws)
    pid = supervisor(t, b)

    def field(name):
        for line in look(t, f"/proc/{pid}/status").splitlines():
            if line.startswith(name + ":"):
                return line.split()[1]
        return None
    t.wait_until(lambda: field("Seccomp") == "2", 20, "no filter")
    t.equal(field("NoNewPrivs"), "1", "no_new_privs")
    module, raw, net = 1 << 16, 1 << 17, 1 << 12
    t.equal(int(field("CapPrm"), 16) & (module | raw | net), 0, "capabilities")
    t.equal(t.ward("exec", b, "sh", "-c", "echo x >> .envrc").rc, 2, "a protected file")
    t.write(ws, {"new": "saved\n"})
    os.rename(f"{ws}/new", f"{ws}/.envrc")	# as every editor does

    def protected():
        r = t.ward("exec", b, "sh", "-c", "cat .envrc; echo evil >> .envrc")
        return "saved" in r.out and r.rc != 0
    t.wait_until(protected, 20, "the file is not protected again")
    t.ward("exec", b, "sh", "-c",
           "echo evil > .autoenv; git commit -q --allow-empty -m from-inside")
    t.equal(t.ward("stop", "--timeout", "1", b).rc, 0, "stop")
    t.check(not os.path.exists(f"{ws}/.autoenv"), "it was not swept")
    report = json.loads(t.ward("wait", "--json", b).out)
    t.check(any(".autoenv" in line for line in report["quarantine"]),
            "the report names what was moved")


ASK = """
import os, socket, struct, sys
c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
c.settimeout(10)
try:
    c.connect(sys.argv[1])
    c.send(struct.pack("<HHIii", 0x7764, 0, 1, 0, 0))
    print("answered" if c.recv(4096) else "closed")
except OSError as error:
    print("closed", error)
"""


def test_nobody_else_is_answered(t):
    b = box(t, cwd=t.workspace())
    path = os.path.join(t.runtime_dir, "boxes", b, "control")

    def ask(*prefix, path=path, **options):
        return t.run(*prefix, "python3", "-c", ASK, path, **options).out.split()[0]
    t.equal(ask(), "answered", "the same user")
    t.equal(ask("unshare", "-U"), "closed", "the same user in another user namespace")
    with t.root():
        t.equal(os.stat(t.runtime_dir).st_mode & 0o777, 0o700, "mode of the runtime directory")
    other = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    t.equal(ask(*other, root=True), "closed", "another user")
    # and if somebody opened the way
    with t.root():
        os.chmod(path, 0o777)
        fd = os.open(os.path.dirname(path), os.O_PATH)
    try:
        r = ask(*other, root=True, path=f"/proc/self/fd/{fd}/control", pass_fds=(fd,))
    finally:
        os.close(fd)
    t.equal(r, "closed", "another user who reaches the socket")
    if t.as_user == "user":
        t.equal(ask(root=True), "answered", "root")


test_nobody_else_is_answered.needs = ("root",)


CROWD = """
import os, socket, struct, subprocess, sys
os.chdir(sys.argv[1])

def connect():
    c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    c.settimeout(10)
    c.connect("control")
    return c
held = [connect() for _ in range(120)]
while subprocess.run(sys.argv[2:], stderr=subprocess.DEVNULL).returncode:
    pass
head = lambda op, a: struct.pack("<HHIii", 0x7764, 0, op, a, 0)
for bad in (b"x", b"", head(99, 0), head(2, 2**31 - 1), head(2, 1) + b"\\0sh", os.urandom(100000)):
    c = connect()
    c.send(bad)
    try:
        print(bad[:20], "answered" if c.recv(4096) else "closed")
    except ConnectionError:
        print(bad[:20], "closed")
"""


@by_turns
def test_silent_and_broken_clients(t):
    """Who says nothing, or nonsense, or comes in numbers, keeps nobody else from being answered."""
    b = box(t, cwd=t.workspace())
    r = t.run("python3", "-c", CROWD, os.path.join(t.runtime_dir, "boxes", b),
              *t.ward_argv("exec", b, "true"), check=True)
    t.check("answered" not in r.out, r.out)
    t.equal(len(r.out.splitlines()), 6, "cases")
    t.equal(t.ward("exec", b, "echo", "fine").out, "fine\n", "after all that")


def test_under_review(t):
    """Review mode, continued runs and --apply-on-exit work without somebody who waits, too."""
    ws = t.workspace()
    b = box(t, "--review", "--", "sh", "-c", "echo x > f", cwd=ws)
    t.equal(t.ward("wait", b).rc, 0, "wait")
    t.check(not os.path.exists(f"{ws}/f"), "the workspace was changed")
    again = box(t, "--continue", b, "--", "sh", "-c", "cat f; echo y >> f", cwd=ws)
    t.equal(again, b, "a continued run keeps its id")
    t.equal(t.ward("wait", b).rc, 0, "wait")
    t.equal(t.ward("logs", b).out, "x\n", "the log is of the last run")
    t.equal(t.ward("apply", b, cwd=ws).rc, 0, "apply")
    t.equal(t.read(ws, "f"), "x\ny\n", "what was applied")
    b = box(t, "--review", "--apply-on-exit", "--", "sh", "-c", "echo z > g", cwd=ws)
    t.equal(t.ward("wait", b).rc, 0, "wait")
    t.equal(t.read(ws, "g"), "z\n", "applied when wait returns")


def test_limits_hold(t):
    b = box(t, "--timeout", "0.3", "--", "sleep", "100", cwd=t.workspace())
    t.equal(t.ward("wait", b).rc, 124, "the time limit")
    report = json.loads(t.ward("wait", "--json", b).out)
    t.check(report["limits"]["timeout"]["hit"], "the report says so")
    b = box(t, "--memory", "64M", cwd=t.workspace())
    r = t.ward("exec", b, "python3", "-c", "x = bytearray(400 << 20); print(len(x))")
    t.check(r.rc != 0 and "419430400" not in r.out,
            f"a command of exec got more memory than the sandbox has: {r}")
