"""Plants what other tools run by themselves: configuration of version control beside git (also by
way of another directory), project files of editors, start files of debuggers and interpreters,
skills of agents.

layer: sweep
control: without a sandbox they are there afterwards
"""
import os

PATHS = [".hg/sharedpath", ".hg/hgrc-not-shared", "_darcs/prefs/defaults", ".repo/repo/main.py",
         ".helix/languages.toml", "a/.run/x.run.xml",
         ".lite_project.lua", "src/.pdbrc", "src/.Rprofile", ".iex.exs",
         ".agents/skills/x/SKILL.md", ".factory/hooks.json", ".openhands/setup.sh"]
FREE = ["src/main.R", ".agents/notes.md", "a/.run/server.pid"]


def scene(s):
    s.args = {"paths": PATHS + FREE}


def attack(a):
    for path in a["paths"]:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        put(path, "EVIL AND PLANTED\n")
    os.symlink("src", "linked")
    os.makedirs("elsewhere/skills/y")
    os.symlink("../elsewhere", "a/.agents")


def escaped(s, r):
    s.t.check(all(os.path.exists(os.path.join(s.ws, p)) for p in FREE), "what nothing runs stays")
    left = [p for p in PATHS + ["a/.agents"] if os.path.lexists(os.path.join(s.ws, p))]
    s.t.say(f"left: {left}")
    return bool(left)
