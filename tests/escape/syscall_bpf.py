"""Loads a BPF map and program into the kernel.

layer: seccomp
control: root without a sandbox makes the map
"""
CONTROL = "root"


def attack(a):
    attributes = struct.pack("IIII", 2, 4, 8, 1) + bytes(56)
    fd = syscall("bpf", 0, attributes, 72)
    print("map made:", fd)


def escaped(s, r):
    return "map made:" in r.out
