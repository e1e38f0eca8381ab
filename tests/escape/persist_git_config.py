"""Makes the operator's next git command run a program: core.fsmonitor in .git/config, by editing,
by replacing, by git itself.

layer: protect
control: without a sandbox the operator's `git status` runs it
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.evil = os.path.join(s.ws, "evil.sh")
    s.proof = os.path.join(s.outside, "proof")
    s.t.write(s.ws, {"evil.sh": f"#!/bin/sh\ntouch {s.proof}\n"})
    os.chmod(s.evil, 0o755)
    s.args = {"evil": s.evil}


def attack(a):
    import subprocess
    text = f"[core]\n\tfsmonitor = {a['evil']}\n"
    attempt(put, ".git/config", text, "a")
    put("new", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n" + text)
    attempt(os.replace, "new", ".git/config")
    attempt(put, ".git/config.worktree", text)
    done = subprocess.run(["git", "config", "core.fsmonitor", a["evil"]], stderr=subprocess.PIPE)
    print(done.returncode, done.stderr)


def escaped(s, r):
    s.t.run("git", "status", cwd=s.ws)
    return os.path.exists(s.proof)
