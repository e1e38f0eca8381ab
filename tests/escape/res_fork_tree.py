"""Starts processes in a tree whose parents end at once, as a fork bomb does; counts those alive at
one time.

layer: limits
control: without a sandbox the tree grows to its full size
"""
import os

from harness import engines

# gVisor itself takes more than forty
OPTIONS = ["--pids", "96" if engines.asked() == "gvisor" else "48", "--timeout", "10"]


def scene(s):
    # all of them live at one time
    s.args = {"seconds": 1.0 * (1 if s.control else engines.patience())}


def attack(a):
    os.mkdir("alive")
    reader, writer = os.pipe()

    def grow(depth):
        put(f"alive/{os.getpid()}", "")
        if depth:
            for _ in range(2):
                try:
                    if os.fork() == 0:
                        grow(depth - 1)
                except OSError:
                    pass
        time.sleep(a["seconds"])
        os._exit(0)
    if os.fork() == 0:
        os.close(reader)
        grow(6)
    os.close(writer)
    os.read(reader, 1)


def escaped(s, r):
    return len(os.listdir(os.path.join(s.ws, "alive"))) > 60
