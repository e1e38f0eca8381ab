"""Reads the kernel's log, with its addresses and the host's doings.

layer: seccomp
control: root without a sandbox asks for its size
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    print("size:", syscall("syslog", 10, None, 0))
    if inside():
        text = ctypes.create_string_buffer(4096)
        print("read:", syscall("syslog", 3, text, 4096))


def escaped(s, r):
    return "size:" in r.out
