"""Gets a UDP socket of the host's network as its standard input, and sends datagrams anywhere with
it.

layer: stdio
control: without a sandbox a service of the host hears it
"""
import socket
import time

REFUSED = True


def scene(s):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    s.serve(listener)
    s.stdin = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.args = {"port": port}


def attack(a):
    attempt(lambda: socket.socket(fileno=os.dup(0)).sendto(b"hello", ("127.0.0.1", a["port"])))


def escaped(s, r):
    time.sleep(0.1)
    s.stdin.close()
    return "hello" in s.heard()
