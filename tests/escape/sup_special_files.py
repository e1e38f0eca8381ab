"""Comes with special files where ward reads: .aiignore, ward.yaml, .git and .gitignore as FIFOs,
loops and links to secrets, so that ward hangs or tells.

layer: supervisor
control: a program that opens the FIFO hangs
"""
import os

from harness import engines
from harness.context import Failed


def run(s):
    s.secret()
    if s.control:
        os.mkfifo(os.path.join(s.ws, ".aiignore"))
        try:
            s.t.run("cat", os.path.join(s.ws, ".aiignore"), timeout=0.5)
            return False
        except Failed:
            return True
    bad = False
    for name in (".aiignore", "ward.yaml", ".git", ".git/config", ".envrc", ".vscode"):
        for kind in ("fifo", "loop", "secret", "zero"):
            ws = s.t.workspace()
            path = os.path.join(ws, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if kind == "fifo":
                os.mkfifo(path)
            else:
                os.symlink({"loop": os.path.basename(name),
                            "secret": os.path.join(s.outside, "secret.txt"),
                            "zero": "/dev/zero"}[kind], path)
            r = s.t.ward("run", "-w", ws, "--", "/bin/true", cwd=ws, timeout=5 * engines.patience())
            s.t.check(r.rc in (0, 125), f"{name} as {kind}: exit {r.rc}")
            bad = bad or s.token in r.err + r.out
    return bad


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
