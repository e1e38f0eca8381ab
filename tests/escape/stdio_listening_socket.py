"""Gets a listening socket of the host's network as its standard input, and accepts the host's
connections.

layer: stdio
control: without a sandbox it serves the host
"""
import socket

REFUSED = True


def scene(s):
    s.stdin = socket.socket()
    s.stdin.bind(("127.0.0.1", 0))
    s.stdin.listen(4)
    s.client = socket.create_connection(s.stdin.getsockname())


def attack(a):
    def serve():
        c = socket.socket(fileno=os.dup(0))
        c.settimeout(1)
        peer, _ = c.accept()
        peer.send(b"evil")
    attempt(serve)


def escaped(s, r):
    s.client.settimeout(0.3)
    try:
        return s.client.recv(10) == b"evil"
    except OSError:
        return False
    finally:
        s.client.close()
        s.stdin.close()
