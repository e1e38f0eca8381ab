"""Swaps a protected directory for a symbolic link to one that the attacker fills, and plants
protected names as links.

layer: protect
control: without a sandbox the links are there afterwards
"""
import os


def scene(s):
    s.t.write(s.ws, {".vscode/settings.json": "{}\n"})


def attack(a):
    os.mkdir("mine")
    put("mine/tasks.json", "evil\n")
    put("mine/settings.json", "evil\n")
    attempt(os.rename, ".vscode", ".old")
    attempt(os.symlink, "mine", ".vscode")
    attempt(os.symlink, "mine", ".claude")
    attempt(os.symlink, "mine/tasks.json", ".mcp.json")
    os.symlink("/nonexistent", ".envrc")


def escaped(s, r):
    return any(os.path.islink(os.path.join(s.ws, n))
               for n in (".vscode", ".claude", ".mcp.json", ".envrc"))
