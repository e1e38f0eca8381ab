"""Looks for the cache and the home of another project's sandbox, and for the way into ward's state
from its own.

layer: mount namespace
control: without a sandbox everything of the user's can be read
"""
import os

OPTIONS = ["--set", "filesystem.caches=[npm, pip]", "--set", "filesystem.home=mine"]


def scene(s):
    other = s.t.workspace()
    for option in ("filesystem.caches=[npm]", "filesystem.home=theirs"):
        r = s.t.ward("run", "--set", option, "--", "sh", "-c",
                     f"echo {s.token} > ~/.npm/token || echo {s.token} > ~/token", cwd=other)
        s.t.equal(r.rc, 0, "the other project's run")
    s.args = {"state": s.t.state_dir}


def attack(a):
    home = os.path.expanduser("~")
    tops = [a["state"]]
    if inside():
        tops += ["/", home, home + "/..", home + "/.npm/..", home + "/.npm/../../..",
                 "/proc/self/cwd/..", "/proc/1/root/home", "/proc/1/cwd"]
    for top in tops:
        for directory, dirs, files in os.walk(top):
            dirs[:] = [d for d in dirs if d not in ("usr", "proc", "dev")]
            if "token" in files:
                print(open(os.path.join(directory, "token")).read())


def escaped(s, r):
    return s.token in r.out
