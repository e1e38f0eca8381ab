"""Hides memory from its limit in System V shared memory that nobody has attached.

layer: limits
control: without a sandbox it gets it
"""
import ctypes
import re

from harness.kernel_memory import held_mib

OPTIONS = ["--memory", "96M"]
LIBC = ctypes.CDLL(None)


def attack(a):
    LIBC.shmat.restype = ctypes.c_void_p
    held = 0
    for _ in range(8):
        number = LIBC.shmget(0, 32 << 20, 0o1600)
        if number < 0:
            print("shmget:", os.strerror(ctypes.get_errno()))
            break
        print("segment:", number)
        address = LIBC.shmat(number, None, 0)
        ctypes.memset(address, 1, 32 << 20)
        LIBC.shmdt(ctypes.c_void_p(address))
        held += 32
    time.sleep(0.3)
    print("held:", held, "MiB")


def escaped(s, r):
    if s.control:
        for number in re.findall(r"segment: (\d+)", r.out):
            LIBC.shmctl(int(number), 0, None)
    return held_mib(r) >= 256
