"""Gives a program in the workspace file capabilities, which would work when anybody runs it on the
host.

layer: no capabilities
control: root without a sandbox sets them
"""
import os

CONTROL = "root"


def attack(a):
    put("tool", "x")
    value = struct.pack("<IIIIII", 0x03000001, 0xffffffff, 0, 0xffffffff, 0, 0)[:24]
    for blob in (value, struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0)):
        attempt(os.setxattr, "tool", "security.capability", blob)
    attempt(os.setxattr, "tool", "trusted.evil", b"1")


def escaped(s, r):
    names = os.listxattr(os.path.join(s.ws, "tool"))
    with s.t.root():
        names = os.listxattr(os.path.join(s.ws, "tool"))
    return any(n.startswith(("security.capability", "trusted.")) for n in names)
