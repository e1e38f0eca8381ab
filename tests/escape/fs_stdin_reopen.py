"""Writes to the file that it was only given to read, `ward run -- ... < ~/.bashrc`, by opening
/proc/self/fd/0 again.

layer: stdio
control: the same user without a sandbox writes it
"""
import os


def scene(s):
    s.t.write(s.outside, {"bashrc": "clean\n"})
    s.path = os.path.join(s.outside, "bashrc")
    s.stdin = open(s.path)


def attack(a):
    print("stdin says", os.read(0, 100))
    for name in ("/proc/self/fd/0", "/dev/stdin", "/dev/fd/0", "/proc/thread-self/fd/0"):
        for flags in (os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_APPEND):
            try:
                fd = os.open(name, flags)
                os.write(fd, b"evil\n")
            except OSError as error:
                print(name, error)
    attempt(os.truncate, "/proc/self/fd/0", 0)
    attempt(os.chmod, "/proc/self/fd/0", 0o777)
    attempt(os.fchmod, 0, 0o777)


def escaped(s, r):
    s.stdin.close()
    return s.t.read(s.path) != "clean\n" or os.stat(s.path).st_mode & 0o777 == 0o777
