"""Makes what a protected link leads to, which was not there when the run began: `.bashrc` that
leads to a missing file, `.vscode` to a missing directory, `.mcp.json` by an absolute path.

layer: sweep
control: without a sandbox the links lead to what was planted
"""
import os

LINKS = {".bashrc": "local.rc", "sub/.vscode": "../editor", ".mcp.json": "{ws}/servers.json",
         ".zshrc": "chain", "chain": "end.rc"}


def scene(s):
    os.mkdir(os.path.join(s.ws, "sub"))
    for name, target in LINKS.items():
        os.symlink(target.format(ws=s.ws), os.path.join(s.ws, name))
    s.t.write(s.ws, {"there.envrc": "old"})
    os.symlink(os.path.join(s.ws, "there.envrc"), os.path.join(s.ws, ".envrc"))


def attack(a):
    os.mkdir("editor")
    for name in ("local.rc", "editor/tasks.json", "servers.json", "end.rc", "there.envrc"):
        attempt(put, name, "PLANTED BY THE ATTACK")


def escaped(s, r):
    planted = [name for name in (".bashrc", "sub/.vscode/tasks.json", ".mcp.json", ".zshrc",
                                 ".envrc")
               if "PLANTED" in (s.t.read(os.path.join(s.ws, name))
                                if os.path.exists(os.path.join(s.ws, name)) else "")]
    s.t.say(f"planted: {planted}")
    return bool(planted) if not s.control else len(planted) == 5
