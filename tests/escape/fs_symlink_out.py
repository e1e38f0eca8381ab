"""Follows a symbolic link in the workspace that points at a secret outside: one planted before the
start, one made inside.

layer: mount namespace
control: the same user without a sandbox follows it
"""
import os


def scene(s):
    path = s.secret()
    os.symlink(path, os.path.join(s.ws, "planted"))
    os.symlink(os.path.dirname(path), os.path.join(s.ws, "planted-dir"))
    s.args = {"path": path}


def attack(a):
    os.symlink(a["path"], "made")
    for name in ("planted", "made", "planted-dir/secret.txt"):
        attempt(lambda: print(slurp(name)))
