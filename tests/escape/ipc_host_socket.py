"""Connects to a service of the host by the path of its socket, as to docker.sock, an ssh agent or
the session bus.

layer: mount namespace
control: the same user without a sandbox is served
"""
import os
import socket


def scene(s):
    path = os.path.join(s.outside, "agent.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    s.serve(listener)
    s.env["SSH_AUTH_SOCK"] = path
    s.args = {"path": path}


def attack(a):
    paths = [a["path"], os.environ.get("SSH_AUTH_SOCK", "/x")]
    for path in paths + (["/run/docker.sock", "/proc/1/root" + a["path"]] if inside() else []):
        def call():
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                print(c.recv(100).decode())
        attempt(call)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
