"""Takes over pid 1 of its sandbox, which holds the supervisor's control socket: ptrace,
process_vm_readv, pidfd_getfd.

layer: seccomp
control: in a throw-away pid namespace, where pid 1 belongs to the same user
"""
CONTROL = "unshare -Urpf --mount-proc"
CONTROL_SHELL = '"$@"; exit $?'


def attack(a):
    def seize():
        syscall("ptrace", 0x4206, 1, 0, 0)
        print("took: ptrace")

    def attach():
        syscall("ptrace", 16, 1, 0, 0)
        print("took: attach")

    def descriptor():
        fd = syscall("pidfd_open", 1, 0)
        for number in range(0, 16):
            try:
                syscall("pidfd_getfd", fd, number, 0)
                print("took: descriptor", number)
            except OSError as error:
                print(number, error)

    def memory():
        here = ctypes.create_string_buffer(16)
        mine = (ctypes.c_size_t * 2)(ctypes.addressof(here), 16)
        for start in (0x400000, 0x401000, 0x555555554000):
            theirs = (ctypes.c_size_t * 2)(start, 16)
            try:
                syscall("process_vm_readv", 1, mine, 1, theirs, 1, 0)
                print("took: memory")
            except OSError as error:
                print(error)
                if error.errno == errno.EFAULT:
                    print("took: memory (the address was wrong, the right was there)")
    for way in (descriptor, memory, seize, attach):
        attempt(way)


def escaped(s, r):
    return "took:" in r.out
