"""Rewrites what protected links lead to: a git hook that is a link to a script of the project (a
common arrangement), a chain of links, a link through "..", an absolute one, editor and agent
settings behind links inside protected directories, a directory that holds a link.

layer: protect
control: without a sandbox the operator's next commit runs the script, and the settings are the
attacker's
"""
import os

NEEDS = ["git"]
FILES = {"scripts/pre-commit": "#!/bin/sh\nexit 0\n", "conf/tasks.json": "old",
         "conf/hook.sh": "old", "deep/er/msg": "#!/bin/sh\nexit 0\n",
         "shared/skills/a/run.sh": "old", "far/run.sh": "old", "conf/late": "old",
         "husky/_/pre-push": "old", "up/x/here": "old", "up/mcp": "old"}
LINKS = {".git/hooks/pre-commit": "../../scripts/pre-commit",
         ".git/hooks/commit-msg": "../../chain/one", "chain/one": "../chain/two",
         "chain/two": "{ws}/deep/er/msg", ".vscode/tasks.json": "../conf/tasks.json",
         ".claude/hooks/a.sh": "../../conf/hook.sh",
         ".claude/skills": "../shared/skills", "shared/skills/a/link.sh": "../../../far/run.sh",
         ".husky/_": "../husky/_",
         ".mcp.json": "into/../mcp", "into": "up/x", ".envrc": "gone/envrc"}
READ = (".vscode/tasks.json", ".claude/hooks/a.sh", ".claude/skills/a/run.sh",
        ".claude/skills/a/link.sh", ".husky/_/pre-push", ".mcp.json", ".envrc",
        ".git/hooks/pre-commit", ".git/hooks/commit-msg")


def scene(s):
    s.ws = s.cwd = s.t.git_repo(dict(FILES))
    s.proof = os.path.join(s.outside, "proof")
    for name in ("scripts/pre-commit", "deep/er/msg"):
        os.chmod(os.path.join(s.ws, name), 0o755)
    for name, target in LINKS.items():
        s.t.run("mkdir", "-p", os.path.dirname(os.path.join(s.ws, name)), check=True)
        s.t.run("ln", "-sfn", target.format(ws=s.ws), os.path.join(s.ws, name), check=True)
    s.args = {"files": list(FILES), "links": [n for n in LINKS if not n.startswith(".")],
              "proof": s.proof}


def attack(a):
    evil = f"#!/bin/sh\ntouch {a['proof']}\n# PLANTED BY THE ATTACK\n"
    os.makedirs("evil/sub", exist_ok=True)
    for name in ("pre-commit", "msg", "one", "two", "sub/here"):
        put("evil/" + name, evil)
        os.chmod("evil/" + name, 0o755)
    for name in a["files"]:
        attempt(put, name, evil)
        attempt(os.rename, "evil/pre-commit", name)
    for name in a["links"]:	# of a chain every link counts
        attempt(os.unlink, name)
        attempt(os.symlink, os.path.relpath("evil/msg", os.path.dirname(name) or "."), name)
    for name in ("scripts", "chain", "deep", "up", "conf"):
        attempt(os.rename, name, name + ".old")
    attempt(os.makedirs, "gone")
    attempt(put, "gone/envrc", evil)
    attempt(put, "mcp", evil)


def escaped(s, r):
    for name in (".git/hooks/pre-commit", ".git/hooks/commit-msg"):
        if s.control and os.path.exists(os.path.join(s.ws, name)):
            os.chmod(os.path.realpath(os.path.join(s.ws, name)), 0o755)
    s.t.run("git", "-c", "user.name=o", "-c", "user.email=o@example.com", "commit", "--allow-empty",
            "-qm", "x", cwd=s.ws)
    planted = [n for n in READ if "PLANTED" in (s.t.read(os.path.join(s.ws, n))
                                                if os.path.exists(os.path.join(s.ws, n)) else "")]
    s.t.say(f"planted: {planted}")
    return os.path.exists(s.proof) or bool(planted)
