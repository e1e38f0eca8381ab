"""Reads a file of another project of the same user by its absolute path.

layer: mount namespace
control: the same user without a sandbox reads it
"""


def scene(s):
    s.args["path"] = s.secret("project/notes.txt")


def attack(a):
    print(slurp(a["path"]))
