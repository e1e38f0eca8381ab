"""Changes a workspace that the policy gives read-only, in every way that changes files.

layer: mount namespace
control: the same user without a sandbox changes it
"""
import os

OPTIONS = ["--set", "filesystem.mode=read_only"]


def scene(s):
    s.t.write(s.ws, {"a.txt": "clean\n", "dir/b.txt": "clean\n"})
    s.before = state(s)


def attack(a):
    attempt(put, "a.txt", "evil\n")
    attempt(put, "new.txt", "evil\n")
    attempt(os.unlink, "dir/b.txt")
    attempt(os.rename, "dir", "dir2")
    attempt(os.truncate, "a.txt", 0)
    attempt(os.chmod, "a.txt", 0o777)
    attempt(os.utime, "a.txt", (1, 1))
    attempt(os.setxattr, "a.txt", "user.evil", b"1")
    attempt(os.mkdir, "new")
    attempt(os.symlink, "/", "root")


def state(s):
    return [(top, sorted(dirs), sorted(files),
             [os.stat(os.path.join(top, f)).st_mode for f in sorted(files)],
             [s.t.read(top, f) for f in sorted(files)]) for top, dirs, files in os.walk(s.ws)]


def escaped(s, r):
    return state(s) != s.before
