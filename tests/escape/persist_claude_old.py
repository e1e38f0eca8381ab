"""Changes agent and editor settings that are there, adds files beside them, and moves their
directories.

layer: protect
control: without a sandbox they are changed
"""
import os

NAMES = [".claude/settings.json", ".mcp.json", ".vscode/tasks.json", ".envrc", "ward.yaml",
         ".aiignore",
         "sub/.claude/settings.json", "sub/.envrc", ".bashrc"]


def scene(s):
    s.t.write(s.ws, {n: "version: 1\n" if n == "ward.yaml" else "\n" if n == ".aiignore" else "{}\n"
                     for n in NAMES})
    s.before = state(s)
    s.args = {"names": NAMES}


def attack(a):
    for name in a["names"]:
        attempt(put, name, "evil\n", "a")
        attempt(os.unlink, name)
        put("new", "evil\n")
        attempt(os.replace, "new", name)
        attempt(os.truncate, name, 0)
        top = name.split("/")[0]
        if "/" in name:
            attempt(os.rename, top, top + ".old")
            attempt(os.makedirs, os.path.dirname(name))
            attempt(put, name, "evil\n")
    attempt(put, ".claude/settings.local.json", "evil\n")
    attempt(put, ".vscode/launch.json", "evil\n")


def state(s):
    found = {n: s.t.read(s.ws, n) for n in NAMES}
    found["more"] = [n for n in (".claude/settings.local.json", ".vscode/launch.json")
                     if os.path.lexists(os.path.join(s.ws, n))]
    return found


def escaped(s, r):
    return state(s) != s.before
