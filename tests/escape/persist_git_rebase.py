"""Leaves a rebase under way in the user's repository, whose list runs a command as soon as somebody says git rebase --continue.

layer: sweep
control: without a sandbox the command runs
"""
import os

NEEDS = ["git"]


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof}
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
    s.t.run("git", "init", "-q", "-b", "main", cwd=s.ws)
    s.t.run(*git, "commit", "-q", "--allow-empty", "-m", "first", cwd=s.ws)


def attack(a):
    head = slurp(".git/refs/heads/main").strip()
    os.mkdir(".git/rebase-merge")
    for name, text in (("head-name", "refs/heads/main\n"), ("onto", head + "\n"), ("orig-head", head + "\n"), ("interactive", ""), ("end", "1\n"), ("msgnum", "0\n"),
                       ("done", ""), ("git-rebase-todo", f"exec touch {a['proof']}\n")):
        put(".git/rebase-merge/" + name, text)
    put(".git/HEAD", head + "\n")


def escaped(s, r):
    s.t.run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "rebase", "--continue", cwd=s.ws)
    return os.path.exists(s.proof)
