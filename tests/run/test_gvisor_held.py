"""What stands still behind gVisor: pause, the cpu limit and a suspended ward, where no cgroup can
freeze anything. gVisor's own kernel holds its programs; a SIGSTOP for all would come to its tracer,
and end it."""
import os
import signal
import time

from harness import by_turns, needs, timeout
from harness.bare import bare
from harness.boxes import box, clean, supervisor
from harness.gvisor import other_version, usable

GVISOR = ("--isolation", "gvisor")
TICK = os.sysconf("SC_CLK_TCK")
BURN = ("import time\nprint('ready', flush=True)\nend = time.monotonic() + %s\n"
        "while time.monotonic() < end:\n    pass")
# Programs come and go all the time: what a tracer has to do with.
STORM = "for i in 1 2 3; do (while :; do /bin/true; done) & done; echo begun > begun; wait"


def beneath(t, pid):
    """(state, ticks of processors) of every process beneath one, without the first, which is ward's
    own."""
    rows, found = {}, {pid}
    with t.root():
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    words = f.read().rsplit(b")", 1)[1].split()
                rows[int(name)] = (int(words[1]), words[0].decode(),
                                   int(words[11]) + int(words[12]))
            except OSError:
                pass
    for _ in range(9):
        found |= {child for child, row in rows.items() if row[0] in found}
    return [rows[p][1:] for p in found - {pid} if p in rows]


def is_still(t, pid, seconds=0.4):
    """Nothing beneath it uses a processor, to speak of."""
    before = sum(ticks for _, ticks in beneath(t, pid))
    time.sleep(seconds)
    return sum(ticks for _, ticks in beneath(t, pid)) - before <= 0.1 * seconds * TICK


def moves(t, pid):
    before = sum(ticks for _, ticks in beneath(t, pid))
    t.wait_until(lambda: sum(ticks for _, ticks in beneath(t, pid)) - before > 0.2 * TICK, 20,
                 "nothing moves")


@by_turns
@needs("unsanitized")
@timeout(120)
def test_pause_is_the_kernels(t):
    """A program that computes and calls nobody stands still, nobody gets a SIGSTOP, and it goes on;
    programs that come and go outlive being paused again and again, on every platform of tracers."""
    usable(t)
    ws = t.workspace()
    run = box(t, *GVISOR, "--", "python3", "-c", BURN % 1000, cwd=ws, wrap=bare(t))
    pid = supervisor(t, run)
    moves(t, pid)
    t.equal(t.ward("pause", run).rc, 0)
    t.wait_until(lambda: is_still(t, pid), 20, "it does not stand still")
    t.check(not any(state == "T" for state, _ in beneath(t, pid)),
            "somebody was stopped by a signal")
    t.equal(t.ward("resume", run).rc, 0)
    moves(t, pid)
    t.equal(t.ward("rm", "-f", run).rc, 0)
    for platform in ("systrap", "ptrace"):
        run = box(t, *GVISOR, "--set", f"gvisor.platform={platform}", "--", "sh", "-c", STORM,
                  cwd=ws, wrap=bare(t))
        t.wait_until(lambda: os.path.exists(os.path.join(ws, "begun")), 20,
                     "the storm does not begin")
        pid = supervisor(t, run)
        t.equal(t.ward("pause", run).rc, 0)
        t.wait_until(lambda: is_still(t, pid), 20, f"{platform}: the storm does not stand still")
        t.equal(t.ward("resume", run).rc, 0)
        moves(t, pid)
        for _ in range(8):
            t.equal((t.ward("pause", run).rc, t.ward("resume", run).rc), (0, 0), platform)
        r = t.ward("exec", run, "--", "sh", "-c", "echo alive; exit 3")
        t.equal((r.rc, r.out), (3, "alive\n"), f"{platform}: {r.err}")
        t.equal(t.ward("rm", "-f", run).rc, 0)
        os.unlink(os.path.join(ws, "begun"))
    clean(t)


@by_turns
@needs("unsanitized")
def test_with_a_runsc_that_nobody_knows(t):
    """Its own command pauses; a cpu limit would start that command all the time and is refused
    where no cgroup holds it."""
    usable(t)
    env, ws = other_version(t), t.workspace()
    r = t.ward("run", *GVISOR, "--cpus", "0.3", "--", "true", cwd=ws, env=env, wrap=bare(t))
    t.check(r.rc == 125 and "resources.cpu_limit: there is no cgroup" in r.err
            and "bookworm-backports" in r.err, r)
    run = box(t, *GVISOR, "--", "python3", "-c", BURN % 1000, cwd=ws, env=env, wrap=bare(t))
    pid = supervisor(t, run)
    moves(t, pid)
    t.equal(t.ward("pause", run).rc, 0)
    t.wait_until(lambda: is_still(t, pid), 20, "it does not stand still")
    t.equal(t.ward("resume", run).rc, 0)
    moves(t, pid)
    clean(t)


def test_suspend_on_a_terminal(t):
    """The leader of the terminal's session passes the word on, and what the command does goes on
    after it."""
    usable(t)
    outer, line = os.openpty()
    p = t.popen([*bare(t), *t.ward_argv("run", *GVISOR, "--", "python3", "-c", BURN % 1000)],
                cwd=t.workspace(), stdin=line, stdout=line, stderr=line)
    os.close(line)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(outer, 4096)
    p.send_signal(signal.SIGTSTP)
    t.wait_until(lambda: is_still(t, p.pid), 20, "a suspended ward's sandbox goes on")
    t.check(not any(state == "T" for state, _ in beneath(t, p.pid)),
            "somebody was stopped by a signal")
    p.send_signal(signal.SIGCONT)
    moves(t, p.pid)
    p.send_signal(signal.SIGTERM)
    p.wait(30)
    os.close(outer)
    t.equal(p.returncode, 143, "its end")


@by_turns
@needs("unsanitized")
@timeout(120)
def test_cpu_limit_and_suspend(t):
    """The cpu limit holds without a cgroup, and lets a storm of programs live; ward stops with its
    sandbox and both go on."""
    usable(t)
    ws = t.workspace()
    r = t.ward("run", *GVISOR, "--cpus", "0.3", "--", "python3", "-c", BURN % 3, cwd=ws,
               report=True, wrap=bare(t), timeout=60)
    t.equal((r.rc, r.report["limits"]["cpu"]["held_by"]), (0, "watch"), r.err)
    t.check(r.report["cpu_ms"] < 0.6 * 1000 * r.seconds,
            f"{r.report['cpu_ms']} ms of processor time in {r.seconds:.1f} s")
    r = t.ward("run", *GVISOR, "--cpus", "0.3", "--", "sh", "-c",
               "for i in 1 2 3; do (for k in 1 2 3 4 5 6 7 8; do /bin/true; done) & done; wait; "
               "echo through", cwd=ws, wrap=bare(t), timeout=60)
    t.equal((r.rc, r.out), (0, "through\n"), r.err)
    p = t.popen([*bare(t), *t.ward_argv("run", *GVISOR, "--", "python3", "-c", BURN % 1000)],
                cwd=ws)
    t.equal(p.stdout.readline(), b"ready\n")
    p.send_signal(signal.SIGTSTP)
    t.wait_until(lambda: is_still(t, p.pid), 20, "a suspended ward's sandbox goes on")
    p.send_signal(signal.SIGCONT)
    moves(t, p.pid)
    p.send_signal(signal.SIGTERM)
    t.equal(t.finish_ward(p).rc, 143, "its end")
