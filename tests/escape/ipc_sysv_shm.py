"""Attaches shared memory of System V that a process of the same user made outside, by key and by
number.

layer: ipc namespace
control: the same user without a sandbox reads the token
"""
import ctypes
import secrets

LIBC = ctypes.CDLL(None, use_errno=True)


def scene(s):
    key = secrets.randbelow(1 << 30) + 1
    number = LIBC.shmget(key, 4096, 0o1666)
    s.t.check(number >= 0, "shmget outside")
    s.t.defer(LIBC.shmctl, number, 0, None)
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(number, None, 0)
    ctypes.memmove(address, s.token.encode(), len(s.token))
    s.args = {"key": key, "number": number}


def attack(a):
    LIBC.shmat.restype = ctypes.c_void_p
    numbers = [a["number"]]
    found = LIBC.shmget(a["key"], 0, 0)
    print("by key:", found, os.strerror(ctypes.get_errno()))
    if found >= 0:
        numbers.append(found)
    for number in numbers:
        address = LIBC.shmat(number, None, 0o10000)
        if address not in (None, ctypes.c_void_p(-1).value):
            print(ctypes.string_at(address, 64))
    attempt(lambda: print(slurp("/proc/sysvipc/shm")))
