"""Queues signals to itself until the user has no room for one more, so that no timer can be made
outside.

layer: rlimits
control: without a sandbox no room is left
"""
import os
import time

ONLY = "user"
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
SERIAL = True
TIMEOUT = 240
QUEUE = """
import ctypes, os, signal
def queue():
    class Value(ctypes.Union):
        _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]
    signal.pthread_sigmask(signal.SIG_BLOCK, [40])
    return ctypes.CDLL(None).sigqueue(os.getpid(), 40, Value(1)) == 0
"""


def scene(s):
    s.args = {"queue": QUEUE}


def attack(a):
    names = {}
    exec(a["queue"], names)
    while names["queue"]():
        pass
    put("ready", "")
    time.sleep(120)


def run(s):
    scene(s)
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, "--", *s.program())
    process = s.t.popen(argv, cwd=s.ws)
    try:
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ready")), 100,
                       "the attack is ready")
        r = s.t.run("/usr/bin/python3", "-I", "-S", "-c", QUEUE + "print(queue())", cwd=s.ws)
    finally:
        process.terminate()
        process.wait()
    return "False" in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
