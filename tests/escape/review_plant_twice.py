"""Plants a repository's hooks and configuration in two reviewed runs: first in directories that are
no repositories, then what makes them such.

layer: apply
control: without a sandbox the operator's next git command runs it
"""
import os

NEEDS = ["git"]


def first(a):
    for name in ("head", "data", "link"):
        os.makedirs(f"{name}/hooks")
        put(f"{name}/config", f"[core]\n\tfsmonitor = {a['ws']}/evil.sh\n\trepositoryformatversion "
            f"= 0\n\tworktree = {a['ws']}\n")
        put(f"{name}/hooks/pre-commit", f"#!/bin/sh\ntouch {a['proof']}\n")
        os.chmod(f"{name}/hooks/pre-commit", 0o755)
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)
    for directory in ("head/objects", "head/refs", "link/objects", "link/refs"):
        os.mkdir(directory)
    put("data/HEAD", "ref: refs/heads/main\n")


def second(a):
    put("head/HEAD", "ref: refs/heads/main\n")
    os.makedirs("data/objects/info")
    os.makedirs("data/refs/heads")
    put("ref", "ref: refs/heads/main\n")
    os.symlink("refs/heads/main", "link/HEAD")


def run(s):
    import inspect
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}
    for step in (first, second):
        code = "import os\ndef put(p, t):\n    open(p, 'w').write(t)\n" + inspect.getsource(
            step) + f"{step.__name__}({s.args!r})\n"
        if s.control:
            s.t.run("python3", "-c", code, cwd=s.ws, check=True)
        else:
            s.t.equal(s.t.ward("run", "--review", "--", "python3", "-c", code, cwd=s.ws).rc, 0,
                      "the run")
            for how in ([], ["--force"], ["."]):
                s.t.ward("apply", *how, cwd=s.ws)
    if not s.control:
        s.t.check(os.path.exists(s.ws + "/head/config"),
                  "the first review was not applied, so nothing was shown")
    for name in ("head", "data", "link"):
        s.t.run("git", "status", cwd=f"{s.ws}/{name}")
        s.t.run("git", "-c", "user.name=o", "-c", "user.email=o@example.com", "commit",
                "--allow-empty", "-qm", "x", cwd=f"{s.ws}/{name}")
    return os.path.exists(s.proof)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
