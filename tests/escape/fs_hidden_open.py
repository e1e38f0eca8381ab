"""Reads a file that .aiignore names: by open, by a link that existed before, by a changed mode,
through a descriptor.

layer: mount namespace
control: the same user without a sandbox reads it
"""
import os


def scene(s):
    s.t.write(s.ws, {".aiignore": "secret.key\nprivate/\n", "secret.key": s.token,
                     "private/a/b.txt": s.token})
    os.symlink("secret.key", os.path.join(s.ws, "alias"))


def attack(a):
    for name in ("secret.key", "./secret.key", "alias", "private/a/b.txt",
                 "/proc/self/cwd/secret.key"):
        attempt(lambda: print(slurp(name)))
    attempt(os.chmod, "secret.key", 0o666)
    attempt(os.chmod, "private", 0o777)
    attempt(lambda: print(slurp("secret.key")))
    attempt(lambda: print(slurp("private/a/b.txt")))

    def by_descriptor():
        fd = os.open("secret.key", os.O_PATH)
        print(slurp(f"/proc/self/fd/{fd}"))
    attempt(by_descriptor)
