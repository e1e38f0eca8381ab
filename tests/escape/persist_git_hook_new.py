"""Plants a git hook in a repository; the operator's next commit would run it.

layer: protect
control: without a sandbox the hook is there afterwards
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()


def attack(a):
    for name in (".git/hooks/pre-commit", ".git/hooks/post-checkout"):
        def plant():
            put(name, "#!/bin/sh\necho evil\n")
            os.chmod(name, 0o755)
        attempt(plant)
    attempt(os.rename, ".git/hooks", ".git/hooks.old")
    attempt(os.makedirs, ".git/hooks")
    attempt(put, ".git/hooks/pre-push", "#!/bin/sh\necho evil\n")


def escaped(s, r):
    return any(os.path.exists(os.path.join(s.ws, ".git/hooks", n))
               for n in ("pre-commit", "post-checkout", "pre-push"))
