"""Walks up from the workspace with "..", by path, by descriptor and by chdir, to a directory beside
it.

layer: mount namespace
control: the same user without a sandbox gets there
"""
import os


def scene(s):
    path = s.secret()
    s.args = {"up": os.path.relpath(path, s.ws)}


def attack(a):
    attempt(lambda: print(slurp(a["up"])))
    attempt(lambda: print(slurp("/proc/self/cwd/" + a["up"])))

    def by_descriptor():
        top = os.open(".", os.O_PATH)
        fd = os.open(a["up"], os.O_RDONLY, dir_fd=top)
        print(os.read(fd, 100).decode())
    attempt(by_descriptor)

    def by_walk():
        parts = a["up"].split("/")
        for part in parts[:-1]:
            os.chdir(part)
        print(slurp(parts[-1]))
    attempt(by_walk)
