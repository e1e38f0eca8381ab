"""Asks for a signal whenever a file of the system's directories is read (F_NOTIFY), to learn when
the host and other sandboxes start programs, where the strict set refuses inotify's watches.

layer: seccomp
control: without a sandbox it gets the signals
"""
import os

from harness import escape

ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
OPTIONS = ["--set", "process.syscalls=strict"]


def attack(a):
    import fcntl
    import signal
    signal.signal(signal.SIGIO, lambda *_: print("NOTICED"))
    directory = os.open("/usr/bin", os.O_RDONLY)
    attempt(fcntl.fcntl, directory, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
    put("ready", "")
    for _ in range(20):
        time.sleep(0.1)


def run(s):
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, *OPTIONS, "--",
                                                       *s.program())
    log = os.path.join(s.outside, "log")
    with open(log, "w") as out:
        process = s.t.popen(argv, cwd=s.ws, stdout=out, stderr=out)
        try:
            s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ready")), 10,
                           "the attack listens")
            for _ in range(3):
                s.t.run("/usr/bin/tac", "/dev/null")
            s.t.wait_until(lambda: process.poll() is not None, 15, "the attack has ended")
        finally:
            process.terminate()
            process.wait()
    said = s.t.read(log)
    s.t.check(escape.BEGAN in said, f"the attack never ran: {said}")
    return "NOTICED" in said


def test(t):
    import sys
    escape.run_both(t, sys.modules[__name__], run)
