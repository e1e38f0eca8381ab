"""Takes a message from a POSIX queue that a process of the same user made outside.

layer: ipc namespace
control: the same user without a sandbox takes it
"""
import os

from harness import host

NEEDS = ["mqueue"]


def scene(s):
    name = "ward-test-" + s.token[:16]
    fd = host.syscall(240, name.encode(), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o666, 0)
    s.t.check(fd >= 0, f"mq_open outside: {fd}")
    s.t.defer(host.syscall, 241, name.encode())
    s.t.defer(os.close, fd)
    host.syscall(242, fd, s.token.encode(), len(s.token), 0, 0)
    s.args = {"name": name}


def attack(a):
    fd = syscall("mq_open", a["name"].encode(), os.O_RDWR | os.O_NONBLOCK, 0, None)
    text = ctypes.create_string_buffer(8192)
    syscall("mq_timedreceive", fd, text, 8192, None, None)
    print(text.value)
