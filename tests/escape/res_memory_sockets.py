"""Hides memory from its limit in the kernel's buffers: unix sockets filled to the brim.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import holds

OPTIONS = ["--memory", "64M"]


def attack(a):
    held, pairs = 0, []
    chunk = b"x" * 65536
    try:
        while held < 200 << 20:
            x, y = socket.socketpair()
            pairs += [x, y]
            for end in (x, y):
                end.setblocking(False)
                try:
                    while True:
                        held += end.send(chunk)
                except BlockingIOError:
                    pass
    except OSError as error:
        print("stopped:", error)
    # many sockets are looked at for long, and not without pauses
    time.sleep(2 if inside() else 0.3)
    print("held:", held >> 20, "MiB with", len(pairs), "sockets")


def scene(s):
    import resource
    s.prepare = lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                           (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


escaped = holds(161)
