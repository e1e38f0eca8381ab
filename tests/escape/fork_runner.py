"""Runs away from the kill: a chain of processes each of which forks the next one and ends at once.

layer: pid namespace
control: without a sandbox the chain goes on when its first process is long gone
"""
import os
import time

OPTIONS = ["--timeout", "0.5"]


def scene(s):
    s.beat = os.path.join(s.ws, "beat")


def attack(a):
    end = time.monotonic() + 3
    os.setsid()
    if os.fork():
        time.sleep(0.3)
        return
    os.closerange(0, 3)
    number = 0
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        number += 1
        put("beat", str(number))
        time.sleep(0.002)


def escaped(s, r):
    seen = set()
    for _ in range(20):
        seen.add(s.t.read(s.beat))
        time.sleep(0.02)
    moved = len(seen - {""}) > 1
    if s.control:
        time.sleep(3.0)
    return moved
