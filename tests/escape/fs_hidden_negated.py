"""Adds a nested .aiignore that takes the hiding back, before the start of a second run.

layer: mount namespace
control: without a sandbox the file is simply read
"""


def scene(s):
    s.t.write(s.ws, {".aiignore": ".env\n", "sub/.env": s.token, "sub/.aiignore": "!.env\n"})


def attack(a):
    print(slurp("sub/.env"))
