"""Mounts with mount(2): a fresh tmpfs, a bind of what it knows, proc without masks; and pivots its
root.

layer: seccomp
control: in a throw-away user, mount and pid namespace
"""
CONTROL = "unshare -Urmpf"


def attack(a):
    os.mkdir("m")
    for source, kind, flags in ((b"none", b"tmpfs", 0), (b"/usr", None, 0x1000),
                                (b"proc", b"proc", 0)):
        try:
            syscall("mount", source, "m", kind, flags, None)
            print("mounted:", source, kind)
        except OSError as error:
            print(error)


def escaped(s, r):
    return "mounted:" in r.out
