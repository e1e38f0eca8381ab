"""Reads files through descriptors that the caller left open, low and high ones.

layer: descriptors
control: without a sandbox the program inherits them
"""
import fcntl
import os


def scene(s):
    path = s.secret()
    low = os.open(path, os.O_RDONLY)
    high = fcntl.fcntl(low, fcntl.F_DUPFD, 700)
    s.pass_fds = (low, high)
    s.t.defer(os.close, low)
    s.t.defer(os.close, high)


def attack(a):
    for fd in range(3, 1024):
        try:
            data = os.pread(fd, 100, 0)
            print(fd, data)
        except OSError:
            pass
    print(os.listdir("/proc/self/fd"))
