"""Opens sockets of families that few programs need and that have a long record of holes.

layer: seccomp
control: root without a sandbox opens some
"""
CONTROL = "root"


def attack(a):
    for family in list(range(3, 10)) + list(range(11, 16)) + list(range(17, 46)):
        for kind in (1, 2, 3, 4, 5):
            try:
                socket.socket(family, kind, 0).close()
                print("socket made: family", family, "type", kind)
                break
            except OSError as error:
                if error.errno == errno.ESOCKTNOSUPPORT:
                    print("socket family answered:", family)


def escaped(s, r):
    return "socket made:" in r.out
