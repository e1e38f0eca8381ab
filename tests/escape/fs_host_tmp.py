"""Reads and writes the host's /tmp and /var/tmp.

layer: mount namespace
control: the same user without a sandbox does it
"""
import os


def scene(s):
    s.paths = []
    for top in ("/tmp", "/var/tmp"):
        path = f"{top}/{s.token[:12]}.secret"
        s.t.write(top, {os.path.basename(path): s.token})
        s.t.defer(os.unlink, path)
        s.paths.append(path)
    s.args = {"paths": s.paths}


def attack(a):
    for path in a["paths"]:
        attempt(lambda: print(slurp(path)))
        attempt(put, path, "evil")


def escaped(s, r):
    return s.token in r.out or any(s.t.read(p) != s.token for p in s.paths)
