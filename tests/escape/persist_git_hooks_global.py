"""Plants hooks where core.hooksPath of the user's own configuration leads by a relative path that
goes back (x/../hk): in the workspace, and in a repository that it makes there.

layer: sweep
control: without a sandbox the operator's next commit runs them
"""
import os

NEEDS = ["git"]


def scene(s):
    s.home = s.t.fresh_dir("home")
    s.ws = s.cwd = s.t.git_repo({"README": "r\n"})
    s.proof = os.path.join(s.outside, "proof")
    s.env = {"HOME": s.home, "XDG_CONFIG_HOME": ""}
    s.t.write(s.home, {".gitconfig": "[core]\n\thooksPath = x/../hk\n[user]\n\tname = o\n"
                       "\temail = o@example.com\n"})
    s.args = {"proof": s.proof}


def attack(a):
    import subprocess
    evil = f"#!/bin/sh\ntouch {a['proof']}\n"
    attempt(subprocess.run, ["git", "-c", "core.hooksPath=/dev/null", "init", "-q", "new"])
    for top in (".", "new"):
        for name in ("x", "far/y", "hk", "far/hk"):
            attempt(os.makedirs, f"{top}/{name}")
        for name in ("hk/pre-commit", "far/hk/pre-commit"):
            attempt(put, f"{top}/{name}", evil)
            attempt(os.chmod, f"{top}/{name}", 0o755)
    attempt(os.makedirs, "linked")
    attempt(os.rmdir, "linked")
    attempt(os.rename, "new/x", "new/z")
    attempt(os.symlink, "far/y", "new/x")


def escaped(s, r):
    for top in (s.ws, os.path.join(s.ws, "new")):
        s.t.run("git", "commit", "--allow-empty", "-qm", "x", cwd=top, env=s.env)
    return os.path.exists(s.proof)
