"""Makes device nodes in the workspace: a way to the raw disk and to kernel memory.

layer: no capabilities
control: root without a sandbox makes one
"""
import os
import stat

CONTROL = "root"


def attack(a):
    for kind, name in ((0o020000, "char"), (0o060000, "block")):
        attempt(os.mknod, name, kind | 0o666, os.makedev(1, 5))
        attempt(os.mknod, "/tmp/" + name, kind | 0o666, os.makedev(1, 5))
    for name in ("char", "/tmp/char"):
        try:
            with open(name, "rb") as f:
                print("read", len(f.read(16)), "bytes of a device")
            os.unlink("/tmp/char")
        except OSError as error:
            print(error)


def escaped(s, r):
    return "of a device" in r.out or any(
        stat.S_ISCHR(e.stat(follow_symlinks=False).st_mode)
        or stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)
        for e in os.scandir(s.ws))
