"""Connects to a service of the host whose socket lies in the workspace (an editor's, an agent's, a
database's).

layer: mount namespace
control: the same user without a sandbox is served
"""
import os
import socket


def scene(s):
    os.makedirs(os.path.join(s.ws, "run/deep"))
    os.chmod(os.path.join(s.ws, "run"), 0o777)
    path = os.path.join(s.ws, "run/deep/editor.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    s.serve(listener)
    s.args = {"path": path}


def attack(a):
    for path in (a["path"], "run/deep/editor.sock"):
        def call():
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                print(c.recv(100).decode())
        attempt(call)

    def moved():
        os.rename("run", "run2")
        with socket.socket(socket.AF_UNIX) as c:
            c.connect("run2/deep/editor.sock")
            print(c.recv(100).decode())
    attempt(moved)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
