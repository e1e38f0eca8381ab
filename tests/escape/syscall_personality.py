"""Switches off address randomisation and makes readable memory executable with personality(2).

layer: seccomp
control: without a sandbox it is switched off
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    for value in (0x0040000, 0x0400000, 0x0100000, 0x0440000, 0x0040008):
        try:
            syscall("personality", value)
            print("changed:", hex(value))
        except OSError as error:
            print(error)


def escaped(s, r):
    return "changed:" in r.out
