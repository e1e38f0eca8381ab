"""Gives a file in the workspace to another user of the host.

layer: no capabilities
control: root without a sandbox does it
"""
import os

CONTROL = "root"


def attack(a):
    put("file", "x")
    for uid in (0, 1, 1000, 65534, 99999):
        attempt(os.chown, "file", uid, uid)
    attempt(os.chown, "file", 1, 1)


def escaped(s, r):
    st, ws = os.stat(os.path.join(s.ws, "file")), os.stat(s.ws)
    return (st.st_uid, st.st_gid) != (ws.st_uid, ws.st_gid)
