"""Remounts a protected, read-only directory writable and plants a git hook there.

layer: no capabilities
control: in a throw-away user and mount namespace that has it read-only the same way
"""
import os

CONTROL = "unshare -Urm"
CONTROL_SHELL = ('mount --bind .git/hooks .git/hooks && mount -o remount,bind,ro .git/hooks && '
                 'exec "$@"')


def scene(s):
    s.ws = s.t.git_repo()
    s.cwd = s.ws


def attack(a):
    attempt(put, ".git/hooks/pre-commit", "#!/bin/sh\necho evil\n")
    attempt(syscall, "mount", None, ".git/hooks", None, 0x1000 | 0x20, None)
    attempt(syscall, "mount_setattr", -100, ".git/hooks", 0x8000,
            struct.pack("QQQQ", 0, 1, 0, 0), 32)
    put(".git/hooks/pre-commit", "#!/bin/sh\necho evil\n")


def escaped(s, r):
    return os.path.exists(os.path.join(s.ws, ".git/hooks/pre-commit"))
