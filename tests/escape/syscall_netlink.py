"""Talks to the kernel over netlink: device events, audit, firewall, generic families, socket lists.

layer: seccomp
control: without a sandbox the sockets are made
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    for protocol in range(1, 23):
        try:
            socket.socket(16, socket.SOCK_RAW, protocol).close()
            print("netlink made:", protocol)
        except OSError as error:
            print(protocol, error)


def escaped(s, r):
    return "netlink made:" in r.out
