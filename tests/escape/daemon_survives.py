"""Leaves a daemon behind: double fork, new session, all descriptors closed, signals ignored.

layer: pid namespace
control: without a sandbox the daemon goes on working after the command has ended
"""
import os
import signal
import time


def scene(s):
    s.beat = os.path.join(s.ws, "beat")


def attack(a):
    ready, done = os.pipe()
    if os.fork() == 0:
        os.setsid()
        for sig in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        os.closerange(0, 3)
        number = 0
        while number < 2000:
            number += 1
            put("beat.new", f"{os.getpid()} {number}")
            os.rename("beat.new", "beat")
            if number == 2:
                os.close(done)
            time.sleep(0.005)
        os._exit(0)
    os.close(done)
    os.read(ready, 1)


def escaped(s, r):
    first = s.t.read(s.beat)
    time.sleep(0.15)
    second = s.t.read(s.beat)
    if s.control:
        os.kill(int(second.split()[0]), signal.SIGKILL)
    return first != second
