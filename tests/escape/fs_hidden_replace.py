"""Deletes or overwrites a file that is hidden, or the .aiignore that hides it, so that the next run
shows it.

layer: mount namespace
control: the same user without a sandbox does it
"""


def scene(s):
    s.t.write(s.ws, {".aiignore": "/.env\n", ".env": s.token})


def attack(a):
    for name in (".env", ".aiignore"):
        attempt(put, name, "evil\n")
        attempt(os.unlink, name)
        put("new", "evil\n")
        attempt(os.replace, "new", name)
        attempt(os.truncate, name, 0)


def escaped(s, r):
    return s.t.read(s.ws, ".env") != s.token or s.t.read(s.ws, ".aiignore") != "/.env\n"
