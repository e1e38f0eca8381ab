"""Opens a socket to the hypervisor, which no network namespace confines (before Linux 7).

layer: seccomp
control: without a sandbox the socket is made
"""
import socket


def test_available():
    try:
        socket.socket(40, socket.SOCK_STREAM).close()
        return True
    except OSError:
        return False


def scene(s):
    if not test_available():
        s.t.skip("the kernel has no AF_VSOCK")


def attack(a):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(40, kind)
            print("socket made:", kind)
        except OSError as error:
            print(error)


def escaped(s, r):
    return "socket made:" in r.out
