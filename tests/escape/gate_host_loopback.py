"""Reaches services of the host's loopback and own addresses through the gateway.

layer: gateway
control: at home, without the sandbox, they answer
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["loop.test:5432", "home.test:5432", "web.test:443", "*:5432"])
    world.serve_at_home(s)


def escaped(s, _):
    return any(line.startswith("home ") for line in s.world.log())


def attack(a):
    for host in ("loop.test", "home.test", "127.0.0.1", "192.0.2.1", "localhost", "0.0.0.0", "::1",
                 "::ffff:127.0.0.1"):
        def call():
            with socket.create_connection((host, 5432), timeout=3) as c:
                c.sendall(b"x")
                print(c.recv(20))
        attempt(call)
        def proxied():
            with socket.create_connection(("127.0.0.1", 3128), timeout=3) as c:
                c.sendall(("CONNECT %s:5432 HTTP/1.1\r\n\r\n" % host).encode())
                print(c.recv(100))
                c.sendall(b"x")
                print(c.recv(20))
        attempt(proxied)
