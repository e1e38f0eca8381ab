"""Changes its segment table with modify_ldt, a call with a long record of kernel holes.

layer: seccomp
control: without a sandbox the table is read and written
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    entry = struct.pack("IIII", 0, 0, 0xfffff, 0x51)
    syscall("modify_ldt", 1, entry, 16)
    print("changed")


def escaped(s, r):
    return "changed" in r.out
