"""Mounts with the new interface: fsopen, fsconfig, fsmount, open_tree, mount_setattr.

layer: seccomp
control: in a throw-away user and mount namespace
"""
CONTROL = "unshare -Urm"


def attack(a):
    def fresh():
        context = syscall("fsopen", b"tmpfs", 0)
        syscall("fsconfig", context, 6, None, None, 0)
        tree = syscall("fsmount", context, 0, 0)
        os.mkdir("m")
        syscall("move_mount", tree, b"", -100, "m", 4)
        print("mounted: fsmount")

    def clone():
        tree = syscall("open_tree", -100, "/usr", 1)
        syscall("mount_setattr", tree, b"", 0x1000, struct.pack("QQQQ", 0, 1, 0, 0), 32)
        print("mounted: open_tree")
    attempt(fresh)
    attempt(clone)


def escaped(s, r):
    return "mounted:" in r.out
