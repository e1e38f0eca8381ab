"""Plants protected names under odd circumstances: names with newlines and control bytes in the
path, unreadable directories, a directory where a file is expected.

layer: sweep
control: without a sandbox they are there afterwards
"""
import os

PATHS = ["a\nb/.envrc", "\x1b[2J/.envrc", "locked/.envrc", "locked/deep/.vscode/tasks.json",
         " /.envrc", "\udcff/.envrc"]


def scene(s):
    s.args = {"paths": PATHS}


def attack(a):
    for path in a["paths"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, "evil\n")
    os.makedirs(".envrc/inner")
    os.chmod("locked/deep", 0)
    os.chmod("locked", 0)


def escaped(s, r):
    locked = os.path.join(s.ws, "locked")
    if os.path.isdir(locked):
        os.chmod(locked, 0o755)
        if os.path.isdir(os.path.join(locked, "deep")):
            os.chmod(os.path.join(locked, "deep"), 0o755)
    left = [p for p in PATHS if os.path.lexists(os.path.join(s.ws, p))]
    s.t.say(f"left: {left!r}")
    return bool(left)
