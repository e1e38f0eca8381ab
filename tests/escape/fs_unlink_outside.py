"""Deletes, truncates, and changes mode and times of files outside the workspace.

layer: mount namespace
control: the same user without a sandbox does it
"""
import os


def scene(s):
    for name in ("delete", "truncate", "chmod", "utime"):
        s.secret(name)
        os.utime(os.path.join(s.outside, name), (1000, 1000))
    s.args = {"dir": s.outside}
    s.before = state(s)


def attack(a):
    d = a["dir"]
    attempt(os.unlink, d + "/delete")
    attempt(os.truncate, d + "/truncate", 0)
    attempt(os.chmod, d + "/chmod", 0o777)
    attempt(os.utime, d + "/utime", (5, 5))


def state(s):
    return {entry.name: (entry.stat().st_size, entry.stat().st_mode, entry.stat().st_mtime)
            for entry in os.scandir(s.outside)}


def escaped(s, r):
    return state(s) != s.before
