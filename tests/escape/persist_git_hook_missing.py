"""Plants a hook in a repository that has no hooks directory yet.

layer: sweep
control: without a sandbox the hook is there afterwards
"""
import os
import shutil

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    shutil.rmtree(os.path.join(s.ws, ".git/hooks"), ignore_errors=True)


def attack(a):
    attempt(os.mkdir, ".git/hooks")
    put(".git/hooks/pre-commit", "#!/bin/sh\necho evil\n")
    os.chmod(".git/hooks/pre-commit", 0o755)


def escaped(s, r):
    return os.path.exists(os.path.join(s.ws, ".git/hooks/pre-commit"))
