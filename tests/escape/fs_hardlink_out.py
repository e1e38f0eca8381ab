"""Makes a hard link in the workspace to a file outside, and reads and writes through it.

layer: mount namespace
control: the same user without a sandbox makes the link
"""
import os


def scene(s):
    s.path = s.secret()
    s.args = {"path": s.path}


def attack(a):
    for source in (a["path"], "/proc/self/root" + a["path"]):
        try:
            os.link(source, "linked")
            print(slurp("linked"))
            return
        except OSError as error:
            print(error)


def escaped(s, r):
    return s.token in r.out or os.stat(s.path).st_nlink > 1
