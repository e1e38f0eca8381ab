"""In a linked worktree: plants hooks and configuration in the main repository, which lies outside
the workspace.

layer: protect
control: without a sandbox they are there afterwards
"""
import os

NEEDS = ["git"]


def scene(s):
    main = s.t.git_repo()
    s.main = os.path.join(main, ".git")
    s.ws = os.path.join(s.outside, "tree")
    s.t.run("git", "worktree", "add", "-q", s.ws, "-b", "side", cwd=main, check=True)
    s.cwd = s.ws
    s.config = s.t.read(s.main, "config")
    s.t.write(main, {"private.txt": s.token})
    s.args = {"dir": s.main, "private": os.path.join(main, "private.txt")}


def attack(a):
    d = a["dir"]
    attempt(put, d + "/hooks/pre-commit", "#!/bin/sh\necho evil\n")
    attempt(put, d + "/config", "[core]\n\tfsmonitor = /evil\n", "a")
    attempt(put, d + "/worktrees/tree/config.worktree", "[core]\n\tfsmonitor = /evil\n")
    attempt(put, ".git", "gitdir: /evil\n")
    put("new", "gitdir: ./evil.git\n")
    attempt(os.replace, "new", ".git")
    attempt(lambda: print(slurp(a["private"])))


def escaped(s, r):
    return (s.token in r.out or os.path.exists(os.path.join(s.main, "hooks/pre-commit"))
            or s.t.read(s.main, "config") != s.config or "evil" in s.t.read(s.ws, ".git")
            or os.path.exists(os.path.join(s.main, "worktrees/tree/config.worktree")))
