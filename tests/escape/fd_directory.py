"""Walks out through a directory descriptor that the caller left open.

layer: descriptors
control: without a sandbox the program inherits it
"""
import os


def scene(s):
    s.secret()
    fd = os.open(s.outside, os.O_RDONLY)
    path = os.open("/", os.O_PATH)
    s.pass_fds = (fd, path)
    s.t.defer(os.close, fd)
    s.t.defer(os.close, path)
    s.args = {"path": os.path.join(s.outside, "secret.txt").lstrip("/")}


def attack(a):
    for fd in range(3, 256):
        for name in ("secret.txt", a["path"], "../" * 30 + a["path"]):
            try:
                found = os.open(name, os.O_RDONLY, dir_fd=fd)
                print(fd, os.read(found, 100))
            except OSError:
                pass
