"""Plants a protected name so deep that its path is longer than a path may be.

layer: sweep
control: without a sandbox it is there afterwards
"""
import os
import subprocess


def attack(a):
    for _ in range(600):
        os.mkdir("directory1")
        os.chdir("directory1")
    put(".envrc", "evil\n")


def escaped(s, r):
    found = subprocess.run(["find", ".", "-name", ".envrc", "-printf", "found\n"], cwd=s.ws,
                           stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
    return b"found" in found.stdout
