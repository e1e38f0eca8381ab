"""Takes a message from a System V queue that a process of the same user made outside.

layer: ipc namespace
control: the same user without a sandbox takes it
"""
import ctypes
import secrets

LIBC = ctypes.CDLL(None, use_errno=True)


def scene(s):
    key = secrets.randbelow(1 << 30) + 1
    number = LIBC.msgget(key, 0o1666)
    s.t.check(number >= 0, "msgget outside")
    s.t.defer(LIBC.msgctl, number, 0, None)
    LIBC.msgsnd(number, (1).to_bytes(8, "little") + s.token.encode(), len(s.token), 0)
    s.args = {"key": key, "number": number}


def attack(a):
    text = ctypes.create_string_buffer(256)
    for number in (LIBC.msgget(a["key"], 0), a["number"]):
        if number >= 0 and LIBC.msgrcv(number, text, 200, 0, 0o4000) > 0:
            print(text.raw[8:60])
