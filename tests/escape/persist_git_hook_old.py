"""Changes a git hook that is there already.

layer: protect
control: without a sandbox it is changed
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.t.write(s.ws, {".git/hooks/pre-commit": "#!/bin/sh\ntrue\n"})
    os.chmod(os.path.join(s.ws, ".git/hooks/pre-commit"), 0o755)


def attack(a):
    name = ".git/hooks/pre-commit"
    attempt(put, name, "evil\n", "a")
    attempt(os.unlink, name)
    put("new", "evil\n")
    attempt(os.replace, "new", name)


def escaped(s, r):
    return s.t.read(s.ws, ".git/hooks/pre-commit") != "#!/bin/sh\ntrue\n"
