"""Leaves a set-uid program in the workspace by creating it so: open, openat, creat, mknod, mkdir.

layer: seccomp
control: without a sandbox the bits stay
"""
import os


def attack(a):
    os.umask(0)
    flags = os.O_CREAT | os.O_WRONLY
    attempt(syscall, "open", "open", flags, 0o4777)
    attempt(syscall, "openat", -100, "openat", flags, 0o6777)
    attempt(syscall, "creat", "creat", 0o4777)
    attempt(syscall, "mknod", "mknod", 0o100000 | 0o6777, 0)
    attempt(syscall, "mknodat", -100, "mknodat", 0o100000 | 0o4777, 0)
    attempt(syscall, "mkdir", "mkdir", 0o2777)
    attempt(syscall, 258, -100, "mkdirat", 0o6777)
    how = struct.pack("QQQ", flags, 0o4777, 0)
    attempt(syscall, 437, -100, "openat2", how, 24)
    attempt(syscall, "open", "openhigh", flags | 1 << 40, 0o4777 | 1 << 33)


def escaped(s, r):
    return any(e.stat().st_mode & 0o6000 for e in os.scandir(s.ws))
