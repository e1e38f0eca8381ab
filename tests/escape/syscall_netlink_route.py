"""Changes its network with NETLINK_ROUTE: new interfaces, addresses, routes.

layer: no capabilities
control: in a throw-away user and net namespace a dummy interface is made
"""
CONTROL = "unshare -Urn"


def attack(a):
    s = socket.socket(16, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    kind = struct.pack("HH", 8 + 6, 1) + b"dummy\0\0\0"
    info = struct.pack("HH", 4 + len(kind), 18) + kind
    name = struct.pack("HH", 4 + 6, 3) + b"evil0\0\0\0"
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + name + info
    s.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
    answer = s.recv(4096)
    code = struct.unpack("i", answer[16:20])[0]
    print("answer:", code, [n for _, n in socket.if_nameindex()])
    # an address for the loopback is a change too
    body = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4s", 8, 2, bytes([10, 9, 8, 7]))
    s.send(struct.pack("IHHII", 16 + len(body), 20, 0x605, 2, 0) + body)
    code = struct.unpack("i", s.recv(4096)[16:20])[0]
    if code == 0:
        print("address set")


def escaped(s, r):
    return "evil0" in r.out or "address set" in r.out
