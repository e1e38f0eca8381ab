"""Makes a userfaultfd, with which kernel races are held open at will.

layer: seccomp
control: without a sandbox it is made (user mode only)
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    print("made:", syscall("userfaultfd", 1))


def escaped(s, r):
    return "made:" in r.out
