"""Makes a directory look like git's (HEAD, objects, refs), in one run, so that in the next the
hidden files below its "objects" are passed over as git's data.

layer: mount namespace
control: without a sandbox the file is simply read
"""
OPTIONS = ["--set", 'filesystem.hide=[".env", "*.key"]']


def attack(a):
    if a["first"]:
        attempt(put, "app/HEAD", "ref: refs/heads/main\n")
        attempt(os.makedirs, "app/refs/heads")
        attempt(put, "app/config", "[core]\n\tbare = true\n")
        return
    for name in ("app/objects/.env", "app/objects/deep/a.key", "app/logs/.env", "app/refs/.env"):
        attempt(lambda: print(slurp(name)))


def run(s):
    s.t.write(s.ws, {"app/objects/.env": s.token, "app/objects/deep/a.key": s.token,
                     "app/logs/.env": s.token,
                     "app/refs/.env": s.token})
    began = []
    for first in (True, False):
        s.args = {"first": first}
        r = s.run()
        began.append("[attack began]" in r.err)
    s.t.check(all(began), "the attack never ran")
    return s.token in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
