"""Lists the directory above the workspace to learn what else the user works on.

layer: mount namespace
control: the same user without a sandbox sees the names
"""
import os


def scene(s):
    s.t.write(s.t.directory, {s.token: "x"})


def attack(a):
    attempt(lambda: print(os.listdir("..")))
    attempt(lambda: print(os.listdir(os.path.dirname(os.getcwd()))))
    attempt(lambda: print(os.listdir("/proc/1/cwd/..")))
