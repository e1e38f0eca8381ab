"""Installs a filter with a listener of its own, to stand between its children and the supervisor.

layer: seccomp
control: without a sandbox the listener is made
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    LIBC.prctl(38, 1, 0, 0, 0)
    program = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
    filters = ctypes.create_string_buffer(program)
    descriptor = struct.pack("HxxxxxxQ", 1, ctypes.addressof(filters))
    print("listener made:", syscall("seccomp", 1, 8, descriptor))


def escaped(s, r):
    return "listener made:" in r.out
