"""Comes with a `.git` file that names a repository of the user's elsewhere, so that ward would
mount it.

layer: protect
control: without a sandbox the foreign repository is read and gets a hook
"""
import os

NEEDS = ["git"]
REFUSED = True


def scene(s):
    foreign = s.t.git_repo({"private.txt": s.token})
    s.foreign = os.path.join(foreign, ".git")
    s.t.write(s.foreign, {"token": s.token})
    s.t.write(s.ws, {".git": f"gitdir: {s.foreign}\n"})
    s.args = {"dir": s.foreign}


def attack(a):
    attempt(lambda: print(slurp(a["dir"] + "/token")))
    attempt(put, a["dir"] + "/hooks/pre-commit", "#!/bin/sh\necho evil\n")


def escaped(s, r):
    return s.token in r.out or os.path.exists(os.path.join(s.foreign, "hooks/pre-commit"))
