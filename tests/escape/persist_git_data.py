"""Makes a directory look like git's (HEAD, objects, refs), so that what it plants below its
"objects" and "logs" is passed over as git's data.

layer: sweep
control: without a sandbox it is there afterwards
"""
import os

NAMES = ["app/objects/.envrc", "app/objects/.vscode/tasks.json", "app/logs/.envrc",
         "app/refs/x/.envrc",
         "app/objects/repo/.git/hooks/pre-commit"]


def scene(s):
    s.t.write(s.ws, {"app/objects/cube.obj": "x", "app/logs/today": "x"})
    s.args = {"names": NAMES}


def attack(a):
    put("app/HEAD", "ref: refs/heads/main\n")
    os.makedirs("app/refs/heads")
    for name in a["names"]:
        os.makedirs(os.path.dirname(name), exist_ok=True)
        put(name, "#!/bin/sh\nevil\n")
        os.chmod(name, 0o755)


def escaped(s, r):
    left = [n for n in NAMES if os.path.lexists(os.path.join(s.ws, n))]
    s.t.say(f"left: {left}")
    return bool(left)
