"""Reads a secret from the kernel keyring of the same user.

layer: seccomp
control: the same user without a sandbox reads it
"""
import ctypes

from harness import host

NEEDS = ["keys"]


def scene(s):
    host.syscall(250, 1, None if False else 0)	# a session keyring of this test's own
    data = s.token.encode()
    number = host.syscall(248, b"user", s.token[:16].encode(), data, len(data), -4)
    s.t.check(number > 0, f"add_key outside: {number}")
    host.syscall(250, 5, number, 0x3f3f0000)	# everything for possessor and user
    # gone at once: a revoked one counts against the user's quota
    s.t.defer(host.syscall, 250, 21, number)
    s.args = {"name": s.token[:16], "number": number}


def attack(a):
    def read(number):
        text = ctypes.create_string_buffer(200)
        syscall("keyctl", 11, number, text, 200)
        print(text.value)

    attempt(syscall, "keyctl", 8, -4, -3)
    attempt(lambda: read(syscall("keyctl", 10, -4, b"user", a["name"].encode(), 0)))
    attempt(lambda: read(a["number"]))
    attempt(lambda: read(syscall("request_key", b"user", a["name"].encode(), None, 0)))
    attempt(lambda: print(slurp("/proc/keys")))


def escaped(s, r):
    return s.token in r.out or (not s.control and s.token[:16] in r.out.split("/proc/keys")[-1]
                                and "user " in r.out)
