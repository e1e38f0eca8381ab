"""Plants protected names in a workspace that lies on another file system than ward's records, so
that they cannot simply be renamed away.

layer: sweep
control: without a sandbox they are there afterwards
"""
import os
import shutil

NAMES = [".envrc", ".vscode/tasks.json", "sub/.claude/settings.json"]


def scene(s):
    # the records go to another file system: the workspace cannot, /dev is the sandbox's own
    state = f"/dev/shm/ward-test-{s.token[:14]}"
    os.mkdir(state, 0o700)
    s.t.defer(shutil.rmtree, state)
    s.env["WARD_STATE_DIR"] = state
    s.args = {"names": NAMES}


def attack(a):
    for name in a["names"]:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        put(name, "evil\n")
    os.symlink("/etc/shadow", ".vscode/link")
    os.mkfifo(".vscode/fifo")


def escaped(s, r):
    return any(os.path.lexists(os.path.join(s.ws, n)) for n in NAMES)
