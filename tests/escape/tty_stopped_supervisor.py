"""Stops itself, so that ward stops with it, while a process of its own goes on with nobody who
watches the limits.

layer: supervisor
control: without a sandbox the other process goes on
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = ("a stopped job behind it is brought back at once: there is no shell outside "
               "that could")
import os
import shlex
import sys
import time

from harness import engines, escape, screen


def attack(a):
    if os.fork() == 0:
        for number in range(100000):
            put("beat.new", str(number))
            os.rename("beat.new", "beat")
            time.sleep(0.01)
        os._exit(0)
    while not os.path.exists("beat"):
        time.sleep(0.01)
    for number in (signal.SIGTSTP, signal.SIGSTOP):
        os.kill(os.getpid(), number)


def run(s):
    if engines.asked() == "vm" and not s.control:
        s.t.skip("a machine's files come back at its end: outside nobody sees whether it goes on")
    with screen.Screen(s.t) as shell:
        argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, "--", *s.program())
        s.t.write(s.ws,
                  {"attack.sh": f"cd {s.ws}\nexec " + " ".join(map(shlex.quote, argv)) + "\n"})
        shell.line(f"sh {s.ws}/attack.sh; jobs")
        shell.see("Stopped")
        beat = os.path.join(s.ws, "beat")
        s.t.check(os.path.exists(beat), "the attack did not begin")
        seen = set()
        time.sleep(0.3)	# the sandbox is told to stop before ward does, and does so by itself
        until = time.monotonic() + (5 if s.control else 0.6)
        while len(seen) < 2 and time.monotonic() < until:
            seen.add(s.t.read(beat))
            time.sleep(0.03)
        shell.line("kill -9 %1; wait; echo do\"\"ne")
        shell.see("done")
        return len(seen) > 1


def test(t):
    escape.run_both(t, sys.modules[__name__], run)
