"""Guesses another machine's secrets: clones of one template continue from one state, so what one of
them draws the others would draw as well.

layer: the agent reseeds a clone before its first command
control: two processes that continue from one state draw the same
"""
import re

SLOW = True


def attack(a):
    import random
    if not inside():
        random.seed("one state")
        print("drawn", random.randbytes(16).hex())
        return
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_void_p
    print("drawn", os.getrandom(16).hex())
    with open("/dev/urandom", "rb", 0) as f:
        print("drawn", f.read(16).hex())
    print("drawn", slurp("/proc/sys/kernel/random/uuid").strip().replace("-", ""))
    # AT_RANDOM: canaries of programs
    print("drawn", ctypes.string_at(libc.getauxval(25), 16).hex())


def run(s):
    drawn = []
    for _ in range(3):
        r = s.run()
        found = re.findall(r"drawn (\w{32})", r.out)
        s.t.check(found, f"it draws: {r}")
        if not s.control:
            s.t.check(any("template" in note for note in r.report["notes"]),
                      f"a clone: {r.report['notes']}")
        drawn += found
    s.t.say(str(drawn))
    return len(set(drawn)) < len(drawn)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
