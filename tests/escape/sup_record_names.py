"""Comes with directory names that hold newlines, so that ward's record of what was there before
lists names that were not; then has ward killed.

layer: supervisor
control: a list of names separated by newlines, read again, holds the forged one
"""
import os
import signal
import subprocess
import time


def attack(a):
    put(".envrc", "evil\n")
    os.makedirs(".vscode", exist_ok=True)
    put(".vscode/tasks.json", "evil\n")
    put("done", "")
    time.sleep(20)


def run(s):
    for name in ("q\n.envrc\nz", "q\n.vscode/\nz",
                 "q\n.vscode/tasks.json\nz".replace("/", "\u2215")):
        s.t.write(s.ws, {name + "/.envrc": "old\n"})
    if s.control:
        found = subprocess.run(["find", ".", "-name", ".envrc", "-printf", "%P\n"], cwd=s.ws,
                               stdout=subprocess.PIPE)
        return ".envrc" in found.stdout.decode().split("\n")
    process = s.t.ward_start("run", "-w", s.ws, "--", *s.program(), cwd=s.ws)
    s.wait_begun(os.path.join(s.ws, "done"), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    s.t.ward("run", "-w", s.t.workspace(), "--", "/bin/true")
    return any(os.path.lexists(os.path.join(s.ws, n)) for n in (".envrc", ".vscode/tasks.json"))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
