"""Moves the parent of a nested repository away, so that a copy with other hooks stands in its
place.

layer: protect
control: without a sandbox the copy stands there afterwards
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    os.makedirs(os.path.join(s.ws, "vendor/lib"))
    s.t.run("git", "init", "-q", cwd=os.path.join(s.ws, "vendor/lib"), check=True)


def attack(a):
    import subprocess
    for parent in ("vendor/lib", "vendor"):
        attempt(os.rename, parent, parent + ".old")
    subprocess.run(["cp", "-a", "vendor.old", "vendor"], stderr=subprocess.DEVNULL)
    attempt(os.makedirs, "vendor/lib/.git/hooks")
    attempt(put, "vendor/lib/.git/hooks/post-commit", "#!/bin/sh\necho evil\n")
    attempt(os.chmod, "vendor/lib/.git/hooks/post-commit", 0o755)


def escaped(s, r):
    return os.path.exists(os.path.join(s.ws, "vendor/lib/.git/hooks/post-commit"))
