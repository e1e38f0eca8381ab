"""Connects to a service of the host whose socket lies in a directory that was given read-only.

layer: mount namespace
control: the same user without a sandbox is served
"""
import os
import socket


def scene(s):
    deep = os.path.join(s.outside, "run/deep")
    os.makedirs(deep, exist_ok=True)
    path = os.path.join(deep, "service.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    s.serve(listener)
    s.options += ["--ro", s.outside]
    s.args = {"path": path}


def attack(a):
    def call():
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(a["path"])
            print(c.recv(100).decode())
    attempt(call)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
