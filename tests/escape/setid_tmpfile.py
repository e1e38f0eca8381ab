"""Leaves a set-uid program in the workspace by way of a file without a name: O_TMPFILE, set-id
bits, linkat.

layer: seccomp
control: without a sandbox the bits stay
"""
import os


def attack(a):
    os.umask(0)
    for name, mode in (("direct", 0o4777), ("late", 0o777)):
        fd = attempt(lambda: os.open(".", os.O_TMPFILE | os.O_RDWR, mode))
        if fd is None:
            continue
        attempt(syscall, "fchmod", fd, 0o6777)
        attempt(syscall, "chmod", f"/proc/self/fd/{fd}", 0o6777)
        attempt(syscall, "linkat", -100, f"/proc/self/fd/{fd}", -100, name, 0x400)


def escaped(s, r):
    return any(e.stat().st_mode & 0o6000 for e in os.scandir(s.ws))
