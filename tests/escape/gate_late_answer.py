"""Gets the addresses of one name, which come late, taken for those of another, whose rule reaches
private addresses.

layer: gateway
control: at home, without the sandbox, the private address is reached
"""
from harness import world

NEEDS = ["root"]
SLOW = True
TIMEOUT = 120


def scene(s):
    # the connection is given up after 30 seconds, the resolver's patience with three servers is a
    # little longer
    world.scene(s, ["late.test:5432", {"host": "inner.test", "ports": [5432], "private": True}],
                {"late.test": [30.6, ["10.99.0.5"]], "inner.test": [20.0, []]}, resolvers=3)
    s.timeout = 80


def escaped(s, _):
    return any(line.startswith("tcp 10.99") for line in s.world.log())


def attack(a):
    def call(name):
        with socket.create_connection((name, 5432), timeout=50) as c:
            c.sendall(b"x")
            print(c.recv(1))
    attempt(call, "private.test")
    if inside():
        attempt(call, "late.test")
        attempt(call, "inner.test")
