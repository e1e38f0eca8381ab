"""Connects to addresses that the allow-list does not name, on every port that it does, and a server
there.

layer: gateway
control: at home, without the sandbox, those addresses answer
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["web.test:443", "web.test:80", "db.test:5432"])


def escaped(s, _):
    return any(line.startswith("tcp 203.0.113.5") for line in s.world.log())


def attack(a):
    for port in (5432, 80, 443, 7, 8080, 22):
        for host in ("203.0.113.5", "evil.test", "::ffff:203.0.113.5", "3405803781",
                     "0xcb.0.0x71.5"):
            def call():
                with socket.create_connection((host, port), timeout=3) as c:
                    c.sendall(b"GET / HTTP/1.0\r\nHost: web.test\r\n\r\n")
                    print(c.recv(50))
            attempt(call)
