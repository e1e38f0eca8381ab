"""Opens a terminal of the same user outside by its name, by its device number and by /proc, and
writes to it.

layer: mounts
control: without a sandbox the user's other terminal shows it
"""
import os

NAMES = "/dev/pts/{0}", "/proc/1/root/dev/pts/{0}", "/proc/self/root/dev/pts/{0}"


def scene(s):
    s.main, s.line = os.openpty()
    os.set_blocking(s.main, False)
    s.t.defer(os.close, s.main)
    s.t.defer(os.close, s.line)
    s.args = {"names": [name.format(os.path.basename(os.ttyname(s.line))) for name in NAMES],
              "device": os.stat(os.ttyname(s.line)).st_rdev, "at": s.ws}


def attack(a):
    def write(path):
        fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        os.write(fd, b"evil words\n")

    for name in a["names"]:
        attempt(write, name)
    for directory in (a["at"], "/tmp", "/dev/pts", "/dev/shm"):
        node = os.path.join(directory, "node")
        attempt(os.mknod, node, 0o600 | 0o20000, a["device"])
        attempt(write, node)


def escaped(s, r):
    try:
        return b"evil words" in os.read(s.main, 4096)
    except BlockingIOError:
        return False
