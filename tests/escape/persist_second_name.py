"""Writes to protected files through other names that they have in the workspace, one of them among
git's objects.

layer: mounts
control: without a sandbox the write goes through
"""
import os

NEEDS = ["git"]
NAMES = {"notes.txt": ".git/config", "docs/a": ".git/hooks/pre-push", ".git/objects/x": ".envrc"}


def scene(s):
    s.t.run("git", "init", "-q", cwd=s.ws)
    s.t.write(s.ws, {".envrc": "old\n", ".git/hooks/pre-push": "#!/bin/sh\n", "docs/b": ""})
    for name, target in NAMES.items():
        os.link(os.path.join(s.ws, target), os.path.join(s.ws, name))
    s.args = {"names": list(NAMES)}


def attack(a):
    for name in a["names"]:
        attempt(put, name, "evil", "a")


def escaped(s, r):
    return any("evil" in s.t.read(os.path.join(s.ws, name)) for name in NAMES.values())
