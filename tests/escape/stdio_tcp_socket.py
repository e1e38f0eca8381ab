"""Gets a TCP connection of the host's network as its standard input (inetd, socat), and connects it
to somewhere else.

layer: stdio
control: without a sandbox the socket connects to another service of the host
"""
import os
import socket


def scene(s):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    s.serve(listener)
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen(1)
    s.stdin = socket.create_connection(other.getsockname())
    s.keep = [other, other.accept()[0]]
    s.args = {"port": port}


def attack(a):
    for fd in (0, 1, 2):
        def again():
            c = socket.socket(fileno=os.dup(fd))
            c.settimeout(1)
            LIBC.connect(c.fileno(), struct.pack("HH12x", 0, 0), 16)
            c.connect(("127.0.0.1", a["port"]))
            print("got", c.recv(100))
        attempt(again)


def escaped(s, r):
    s.stdin.close()
    return s.token in r.out or "connected" in s.heard()


REFUSED = True
