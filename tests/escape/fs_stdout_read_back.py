"""Reads what stood in the log file that its standard output is appended to.

layer: stdio
control: the same user without a sandbox opens /proc/self/fd/1 for reading
"""
import os


def scene(s):
    s.path = s.secret("log")
    s.stdout = open(s.path, "a")


def attack(a):
    for name in ("/proc/self/fd/1", "/dev/stdout"):
        for flags in (os.O_RDONLY, os.O_RDWR):
            try:
                fd = os.open(name, flags | os.O_NONBLOCK)
                os.write(2, b"read back: " + os.read(fd, 100))
            except OSError as error:
                os.write(2, repr(error).encode() + b"\n")
    try:
        os.write(2, b"read back: " + os.pread(1, 100, 0))
    except OSError as error:
        os.write(2, repr(error).encode() + b"\n")


def escaped(s, r):
    s.stdout.close()
    return s.token in r.err
