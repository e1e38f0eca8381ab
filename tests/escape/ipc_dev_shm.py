"""Reads POSIX shared memory of the host in /dev/shm.

layer: mount namespace
control: the same user without a sandbox reads it
"""
import os


def scene(s):
    name = "ward-test-" + s.token[:16]
    s.t.write("/dev/shm", {name: s.token})
    s.t.defer(os.unlink, "/dev/shm/" + name)
    s.args = {"name": name}


def attack(a):
    print(os.listdir("/dev/shm"))
    print(slurp("/dev/shm/" + a["name"]))
