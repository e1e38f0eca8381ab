"""Leaves a rebase, a cherry-pick and a series of patches under way in the user's repositories:
their strategy is a program of the worktree, their options name a file to write.

layer: sweep
control: without a sandbox the program runs, and the file is written
"""
import os

NEEDS = ["git"]
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
WAYS = {"rebase": ("rebase", "--continue"), "pick": ("cherry-pick", "--continue"),
        "patch": ("am", "--skip")}


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof}
    for way in WAYS:
        path = os.path.join(s.ws, way)
        s.t.run("git", "init", "-q", "-b", "main", path)
        for text in ("one\n", "two\n", "three\n"):
            s.t.write(path, {"file": text})
            s.t.run("git", "add", "file", cwd=path)
            s.t.run(*GIT, "commit", "-q", "-m", text, cwd=path)
        s.args[way] = s.t.run("git", "rev-list", "HEAD", cwd=path).out.split()
        s.args["patches"] = s.t.run("git", "format-patch", "-2", "--stdout", cwd=path).out
        s.t.run("git", "checkout", "-q", "--detach", "HEAD~2", cwd=path)


def attack(a):
    import subprocess
    for way in ("rebase", "pick"):
        third, second, first = a[way]
        os.mkdir(way + "/git-merge-x")
        put(way + "/git-merge-x/y", f"#!/bin/sh\ntouch {a['proof']}.{way}\nexit 1\n")
        os.chmod(way + "/git-merge-x/y", 0o755)
        state = way + "/.git/" + ("rebase-merge" if way == "rebase" else "sequencer")
        os.mkdir(state)
        picks = f"pick {second} two\npick {third} three\n"
        for name, text in {"rebase": (("head-name", "refs/heads/main\n"), ("onto", first + "\n"),
                                      ("orig-head", third + "\n"), ("interactive", ""),
                                      ("end", "1\n"), ("msgnum", "0\n"),
                                      ("done", ""), ("git-rebase-todo", f"pick {third} three\n"),
                                      ("strategy", "x/y\n")),
                           "pick": (("todo", picks), ("head", first + "\n"),
                                    ("abort-safety", first + "\n"),
                                    ("opts", "[options]\n\tstrategy = x/y\n"))}[way]:
            put(state + "/" + name, text)
    put("patch/file", "other\n")
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "am"],
                   cwd="patch", input=a["patches"].encode(), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    put("patch/file", "one\n")
    put("patch/.git/rebase-apply/apply-opt", f" '--build-fake-ancestor={a['proof']}.patch'\n")


def escaped(s, r):
    for way, command in WAYS.items():
        s.t.run(*GIT, *command, cwd=os.path.join(s.ws, way), env={"GIT_EDITOR": "true"})
    return (all if s.control else any)(os.path.exists(f"{s.proof}.{way}") for way in WAYS)
