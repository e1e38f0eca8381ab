"""Opens a performance counter: a large kernel surface and a side channel.

layer: seccomp
control: without a sandbox a software counter of its own is opened
"""


def attack(a):
    event = struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 0x61) + bytes(64)
    fd = syscall("perf_event_open", event, 0, -1, -1, 0)
    print("counter made:", fd)


def escaped(s, r):
    return "counter made:" in r.out
