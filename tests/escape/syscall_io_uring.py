"""Makes an io_uring, whose operations no filter sees.

layer: seccomp
control: without a sandbox the ring is made
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    ring = syscall("io_uring_setup", 4, ctypes.create_string_buffer(256))
    print("ring made:", ring)


def escaped(s, r):
    return "ring made:" in r.out
