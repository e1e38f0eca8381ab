"""Sends a datagram to a service of the host on an abstract unix socket.

layer: net namespace
control: the same user without a sandbox is heard
"""
import socket
import time


def scene(s):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = "ward-test-" + s.token[:16]
    listener.bind("\0" + name)
    s.serve(listener)
    s.args = {"name": name}


def attack(a):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as c:
        c.sendto(b"hello", "\0" + a["name"])


def escaped(s, r):
    time.sleep(0.1)
    return "hello" in s.heard()
