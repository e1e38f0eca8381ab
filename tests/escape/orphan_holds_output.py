"""Keeps the caller waiting: the command ends, an orphan holds its standard output and error open.

layer: pid namespace
control: without a sandbox the reader of the pipe waits for the orphan
"""


def attack(a):
    if os.fork() == 0:
        os.setsid()
        time.sleep(1.5)
        os._exit(0)


def escaped(s, r):
    return r.seconds > 1.2
