"""Rewrites hooks to which core.hooksPath of a repository leads through ".." and through a linked
directory, relative to its worktree, and scripts of the project that hooks call.

layer: protect
control: without a sandbox the operator's next commit runs them
"""
import os

NEEDS = ["git"]
SCRIPT = "#!/bin/sh\nexit 0\n"


def scene(s):
    s.ws = s.cwd = s.t.git_repo({"README": "r\n"})
    s.proof = os.path.join(s.outside, "proof")
    s.t.write(s.ws,
              {"a/README": "r\n",
               "real/hooks/pre-commit": "#!/bin/sh\n./scripts/lint.sh && python3 checks/run.py\n",
               "scripts/lint.sh": "#!/bin/sh\n. scripts/common.sh\n", "scripts/common.sh": SCRIPT,
               "checks/run.py": "pass\n",
               ".git/hooks/post-commit": "#!/bin/sh\nscripts/after\n", "scripts/after": SCRIPT,
               "src/app.py": "x\n"})
    s.t.run("ln", "-s", "real", os.path.join(s.ws, "linked"), check=True)
    s.t.run("git", "config", "core.hooksPath", "a/../linked/hooks", cwd=s.ws, check=True)
    s.t.run("chmod", "+x", "real/hooks/pre-commit", "scripts/lint.sh", "scripts/after",
            ".git/hooks/post-commit", cwd=s.ws, check=True)
    s.args = {"proof": s.proof}


def attack(a):
    evil = f"#!/bin/sh\ntouch {a['proof']}\n"
    for name in ("real/hooks/pre-commit", "real/hooks/commit-msg", "scripts/lint.sh",
                 "scripts/common.sh", "scripts/after"):
        attempt(put, name, evil)
        attempt(os.chmod, name, 0o755)
    attempt(put, "checks/run.py", f"open({a['proof']!r}, 'w')\n")
    put("src/app.py", "PLANTED\n")
    attempt(os.makedirs, "evil/hooks")
    put("evil/hooks/pre-commit", evil)
    os.chmod("evil/hooks/pre-commit", 0o755)
    attempt(os.unlink, "linked")
    attempt(os.symlink, "evil", "linked")
    attempt(os.rename, "real", "old")
    attempt(os.rename, "evil", "real")


def escaped(s, r):
    s.t.check("PLANTED" in s.t.read(os.path.join(s.ws, "src/app.py")),
              "a file that no hook runs may be written")
    for setting in (None, "--unset"):
        if setting:
            s.t.run("git", "config", setting, "core.hooksPath", cwd=s.ws)
        s.t.run("git", "-c", "user.name=o", "-c", "user.email=o@example.com", "commit",
                "--allow-empty", "-qm", "x", cwd=s.ws)
    return os.path.exists(s.proof)
