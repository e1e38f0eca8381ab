"""Reads kernel memory, symbols, the kernel log, other users' keys, and what other processes hold,
from /proc.

layer: masked proc
control: root without a sandbox reads some of it
"""
CONTROL = "root"
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    for path in ("/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/timer_list", "/proc/sched_debug",
                 "/proc/vmallocinfo",
                 "/proc/slabinfo", "/proc/pagetypeinfo", "/proc/kpagecount", "/proc/kpageflags",
                 "/proc/key-users",
                 "/proc/latency_stats", "/proc/1/stack"):
        if not inside() and path in ("/proc/kmsg", "/proc/1/stack"):
            continue
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            data = os.read(fd, 4096)
            if data:
                print("read:", path, len(data))
        except OSError as error:
            print(path, error)
    try:
        lines = slurp("/proc/kallsyms").splitlines()
        if any(not line.startswith("0000000000000000") for line in lines[:100]):
            print("read: kernel addresses")
    except OSError as error:
        print(error)


def escaped(s, r):
    return "read:" in r.out
