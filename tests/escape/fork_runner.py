"""Runs away from the kill: a chain of processes each of which forks the next one and ends at once.

layer: pid namespace
control: without a sandbox the chain goes on when its first process is long gone
"""
import os
import time

OPTIONS = ["--timeout", "10"]


def scene(s):
    s.beat, s.stop = os.path.join(s.ws, "beat"), os.path.join(s.ws, "stop")


def attack(a):
    end = time.monotonic() + 30
    os.setsid()
    if os.fork():
        time.sleep(0.3)
        return
    os.closerange(0, 3)
    number = 0
    while time.monotonic() < end and not os.path.exists("stop"):
        if os.fork():
            os._exit(0)
        number += 1
        put("beat", str(number))
        time.sleep(0.002)


def escaped(s, r):
    seen = set()
    end = time.monotonic() + (10 if s.control else 0.4)	# on a busy machine the chain is slow
    while time.monotonic() < end and len(seen) < 2:
        seen |= {s.t.read(s.beat)} - {""}
        time.sleep(0.02)
    s.t.write(s.ws, {"stop": ""})
    if s.control:
        old = None
        while old != (old := s.t.read(s.beat)):
            time.sleep(0.3)
    return len(seen) > 1
