"""Connects to a service of the host on an abstract unix socket.

layer: net namespace
control: the same user without a sandbox is served
"""
import socket


def scene(s):
    listener = socket.socket(socket.AF_UNIX)
    name = "ward-test-" + s.token[:16]
    listener.bind("\0" + name)
    s.serve(listener)
    s.args = {"name": name}


def attack(a):
    with socket.socket(socket.AF_UNIX) as c:
        c.connect("\0" + a["name"])
        print(c.recv(100).decode())


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
