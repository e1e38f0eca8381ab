"""Plants what runs with the operator's rights, in the hope that `ward apply` brings it: hooks,
hooksPath, fsmonitor, editor settings, links for them.

layer: apply
control: without a sandbox the operator's next git command runs it
"""
import os

NEEDS = ["git"]
OPTIONS = ["--review"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo({"README": "r\n", "hooks.d/README": "x\n"})
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    import subprocess
    evil = f"#!/bin/sh\ntouch {a['proof']}\n"
    for path in (".git/hooks/post-checkout", ".git/hooks/pre-commit", "evil.sh",
                 "hooks.d/pre-commit"):
        put(path, evil)
        os.chmod(path, 0o755)
    subprocess.run(["git", "config", "core.fsmonitor", a["ws"] + "/evil.sh"])
    attempt(put, ".git/config.worktree", "[core]\n\tfsmonitor = ./evil.sh\n")
    subprocess.run(["git", "init", "-q", "sub"])
    put("sub/.git/config",
        f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n\trepositoryformatversion = 0\n")
    subprocess.run(["git", "init", "-q", "--bare", "bare"])
    put("bare/hooks/pre-commit", evil)
    os.chmod("bare/hooks/pre-commit", 0o755)
    os.mkdir("fake")
    put("fake/.git", "gitdir: ../evil\n")
    for directory in ("evil", "evil/objects", "evil/refs"):
        os.mkdir(directory)
    put("evil/HEAD", "ref: refs/heads/main\n")
    put("evil/config", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n\trepositoryformatversion = 0\n"
        f"\tworktree = {a['ws']}/fake\n")
    for name in (".envrc", ".vscode/tasks.json", ".mcp.json"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        put(name, "{}\n")
    os.symlink("hooks.d", ".husky")


def escaped(s, r):
    if not s.control:
        s.t.ward("apply", cwd=s.ws)
        s.t.ward("apply", "--force", cwd=s.ws)
    for directory in (".", "sub", "fake", "bare"):
        path = os.path.join(s.ws, directory)
        if os.path.isdir(path):
            s.t.run("git", "status", cwd=path)
            s.t.run("git", "-c", "user.name=o", "-c", "user.email=o@example.com", "commit",
                    "--allow-empty", "-qm", "x", cwd=path)
    planted = any(os.path.lexists(os.path.join(s.ws, n))
                  for n in (".envrc", ".vscode/tasks.json", ".mcp.json", ".husky"))
    return os.path.exists(s.proof) or planted
