"""Gets a unix datagram socket made outside as its standard input, and sends to services of the host
by path and by abstract name.

layer: stdio
control: without a sandbox a service of the host hears it
"""
import socket
import time

REFUSED = True


def scene(s):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = "ward-test-" + s.token[:16]
    listener.bind("\0" + name)
    s.serve(listener)
    s.stdin = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.args = {"name": name}


def attack(a):
    attempt(lambda: socket.socket(fileno=os.dup(0)).sendto(b"hello", "\0" + a["name"]))


def escaped(s, r):
    time.sleep(0.1)
    s.stdin.close()
    return "hello" in s.heard()
