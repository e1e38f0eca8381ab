"""Reads a hidden file by its other name: what .aiignore names is a link, by an absolute path, to a
file of the same tree.

layer: mount namespace
control: the same user without a sandbox reads it
"""
import os


def scene(s):
    s.t.write(s.ws, {".aiignore": ".env\n", "conf/real.txt": s.token})
    os.symlink(os.path.join(s.ws, "conf/real.txt"), os.path.join(s.ws, ".env"))


def attack(a):
    for name in (".env", "conf/real.txt", os.path.realpath(".env")):
        print(attempt(slurp, name))
