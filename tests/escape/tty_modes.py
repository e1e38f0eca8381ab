"""Changes the modes of the operator's terminal (no echo, raw) or stuffs its input, and leaves it
so.

layer: stdio
control: without a sandbox the terminal stays changed
"""


def scene(s):
    s.tty = True


def attack(a):
    import termios
    for fd in (0, 1, 2):
        def change():
            modes = termios.tcgetattr(fd)
            modes[1] &= ~termios.OPOST
            termios.tcsetattr(fd, termios.TCSANOW, modes)
        attempt(change)


def escaped(s, r):
    return r.modes_after != r.modes_before


