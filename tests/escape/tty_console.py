"""Pastes and reads the screen with TIOCLINUX, and takes the console's output with TIOCCONS.

layer: seccomp
control: without a sandbox the call reaches the terminal's driver (which has no such thing here and
says so)
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def scene(s):
    s.tty = True


def attack(a):
    import fcntl
    for fd in (0, 1, 2):
        for number, name in ((0x541c, "TIOCLINUX"), (0x4b3a, "KDSETMODE")):
            try:
                fcntl.ioctl(fd, number, b"\x02")
                print("reached:", name)
            except OSError as error:
                print(name, error)
                if error.errno in (errno.ENOTTY, errno.EINVAL):
                    print("reached:", name)


def escaped(s, r):
    # inside there is no terminal of the operator's at all, or the filter answers
    return "reached: TIOCLINUX" in r.out
