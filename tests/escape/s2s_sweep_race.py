"""From one sandbox: swaps directories for links to the operator's files while another sandbox in
the same workspace ends, so that its sweep moves those files away or follows the link.

layer: supervisor
control: a cleanup by path, made again and again, removes the operator's file
"""
import os
import subprocess
import time

from harness import engines

TIMEOUT = 120


def swap(a):
    os.makedirs("victim", exist_ok=True)
    put("ready", "")
    end = time.monotonic() + 60
    while time.monotonic() < end and not os.path.exists("stop"):
        try:
            os.rename("victim", "was")
            os.symlink(a["dir"], "victim")
            time.sleep(0.0003)
            os.unlink("victim")
            os.rename("was", "victim")
            time.sleep(0.0003)
        except OSError:
            attempt(os.rename, "was", "victim")


def attack(a):
    for _ in range(3):
        try:
            os.makedirs("victim/.vscode", exist_ok=True)
            put("victim/.envrc", "evil\n")
            put("victim/.vscode/tasks.json", "evil\n")
        except OSError:
            pass


def state(s):
    return sorted((top, sorted(dirs), sorted(files))
                  for top, dirs, files in os.walk(os.path.join(s.outside, "mine")))


def run(s):
    mine = os.path.join(s.outside, "mine")
    s.t.write(mine, {".envrc": s.token, ".vscode/tasks.json": s.token, "deep/.envrc": s.token})
    before = state(s)
    s.companion(swap, dir=mine)
    if s.control:
        for _ in range(400):
            subprocess.run(["rm", "-rf", "victim/.envrc", "victim/.vscode"], cwd=s.ws,
                           stderr=subprocess.DEVNULL)
            if state(s) != before:
                break
    else:
        for _ in range(engines.rounds(40)):
            s.t.ward("run", "-w", s.ws, "--", *s.program(), cwd=s.ws, timeout=s.timeout)
            if len(s.t.log) > 120:
                del s.t.log[40:100]
    s.t.write(s.ws, {"stop": ""})
    time.sleep(0.1)
    return state(s) != before


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
