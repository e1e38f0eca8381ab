"""Connects to services of the host: on its loopback, IPv4 and IPv6, and on its own addresses.

layer: net namespace
control: without a sandbox it is served
"""
import socket


def scene(s):
    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind(("::", 0))
    port = listener.getsockname()[1]
    s.serve(listener)
    addresses = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.1.2.3", "0.0.0.0"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            addresses.append(probe.getsockname()[0])
        except OSError:
            pass
    s.args = {"addresses": addresses, "port": port}


def attack(a):
    for address in a["addresses"]:
        def call():
            with socket.create_connection((address, a["port"]), timeout=1) as c:
                print(address, c.recv(100))
        attempt(call)


def escaped(s, r):
    return s.token in r.out or "connected" in s.heard()
