"""Changes mode and times of a named pipe outside that is its standard input, and opens it for
writing.

layer: stdio
control: without a sandbox they are changed
"""
import os


def scene(s):
    s.path = os.path.join(s.outside, "fifo")
    os.mkfifo(s.path, 0o600)
    s.stdin = os.open(s.path, os.O_RDWR)


def attack(a):
    attempt(os.fchmod, 0, 0o777)
    attempt(os.chmod, "/proc/self/fd/0", 0o777)
    attempt(os.utime, 0, (5, 5))
    attempt(os.utime, "/proc/self/fd/0", (5, 5))


def escaped(s, r):
    os.close(s.stdin)
    status = os.stat(s.path)
    return status.st_mode & 0o777 != 0o600 or status.st_mtime == 5
