"""Has the operator's `ward quarantine restore` write outside: the directory that the file came from
is a link by then.

layer: supervisor
control: a shell that moves the file back by its path writes outside
"""
import os


def attack(a):
    if a["first"]:
        os.makedirs("sub/deep")
        put("sub/deep/.envrc", "evil\n")
        return
    os.rename("sub", "was")
    os.symlink(a["outside"], "sub")


def run(s):
    os.mkdir(os.path.join(s.outside, "deep"))
    for first in (True, False):
        s.args = {"first": first, "outside": s.outside}
        r = s.run()
        s.t.check("[attack began]" in r.err, "the attack never ran")
    if s.control:
        s.t.run("sh", "-c", "mv was/deep/.envrc sub/deep/.envrc", cwd=s.ws)
    else:
        s.t.ward("quarantine", "ls", cwd=s.ws)
        s.t.ward("quarantine", "restore", cwd=s.ws)
    return os.path.lexists(os.path.join(s.outside, "deep/.envrc"))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
