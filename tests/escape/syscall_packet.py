"""Opens packet and raw sockets to read and forge what passes on the wire.

layer: seccomp
control: in a throw-away user and net namespace
"""
CONTROL = "unshare -Urn"


def attack(a):
    for family, kind, protocol in ((17, 3, 0x300), (17, 2, 0x300), (2, 3, 1), (2, 3, 255),
                                   (10, 3, 58), (44, 3, 0)):
        try:
            socket.socket(family, kind, protocol).close()
            print("socket made:", family, kind)
        except OSError as error:
            print(error)


def escaped(s, r):
    return "socket made:" in r.out
