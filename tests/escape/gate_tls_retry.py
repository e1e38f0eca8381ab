"""Greets the allowed name, and in the second greeting, which the server asks for by
HelloRetryRequest, another one.

layer: gateway
control: at home, without the sandbox, the server takes the second greeting and goes on
"""
from harness import world

NEEDS = ["root"]


def scene(s):
    world.scene(s, [{"host": "web.test", "ports": [8443], "mode": "splice"}])


def escaped(_, r):
    return "went on with evil.test" in r.out


def attack(a):
    import ssl

    def greeting(name, curve=None):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if curve:
            context.set_ecdh_curve(curve)
        o = context.wrap_bio(incoming, outgoing, server_hostname=name)
        try:
            o.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    for name in ("web.test", "evil.test"):
        def call():
            s = socket.create_connection(("web.test", 8443), timeout=5)
            s.sendall(greeting("web.test"))
            first = s.recv(4096)
            print("asked again" if retry in first else "not asked again")
            s.sendall(greeting(name, "secp521r1"))
            answer = s.recv(4096)
            # a ServerHello that is no retry, maybe behind a change-cipher-spec
            if b"\x16\x03\x03" in answer and b"\x02\x00" in answer and retry not in answer:
                print("went on with", name)
            else:
                print("stopped at", name, answer[:20])
        attempt(call)
