"""Puts protected names into git's data and makes a link in the project that leads there: directly,
by a chain, by an absolute path, dangling for a second run.

layer: sweep
control: without a sandbox whoever enters the link's name finds them
"""
import os

NEEDS = ["git"]
LINKS = ("plain", "chain", "absolute", "later", "sub/up")


def scene(s):
    s.ws = s.cwd = s.t.git_repo({"README": "r\n", "sub/README": "r\n"})
    s.args = {"ws": s.ws}


def attack(a):
    for place in (".git/refs/heads/x", ".git/logs/x", ".git/objects/x"):
        attempt(os.makedirs, place + "/.vscode")
        attempt(put, place + "/.envrc", "PLANTED BY THE ATTACK\n")
        attempt(put, place + "/.vscode/tasks.json", "PLANTED BY THE ATTACK\n")
    os.symlink(".git/refs/heads/x", "plain")
    os.symlink("plain", "chain")
    os.symlink(a["ws"] + "/.git/logs/x", "absolute")
    os.symlink("sub/../.git/later", "later")
    os.symlink("../.git/objects/x", "sub/up")


def escaped(s, r):
    if s.control:
        os.makedirs(os.path.join(s.ws, ".git/later"))
    found = [n for n in LINKS if os.path.exists(os.path.join(s.ws, n, ".envrc"))
             or (n == "later" and os.path.lexists(os.path.join(s.ws, n)))]
    s.t.say(f"found behind links: {found}")
    return bool(found)
