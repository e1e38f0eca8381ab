"""Mounts a writable tree of its own over a protected directory by the new mount interface
(open_tree, move_mount).

layer: no capabilities
control: in a throw-away user and mount namespace
"""
CONTROL = "unshare -Urm"


def scene(s):
    s.t.write(s.ws, {".vscode/settings.json": "{}", "evil/settings.json": s.token})


def attack(a):
    tree = syscall("open_tree", -100, "evil", 1)
    syscall("move_mount", tree, "", -100, ".vscode", 4)
    print(slurp(".vscode/settings.json"))
