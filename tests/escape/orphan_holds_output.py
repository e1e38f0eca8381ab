"""Keeps the caller waiting: the command ends, an orphan holds its standard output and error open.

layer: pid namespace
control: without a sandbox the reader of the pipe waits for the orphan
"""

from harness import engines


def scene(s):
    # longer than any start takes
    s.seconds = 1.5 * (1 if s.control else engines.patience() ** 2)
    s.args = {"seconds": s.seconds}


def attack(a):
    if os.fork() == 0:
        os.setsid()
        time.sleep(a["seconds"])
        os._exit(0)


def escaped(s, r):
    return r.seconds > 0.8 * s.seconds
