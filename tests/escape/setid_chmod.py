"""Leaves a set-uid program in the workspace: chmod, fchmod, fchmodat, fchmodat2.

layer: seccomp
control: without a sandbox the bits stay
"""
import os


def attack(a):
    for name in ("chmod", "fchmod", "fchmodat", "fchmodat2", "dir"):
        put(name, "x") if name != "dir" else os.mkdir(name)
    fd = os.open("fchmod", os.O_RDONLY)
    for mode in (0o4755, 0o2755, 0o6755):
        attempt(syscall, "chmod", "chmod", mode)
        attempt(syscall, "fchmod", fd, mode)
        attempt(syscall, "fchmodat", -100, "fchmodat", mode)
        attempt(syscall, "fchmodat2", -100, "fchmodat2", mode, 0)
        attempt(syscall, "chmod", "dir", mode)
    attempt(syscall, "chmod", "chmod", 0o4755 | 1 << 31)
    attempt(syscall, "chmod", "chmod", 0o4755 | 1 << 40)


def escaped(s, r):
    return any(e.stat().st_mode & 0o6000 for e in os.scandir(s.ws))
