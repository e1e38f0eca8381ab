"""Hides memory from its limit in files without a name (memfd_create, memfd_secret).

layer: limits
control: without a sandbox it gets it
"""
from harness.kernel_memory import holds

OPTIONS = ["--memory", "96M"]


def attack(a):
    chunk = b"x" * (1 << 20)
    for number in range(4):
        fd = os.memfd_create(f"m{number}")
        for _ in range(64):
            os.write(fd, chunk)
    time.sleep(0.3)
    print("held: 256 MiB")


escaped = holds(256)
