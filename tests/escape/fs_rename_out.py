"""Moves a file of the workspace out over a file of the user's, and a file from outside in.

layer: mount namespace
control: the same user without a sandbox moves it
"""
import os


def scene(s):
    s.t.write(s.outside, {"target": "clean\n"})
    s.args = {"path": os.path.join(s.outside, "target")}


def attack(a):
    put("evil", "evil\n")
    attempt(os.rename, a["path"], "stolen")
    attempt(os.rename, "evil", a["path"])


def escaped(s, r):
    return s.t.read(s.outside, "target") != "clean\n"
