"""Leaves the mounts of protect behind in a mount namespace of its own and moves .git and its hooks
away, for others of its own.

The real .git is put into the false one, its hooks deep into directories that nobody may enter.

layer: sweep
control: without a sandbox they stay, and the operator's `git status` runs the attacker's program
"""
import os
import time

NEEDS = ["git"]
OPTIONS = ["--set", "process.nesting=true"]
ENGINES = ("native",)
ENGINES_WHY = "other engines do not let the command into the host's namespaces"


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.t.write(s.ws, {".git/hooks/mine": "mine\n", ".vscode/tasks.json": "{}\n",
                     ".secret/key": "key\n", ".aiignore": "/.secret/\n"})
    s.config = s.t.read(s.ws, ".git/config")
    s.inode = os.stat(os.path.join(s.ws, ".git")).st_ino
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}
    time.sleep(0.05)	# what is as new as the run counts as the run's


def attack(a):
    ws = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    git = os.open(".git", os.O_RDONLY | os.O_DIRECTORY)
    if inside():
        leave_mounts()

    def new(path, text):
        f = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o755, dir_fd=ws)
        os.write(f, text.encode())
        os.close(f)

    def hooks():
        os.mkdir("x", dir_fd=git)
        at = os.open("x", os.O_RDONLY, dir_fd=git)
        for _ in range(30):
            os.mkdir("d" * 200, dir_fd=at)
            at = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.rename("hooks", "h", src_dir_fd=git, dst_dir_fd=at)
        os.fchmod(at, 0)
    attempt(hooks)
    attempt(lambda: os.rename(".git", "away", src_dir_fd=ws, dst_dir_fd=ws))
    attempt(lambda: os.rename(".vscode", "code", src_dir_fd=ws, dst_dir_fd=ws))
    attempt(lambda: os.rename(".secret", "public", src_dir_fd=ws, dst_dir_fd=ws))
    for name in (".git", ".git/objects", ".git/refs", ".git/hooks", ".vscode"):
        attempt(lambda: os.mkdir(name, dir_fd=ws))
    attempt(new, ".git/HEAD", "ref: refs/heads/main\n")
    attempt(new, ".git/config",
            f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {a['proof']}; false\n")
    attempt(new, ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {a['proof']}\n")
    attempt(new, ".vscode/tasks.json", '{"evil": 1}\n')
    attempt(lambda: os.rename("away", ".git/away", src_dir_fd=ws, dst_dir_fd=ws))


def escaped(s, r):
    if not s.control and "the mounts are left behind" not in r.out:
        s.t.fail("the attack never left the mounts behind, so nothing was shown")
    s.t.run("git", "status", cwd=s.ws)
    if s.control:
        return os.path.exists(s.proof)
    s.t.equal(sorted(n for n in os.listdir(s.ws) if "ward" in n or n in ("public", "code", "away")),
              [], "left over")
    s.t.check(any(q.startswith(".git: replaced") for q in r.report["quarantine"]),
              f"it is told: {r.report['quarantine']}")
    s.t.equal(os.stat(os.path.join(s.ws, ".git")).st_ino, s.inode, "the directory itself is back")
    s.t.equal(s.t.read(s.ws, ".secret/key"), "key\n")
    s.t.equal(s.t.read(s.ws, ".vscode/tasks.json"), "{}\n")
    hooks = os.listdir(os.path.join(s.ws, ".git/hooks"))
    return (os.path.exists(s.proof) or s.t.read(s.ws, ".git/config") != s.config
            or "mine" not in hooks or
            "pre-commit" in hooks)
