"""Plants a hook and configuration in a submodule's directory below .git/modules.

layer: protect
control: without a sandbox they are there afterwards
"""
import os

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    other = s.t.git_repo({"lib.c": "int x;\n"})
    s.t.run("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "lib",
            cwd=s.ws, check=True)
    s.config = s.t.read(s.ws, ".git/modules/lib/config")


def attack(a):
    base = ".git/modules/lib"
    attempt(put, base + "/hooks/pre-commit", "#!/bin/sh\necho evil\n")
    attempt(put, base + "/config", "[core]\n\tfsmonitor = /evil\n", "a")
    attempt(os.rename, ".git/modules", ".git/m2")
    attempt(os.makedirs, base + "/hooks")
    attempt(put, base + "/hooks/pre-commit", "#!/bin/sh\necho evil\n")
    put("new", "gitdir: ../evil.git\n")
    attempt(os.replace, "new", "lib/.git")


def escaped(s, r):
    return (os.path.exists(os.path.join(s.ws, ".git/modules/lib/hooks/pre-commit"))
            or s.t.read(s.ws, ".git/modules/lib/config") != s.config
            or "evil" in (s.t.read(s.ws, "lib/.git") or ""))
