"""Changes ward's own records where the state directory lies inside the workspace.

layer: supervisor
control: the same user without a sandbox changes them
"""
import os

REFUSED = True


def scene(s):
    s.state = os.path.join(s.ws, "state")
    s.t.write(s.state, {"trust/x": "clean\n"})
    os.chmod(s.state, 0o700)
    s.env["WARD_STATE_DIR"] = s.state
    s.args = {"dir": s.state}


def attack(a):
    attempt(put, a["dir"] + "/trust/x", "evil\n")
    attempt(put, a["dir"] + "/trust/y", "evil\n")
    attempt(os.rename, a["dir"], a["dir"] + "2")
    attempt(os.makedirs, a["dir"] + "/trust")
    attempt(put, a["dir"] + "/trust/x", "evil\n")


def escaped(s, r):
    return s.t.read(s.state,
                    "trust/x") != "clean\n" or os.path.exists(os.path.join(s.state, "trust/y"))
