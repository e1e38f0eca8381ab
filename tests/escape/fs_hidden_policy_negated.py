"""Comes with .aiignore files that take back what the policy hides.

layer: mount namespace
control: without a sandbox the file is simply read
"""
OPTIONS = ["--set", 'filesystem.hide=["*.key", ".env"]']


def scene(s):
    s.t.write(s.ws, {".aiignore": "!*.key\n!.env\n", "sub/.aiignore": "!*.key\n!.env\n",
                     "sub/a.key": s.token,
                     "a.key": s.token, "sub/.env": s.token})


def attack(a):
    for name in ("a.key", "sub/a.key", "sub/.env"):
        attempt(lambda: print(slurp(name)))
