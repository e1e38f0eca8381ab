"""Takes more memory than allowed in one process: anonymous, shared, and mapped from a file without
a name.

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import holds

OPTIONS = ["--memory", "96M"]


def attack(a):
    import mmap
    held = []
    for flags in (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS):
        block = mmap.mmap(-1, 128 << 20, flags=flags)
        for offset in range(0, len(block), 4096):
            block[offset] = 1
        held.append(block)
    time.sleep(0.3)
    print("held: 256 MiB")


escaped = holds(256)
