"""Rewrites programs of the tree that git configuration names in roundabout ways: in the user's own
configuration (hooksPath with "~", a relative include, an alias), and in a repository above the
workspace, as filters that a shell has to read.

layer: protect
control: without a sandbox the operator's git runs them
"""
import os

NEEDS = ["git"]
PROGRAMS = {"tools/clean": "cd sub/tools && ./clean",
            "bin/top": "$(git rev-parse --show-toplevel)/sub/bin/top",
            "slow/clean": "timeout 5 sub/slow/clean %f",
            "sh/inner.sh": "sh -c 'cat >/dev/null; exec sub/sh/inner.sh'",
            "py/f.py": "env X=1 python3 sub/py/f.py", "sp ace/run": "'sub/sp ace/run' %f",
            "home/x": "~/proj/sub/home/x", "pwd/x": "\\\"$PWD\\\"/sub/pwd/x",
            "up/x": "sub/real/../up/x", "in/x": "sub/linked/../in/x"}
# by a hook of the repository above, by its .envrc, by a hook of the user's
CALLED = ("called/hook", "called/env.sh", "called/far")


def scene(s):
    """The workspace is a directory of a repository in the home directory."""
    s.home = s.t.fresh_dir("home")
    top = os.path.join(s.home, "proj")
    s.ws = s.cwd = os.path.join(top, "sub")
    s.proof = os.path.join(s.outside, "proof")
    s.env = {"HOME": s.home, "XDG_CONFIG_HOME": ""}
    script = "#!/bin/sh\ncat\n"
    s.t.run("mkdir", "-p", s.ws, check=True)
    s.t.write(s.ws, {**{name: script for name in PROGRAMS}, "global-hooks/pre-commit": script,
                     "real/README": "r\n", "alias/run": script, "inc/config": "", "README": "r\n"})
    s.t.write(s.ws, {name: script for name in CALLED})
    s.t.write(s.home, {"my-hooks/pre-commit": "#!/bin/sh\n./sub/called/far\n",
                       "own.config": "[core]\n\thooksPath = ~/my-hooks\n"})
    s.t.write(s.home,
              {".gitconfig": "[core]\n\thooksPath = ~/proj/sub/global-hooks\n[alias]\n"
               "\tlint = \"!./sub/alias/run\"\n"
                             "[include]\n\tpath = proj/sub/inc/config\n"
               "[includeIf \"gitdir:~/other/\"]\n\tpath = own.config\n[user]\n\tname = o\n"
               "\temail = o@example.com\n"})
    s.t.run("ln", "-s", "real", os.path.join(s.ws, "linked"), check=True)
    s.t.run("git", "init", "-q", "-b", "main", top, env=s.env, check=True)
    config = "".join(f"[filter \"f{i}\"]\n\tclean = \"{c}\"\n"
                     for i, c in enumerate(PROGRAMS.values()))
    s.t.write(top, {".git/hooks/pre-push": "#!/bin/sh\nsub/called/hook\n",
                    ".envrc": "source sub/called/env.sh\n"})
    s.t.write(top,
              {".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n" + config,
               ".gitattributes": "".join(f"*.f{i} filter=f{i}\n" for i in range(len(PROGRAMS)))})
    s.t.run("sh", "-c", "find . -type f -exec chmod +x {} +", cwd=s.ws, check=True)
    s.args = {"programs": [*PROGRAMS, *CALLED], "proof": s.proof}


def attack(a):
    evil = f"#!/bin/sh\ntouch {a['proof']}\n# PLANTED BY THE ATTACK\n"
    for name in [*a["programs"], "global-hooks/pre-commit", "alias/run", "free"]:
        attempt(put, name, evil)
    attempt(put, "inc/config",
            f"[core]\n\tfsmonitor = touch {a['proof']}\n# PLANTED BY THE ATTACK\n")
    attempt(os.unlink, "linked")
    attempt(os.symlink, "evil", "linked")


def escaped(s, r):
    s.t.check("PLANTED" in s.t.read(os.path.join(s.ws, "free")),
              "what git does not run may be written")
    top = os.path.dirname(s.ws)
    s.t.run("git", "status", cwd=s.ws, env=s.env)
    for i in range(len(PROGRAMS)):
        s.t.write(top, {f"x.f{i}": "x\n"})
        s.t.run("git", "add", f"x.f{i}", cwd=top, env=s.env)
    s.t.run("git", "commit", "--allow-empty", "-qm", "x", cwd=s.ws, env=s.env)
    s.t.run("git", "lint", cwd=s.ws, env=s.env)
    names = [*PROGRAMS, *CALLED, "global-hooks/pre-commit", "alias/run", "inc/config"]
    planted = [n for n in names if "PLANTED" in (s.t.read(os.path.join(s.ws, n)) or "")]
    s.t.say(f"planted: {planted}")
    return os.path.exists(s.proof) or bool(planted)
