"""Reaches the host by addresses that it would not talk to itself from: a second one of a network,
one of a network routed to itself.

layer: gateway
control: at home, without the sandbox, they answer
"""
from harness import world

NEEDS = ["root"]
SECOND, ROUTED = "192.0.2.77", "203.0.113.200"


def scene(s):
    world.scene(s, ["second.test:5432", "routed.test:5432", f"{SECOND}:5432"],
                {"second.test": [SECOND], "routed.test": [ROUTED]})
    script = (f"ip addr add {SECOND}/24 dev h{s.world.home}; ip route add local 203.0.113.192/27 "
              f"dev lo src {world.HOME}")
    s.t.run("nsenter", "-t", str(s.world.home), "-n", "sh", "-ec", script, root=True, check=True)
    world.serve_at_home(s)


def escaped(s, _):
    return any(line.startswith("home ") for line in s.world.log())


def attack(a):
    for host in ("second.test", "routed.test", "192.0.2.77"):
        def call():
            with socket.create_connection((host, 5432), timeout=3) as c:
                c.sendall(b"x")
                print(c.recv(20))
        attempt(call)
