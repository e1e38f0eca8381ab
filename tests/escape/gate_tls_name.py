"""Connects to an allowed name and greets another in TLS: in one piece, byte by byte, over many
records, in a second greeting.

layer: gateway
control: at home, without the sandbox, the server there is greeted by that name
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, ["web.test:443"])


def escaped(s, _):
    return any(line.startswith("tls evil") for line in s.world.log())


def attack(a):
    import ssl
    def greeting(name):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        o = context.wrap_bio(incoming, outgoing, server_hostname=name)
        try:
            o.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()
    def records(message, size):
        body = message[5:]
        return b"".join(b"\x16\x03\x01" + len(body[i:i + size]).to_bytes(2, "big")
                        + body[i:i + size] for i in range(0, len(body), size))
    evil, web = greeting("evil.test"), greeting("web.test")
    for parts in ([evil], [bytes([b]) for b in evil], [records(evil, 9)], [records(evil, 1)],
                  [web[:60], evil], [web, evil],
                  [b"\x15\x03\x01\x00\x02\x01\x00", evil], [b"\x14\x03\x03\x00\x01\x01", evil]):
        def call():
            s = socket.create_connection(("web.test", 443), timeout=3)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                s.sendall(part)
            print(s.recv(100)[:20])
        attempt(call)
