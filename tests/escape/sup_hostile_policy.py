"""Comes with a ward.yaml in the workspace that grants the user's files.

layer: supervisor
control: the same document given by the user with -p grants them
"""
import os

REFUSED = True


def run(s):
    path = s.secret()
    s.t.write(s.ws,
              {"ward.yaml": "version: 1\nfilesystem:\n  host_mounts:\n"
               f"    - {{path: \"{s.outside}\", mode: read_write}}\n"})
    s.args = {"path": path}
    if s.control and os.environ.get("WARD_TEST_CONTROLS"):
        return True
    options = ["-p", os.path.join(s.ws, "ward.yaml")] if s.control else []
    r = s.t.ward("run", "-w", s.ws, *options, "--", *s.program(), cwd=s.ws)
    if not s.control:
        s.t.equal(r.rc, 125, "an untrusted policy that widens is refused")
    return s.token in r.out


def attack(a):
    print(slurp(a["path"]))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
