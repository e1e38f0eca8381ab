"""Takes an open file out of a process of the same user outside with pidfd_getfd.

layer: pid namespace
control: the same user without a sandbox takes it and reads the token
"""


def scene(s):
    s.args = s.victim()


def attack(a):
    process = syscall("pidfd_open", a["pid"], 0)
    fd = syscall("pidfd_getfd", process, a["fd"], 0)
    print(os.pread(fd, 100, 0).decode())
