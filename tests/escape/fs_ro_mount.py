"""Changes a host directory that was given read-only (`--ro DIR`).

layer: mount namespace
control: the same user without a sandbox changes it
"""
import os


def scene(s):
    s.t.write(s.outside, {"lib.py": "clean\n", "sub/a": "clean\n"})
    s.options += ["--ro", s.outside]
    s.args = {"dir": s.outside}
    s.mode = os.stat(os.path.join(s.outside, "lib.py")).st_mode


def attack(a):
    d = a["dir"]
    print(os.listdir(d))
    attempt(put, d + "/lib.py", "evil\n")
    attempt(put, d + "/new.py", "evil\n")
    attempt(os.rename, d + "/sub", d + "/sub2")
    attempt(os.chmod, d + "/lib.py", 0o777)
    attempt(os.utime, d + "/lib.py", (1, 1))
    attempt(syscall, "mount", None, d, None, 0x1020, None)
    attempt(put, d + "/lib.py", "evil\n")


def escaped(s, r):
    path = os.path.join(s.outside, "lib.py")
    return (s.t.read(path) != "clean\n" or sorted(os.listdir(s.outside)) != ["lib.py", "sub"]
            or os.stat(path).st_mode != s.mode or os.stat(path).st_mtime == 1)
