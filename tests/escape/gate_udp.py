"""Sends datagrams, raw packets and other protocols out: QUIC, ping, SCTP, UDP-Lite.

layer: gateway and seccomp
control: at home, without the sandbox, a datagram arrives
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["web.test:443", "db.test:5432"])


def escaped(s, _):
    return any(line.startswith("udp ") for line in s.world.log())


def attack(a):
    for host in ("203.0.113.5", "web.test", "192.0.2.10"):
        for port in (443, 5432, 53):
            for kind, protocol in ((socket.SOCK_DGRAM, 0), (socket.SOCK_DGRAM, 136),
                                   (socket.SOCK_RAW, 17)):
                def call():
                    s = socket.socket(socket.AF_INET, kind, protocol)
                    s.settimeout(0.2)
                    s.sendto(b"hello", (host, port))
                    print(s.recv(10))
                attempt(call)
