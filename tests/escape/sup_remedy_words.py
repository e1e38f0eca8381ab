"""Works in a directory whose name is a piece of shell, so that a remedy that ward prints does
something else when the operator copies it to a shell.

layer: supervisor
control: a message that quotes the name by hand runs it
"""
import os
import re
import subprocess

NEEDS = ["git"]
NAME = "x'$(touch PWNED)'"


def attack(a):
    import subprocess
    subprocess.run(["git", "-C", a["name"], "config", "core.pager", "x"], check=False)


def run(s):
    s.args = {"name": NAME}
    os.mkdir(os.path.join(s.ws, NAME))
    s.t.run("git", "init", "-q", cwd=os.path.join(s.ws, NAME))
    if s.control:
        said = f"remedy: --set 'filesystem.protect=[\"!{NAME}/.git/config\"]'"
    else:
        r = s.t.ward("run", "-w", s.ws, "--", *s.program(), cwd=s.ws, timeout=s.timeout)
        said = r.err + s.t.ward("explain", cwd=s.ws).out
        s.t.contains(said, "core.pager", "what ward says")
    for words in re.findall(r"(?:--set|ward policy add) .*", said):
        subprocess.run(["sh", "-c", "true " + words], cwd=s.outside, stderr=subprocess.DEVNULL,
                       check=False)
    return os.path.exists(os.path.join(s.outside, "PWNED"))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
