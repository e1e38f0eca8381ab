"""Crashes on purpose where the host pipes core dumps to a program: the kernel starts that one as
root, outside, with what the crashed process likes to hand over, whatever the limit on core files is
(but 1).

layer: rlimits, seccomp
control: without a sandbox the handler is started, though the limit is 0
"""
import os
import time

SERIAL = True
PATTERN = "/proc/sys/kernel/core_pattern"
ENGINES = ("native", "oci")
ENGINES_WHY = "the command's crashes are told to a kernel of its own"


def scene(s):
    place = f"/tmp/ward-core-{s.token}"
    s.log = place + "/log"
    script = f'#!/bin/sh\n[ "$1" != wardcrash ] || echo "$1 $2 $(id -u)" >>{s.log}\n'
    old = s.t.read(PATTERN)
    s.t.defer(lambda: s.t.run("sh", "-c", f'printf %s "$1" >{PATTERN}; rm -rf {place}', "sh", old,
                              root=True))
    s.t.run("sh", "-c", f'mkdir -m 755 {place}; printf %s "$1" >{place}/handler; chmod 755 '
            f'{place}/handler; echo "|{place}/handler %e %c" >{PATTERN}', "sh", script, root=True)


def attack(a):
    import resource
    LIBC.prctl(15, b"wardcrash", 0, 0, 0)
    for limit in ((0, 0), (0, 1)):
        attempt(resource.setrlimit, resource.RLIMIT_CORE, limit)
        attempt(syscall, 160, 4, struct.pack("QQ", 0, 0))
        attempt(syscall, "prlimit64", 0, 4, struct.pack("QQ", 0, 0), 0)
        attempt(resource.prlimit, 0, resource.RLIMIT_CORE, limit)
    print("limit:", resource.getrlimit(resource.RLIMIT_CORE)[0])
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def escaped(s, r):
    until = time.monotonic() + (10 if s.control else 0.5)
    while not os.path.exists(s.log) and time.monotonic() < until:
        time.sleep(0.02)
    s.t.say(f"the handler: {s.t.read(s.log) if os.path.exists(s.log) else 'not started'}")
    return os.path.exists(s.log)
