"""Makes a user namespace, and with it has every capability over the rest of the kernel: unshare,
clone, clone3.

layer: seccomp
control: without a sandbox it is made
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "plain"
NEEDS = ["userns"]


def attack(a):
    def capabilities():
        for line in slurp("/proc/self/status").splitlines():
            if line.startswith("CapEff"):
                return int(line.split()[1], 16)

    def clone3(flags):
        size = 88
        arguments = struct.pack("Q", flags) + bytes(24) + struct.pack("Q", 17) + bytes(size - 40)
        pid = syscall("clone3", ctypes.create_string_buffer(arguments), size)
        if pid == 0:
            os._exit(42)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def clone(flags):
        pid = syscall("clone", flags | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(42)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for flags in (0x10000000, 0x10020000, 0x00020000, 0x40000000, 0x20000000, 0x04000000,
                  0x08000000, 0x02000000):
        for way in (clone3, clone):
            if attempt(way, flags) == 42:
                print("namespace made:", way.__name__, hex(flags))
    for flags in (0x10000000, 0x10020000, 0x40000000, 0x20000000):
        try:
            syscall("unshare", flags)
            print("namespace made: unshare", hex(flags), hex(capabilities()))
        except OSError as error:
            print(error)


def escaped(s, r):
    return "namespace made:" in r.out
