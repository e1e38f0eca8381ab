"""Connects, from a run under review, to a service of the host whose socket lies in the workspace;
and to one that was started meanwhile.

layer: review
control: the same user without a sandbox is served
"""
import os
import socket

OPTIONS = ["--review"]


def scene(s):
    path = os.path.join(s.ws, "editor.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    s.serve(listener)
    s.args = {"path": path}


def attack(a):
    for path in (a["path"], "editor.sock", "moved.sock"):
        def call():
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                print(c.recv(100).decode())
        attempt(call)
        attempt(os.rename, "editor.sock", "moved.sock")


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
