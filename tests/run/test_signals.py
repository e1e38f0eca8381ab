"""Signals: forwarded to the command, then enforced; nothing survives the end."""
import os
import signal
import time

from harness import by_turns, serial

TRAP = "trap 'echo got {0}; exit 3' {0}; touch ready; while :; do sleep 0.05; done"


def started(t, *argv, options=(), **more):
    ws = t.workspace()
    process = t.ward_start("run", *options, "--", *argv, cwd=ws, **more)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 10, "the command did not start")
    return process, ws


def test_signals_are_forwarded(t):
    for name in ("TERM", "INT", "HUP"):
        process, _ = started(t, "/bin/sh", "-c", TRAP.format(name))
        process.send_signal(getattr(signal, "SIG" + name))
        r = t.finish_ward(process, 10)
        t.contains(r.out, f"got {name}")
        t.equal(r.rc, 3, f"exit after SIG{name}")


def test_exit_code_of_a_signal(t):
    process, _ = started(t, "/bin/sh", "-c", "touch ready; exec sleep 20")
    process.send_signal(signal.SIGTERM)
    t.equal(t.finish_ward(process, 10).rc, 128 + signal.SIGTERM)


def test_a_command_that_kills_itself(t):
    for number in (9, 11, 15):
        r = t.ward("run", "--", "/bin/sh", "-c", f"kill -{number} $$", cwd=t.workspace())
        t.equal(r.rc, 128 + number, f"signal {number}")


def test_a_caller_that_ignores_its_children(t):
    """That is inherited through exec, and its children vanish without being waited for."""
    r = t.ward("run", "--", "/bin/sh", "-c", "true; /bin/true; exit 3", cwd=t.workspace(),
               timeout=20,
               wrap=("/bin/bash", "-c", "trap '' CHLD; exec \"$@\"", "bash"))
    t.equal(r.rc, 3, "exit code")


@by_turns
@serial
def test_ignored_signals_are_enforced(t):
    process, _ = started(t, "/bin/sh", "-c", "trap '' TERM INT; touch ready; sleep 60; sleep 60")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    t.finish_ward(process, 25)
    t.check(time.monotonic() - began < 20, "it took too long")


def test_kill_9_leaves_nothing(t):
    """Processes, control groups, records: the harness looks for all of them after the test."""
    process, ws = started(t, "/bin/sh", "-c", "sleep 60 & setsid sleep 60 & touch ready; sleep 60")
    time.sleep(0.2)
    process.kill()
    process.wait(10)
    t.equal(sorted(os.listdir(ws)), ["ready"], "workspace")


def test_kill_9_at_any_moment(t):
    """Killed while it starts, before it has a guardian: at twelve moments from the first
    millisecond on. The processes are gone at once; the next run removes the rest."""
    for number in range(12):
        process = t.ward_start("run", "--", "/bin/sleep", "60", cwd=t.workspace())
        time.sleep(number * 0.0015)
        process.kill()
        process.wait(10)
    t.equal(t.ward("run", "--", "/bin/true", cwd=t.workspace()).rc, 0)


def test_term_at_any_moment(t):
    for number in range(12):
        process = t.ward_start("run", "--", "/bin/sleep", "60", cwd=t.workspace())
        time.sleep(number * 0.0015)
        process.terminate()
        r = t.finish_ward(process, 15)
        t.check(r.rc in (-signal.SIGTERM, 128 + signal.SIGTERM, 125), f"exit {r.rc}")


def test_daemons_die_with_the_command(t):
    r = t.ward("run", "--", "/bin/sh", "-c",
               "setsid sleep 60 >/dev/null 2>&1 & (sleep 60 &) ; exit 4",
               cwd=t.workspace(), timeout=10)
    t.equal(r.rc, 4)


def test_ctrl_c_on_a_terminal(t):
    r = t.ward_tty("run", "--", "/bin/sh", "-c",
                   "trap 'echo got it; exit 5' INT; echo ready; while :; do sleep 0.05; done",
                   input=b"\x03", after=b"ready", cwd=t.workspace(), timeout=20)
    t.equal(r.rc, 5, "exit")
    t.contains(r.out, "got it")


def test_stop_and_continue(t):
    """A ward that is stopped for a while loses nothing."""
    process, _ = started(t, "/bin/sh", "-c", "touch ready; sleep 0.3; echo done")
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    process.send_signal(signal.SIGCONT)
    r = t.finish_ward(process, 10)
    t.equal((r.rc, r.out), (0, "done\n"))
