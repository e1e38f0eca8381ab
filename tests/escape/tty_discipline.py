"""Changes the line discipline of its own terminal and of a new one: a large and old part of the
kernel that ordinary programs never need.

layer: seccomp
control: without a sandbox the call reaches the kernel
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def scene(s):
    s.tty = True


def attack(a):
    import fcntl
    import pty
    new = pty.openpty()
    for fd in (0, 1, 2, *new):
        # 0: the one that it has
        for number in (0,) if fd not in new else (0, 1, 2, 3, 13, 15, 21, 27):
            try:
                fcntl.ioctl(fd, 0x5423, struct.pack("i", number))
                print("reached:", fd, number)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EACCES):
                    print("reached:", fd, number, error)


def escaped(s, r):
    return "reached:" in r.out
