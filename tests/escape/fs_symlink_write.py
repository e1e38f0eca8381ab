"""Writes through a symbolic link in the workspace into the user's shell start-up file.

layer: mount namespace
control: the same user without a sandbox writes it
"""
import os


def scene(s):
    s.path = os.path.join(s.t.home, ".bashrc")
    s.t.write(s.t.home, {".bashrc": "clean\n"})
    os.symlink(s.path, os.path.join(s.ws, "rc"))


def attack(a):
    put("rc", "evil\n", "a")


def escaped(s, r):
    return s.t.read(s.path) != "clean\n"
