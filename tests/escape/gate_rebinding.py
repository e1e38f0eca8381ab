"""Connects to an allowed name whose address turns from public to private, to the host and to the
cloud's metadata.

layer: gateway
control: at home, without the sandbox, the private address is reached
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["turn.test:5432", "mixed.test:5432", "private.test:5432", "metadata.test:5432"],
                {"turn.test": [["198.51.100.10"], ["10.99.0.5"], ["169.254.169.254"]]})


def escaped(s, _):
    return any(line.startswith(("tcp 10.99", "tcp 169.254")) for line in s.world.log())


def attack(a):
    for name in ["turn.test"] * 6 + ["private.test", "metadata.test", "10.99.0.5",
                                     "169.254.169.254"]:
        def call():
            with socket.create_connection((name, 5432), timeout=3) as c:
                c.sendall(b"x")
                print(c.recv(1))
        attempt(call)
