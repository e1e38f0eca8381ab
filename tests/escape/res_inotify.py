"""Takes every inotify instance that the host gives to the user, so that editors, daemons and the
next ward have none.

layer: user namespace
control: without a sandbox nothing is left
"""
import os
import time

ONLY = "user"
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
SERIAL = True


def attack(a):
    while LIBC.inotify_init1(0) >= 0:
        pass
    put("ready", "")
    time.sleep(20)


def run(s):
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, "--", *s.program())
    process = s.t.popen(argv, cwd=s.ws)
    try:
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ready")), 10,
                       "the attack is ready")
        r = s.t.run("/usr/bin/python3", "-I", "-S", "-c",
                    "import ctypes; print(ctypes.CDLL(None).inotify_init1(0) >= 0)", cwd=s.ws)
    finally:
        process.terminate()
        process.wait()
    return "False" in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
