"""Opens device nodes that lead to the machine: disks, kernel log, loop control, KVM, FUSE, tun.

layer: mount namespace
control: root without a sandbox opens some
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    allowed = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd",
               "stdin", "stdout",
               "stderr", "core", "console", "mqueue"}
    for top, dirs, files in os.walk("/dev") if inside() else [("/dev", [],
                                                               ["kmsg", "fuse", "loop-control"])]:
        for name in files:
            if top == "/dev" and name in allowed or top in ("/dev/pts", "/dev/shm"):
                continue
            path = os.path.join(top, name)
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
                print("opened", path)
            except OSError:
                pass


def escaped(s, r):
    return "opened /dev/" in r.out
