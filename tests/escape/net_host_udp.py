"""Sends datagrams to a service of the host.

layer: net namespace
control: without a sandbox they arrive
"""
import socket
import time


def scene(s):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("0.0.0.0", 0))
    port = listener.getsockname()[1]
    s.serve(listener)
    s.args = {"port": port}


def attack(a):
    for address in ("127.0.0.1", "127.255.255.255", "192.0.2.2"):
        def call():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as c:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                c.sendto(b"hello", (address, a["port"]))
        attempt(call)


def escaped(s, r):
    time.sleep(0.1)
    return "hello" in s.heard()
