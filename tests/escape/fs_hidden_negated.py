"""Plants a nested .aiignore that takes the hiding back, in one run, to read the file in the next
one; and tries to take back what the policy hides.

layer: sweep
control: without a sandbox the planted file stays, and the hidden file is simply read
"""
import os

OPTIONS = ["--set", 'filesystem.hide=["*.key"]']


def attack(a):
    if a["first"]:
        for directory in ("sub", "sub/deep"):
            put(directory + "/.aiignore", "!.env\n!*.key\n!a.key\n")
        return
    for name in ("sub/.env", "sub/deep/.env", "sub/a.key"):
        attempt(lambda: print(slurp(name)))


def run(s):
    s.t.write(s.ws, {".aiignore": ".env\n", "sub/.env": s.token, "sub/deep/.env": s.token,
                     "sub/a.key": s.token})
    s.args = {"first": True}
    first = s.run()
    s.t.check("[attack began]" in first.err, "the first run never began")
    s.args = {"first": False}
    second = s.run()
    s.t.check("[attack began]" in second.err, "the second run never began")
    planted = os.path.lexists(os.path.join(s.ws, "sub/.aiignore"))
    return planted or s.token in second.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
