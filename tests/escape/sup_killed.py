"""Waits for somebody to `kill -9` ward, in order to be free then, and to have what it planted stay.

layer: supervisor
control: without a sandbox the program outlives its parent
"""
import os
import signal
import time

from harness import leaks

OPTIONS = ["--pids", "64"]


def attack(a):
    put("beat", "0")
    put(".envrc", "evil\n")
    for number in range(1000):
        put("beat.new", str(number))
        os.rename("beat.new", "beat")
        time.sleep(0.01)


def run(s):
    beat = os.path.join(s.ws, "beat")
    if s.control:
        process = s.t.popen(["sh", "-c", '"$@"; true', "sh", *s.program()], cwd=s.ws)
    else:
        process = s.t.ward_start("run", "-w", s.ws, *s.options, "--", *s.program(), cwd=s.ws)
    s.wait_begun(beat, process)
    if os.path.exists(beat):
        s.t.wait_until(lambda: (s.t.read(beat) or "0") not in ("", "0"), 10,
                       "the attack did not begin")
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.3)
    seen = set()
    for _ in range(10):
        seen.add(s.t.read(beat))
        time.sleep(0.03)
    if s.control:
        for pid in leaks.descendants(os.getpid()):
            os.kill(pid, signal.SIGKILL)
    else:
        time.sleep(0.5)
    planted = os.path.exists(os.path.join(s.ws, ".envrc"))
    return len(seen) > 1 or (planted and not s.control)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
