"""Plants a file that runs later and takes away the owner's right to look into the workspace, so
that nobody finds it.

layer: sweep
control: without a sandbox it stays
"""
import os


def attack(a):
    put(".envrc", "evil\n")
    os.chmod(".", 0o100)


def escaped(s, r):
    os.chmod(s.ws, 0o755)
    return os.path.exists(os.path.join(s.ws, ".envrc"))
