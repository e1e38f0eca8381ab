"""Reads the password hashes of the host.

layer: mount namespace
control: root without a sandbox reads them
"""
import hashlib

CONTROL = "root"


def scene(s):
    with s.t.root(), open("/etc/shadow", "rb") as f:
        s.token = hashlib.sha256(f.read()).hexdigest()


def attack(a):
    import hashlib
    for path in ("/etc/shadow", "/etc/shadow-", "/proc/1/root/etc/shadow", "/etc/gshadow"):
        try:
            with open(path, "rb") as f:
                print(hashlib.sha256(f.read()).hexdigest())
        except OSError as error:
            print(path, error)
