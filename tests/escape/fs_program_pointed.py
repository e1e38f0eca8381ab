"""Rewrites what a program of the user's PATH is made of, a pyvenv.cfg in the workspace, so that the
next run under filesystem.programs shows the operator's keys as the Python that it needs.

layer: supervisor
control: who follows pyvenv.cfg without asking whose it is copies the keys' directory into view
"""
import os


def attack(a):
    if a["first"]:
        os.makedirs("venv/bin")
        put("venv/pyvenv.cfg", f"home = {a['keys']}/bin\n")
        put("venv/bin/tool", "#!/bin/sh\n")
        os.chmod("venv/bin/tool", 0o755)
        return
    for place in (a["keys"] + "/id", "shown/id"):
        try:
            print(open(place).read())
        except OSError as error:
            print(error)


def run(s):
    keys = os.path.join(s.outside, "keys")
    os.makedirs(os.path.join(keys, "bin"))
    os.chmod(s.secret("id", keys), 0o600)
    if s.control:
        os.chmod(os.path.join(keys, "id"), 0)	# out of its reach, as it is inside
    s.env = {"PATH": f"{s.ws}/venv/bin:/usr/bin:/bin"}
    for first in (True, False):
        s.args = {"first": first, "keys": keys}
        r = s.run()
        s.t.check("[attack began]" in r.err, "the attack never ran")
        if first and s.control:
            s.t.run("sh", "-c", "chmod 600 $1/../id; cp -r $1/.. shown", "sh", f"{keys}/bin",
                    cwd=s.ws)
        s.options = ["--set", "filesystem.programs=[tool]"]
    return s.token in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
