"""Hides memory from its limit in the private file systems that live in memory: /tmp, /dev/shm,
/home/agent, /run, /dev.

layer: limits
control: without a sandbox it gets it (in a tmpfs of a throw-away namespace)
"""
import os

from harness.kernel_memory import holds

OPTIONS = ["--memory", "96M"]
CONTROL = "unshare -Urm"
CONTROL_SHELL = 'mount -t tmpfs none "$PWD/t" && exec "$@"'


def scene(s):
    if s.control:
        os.mkdir(os.path.join(s.ws, "t"))
    s.args = {"dirs": [os.path.join(s.ws, "t")] if s.control else
              ["/tmp", "/dev/shm", "/home/agent", "/run", "/dev", "/var/tmp", "/"]}


def attack(a):
    chunk = b"x" * (1 << 20)
    held = 0
    for directory in a["dirs"]:
        try:
            with open(directory + "/fill", "wb", 0) as f:
                for _ in range(256):
                    f.write(chunk)
                    held += 1
                    if held >= 256:
                        break
        except OSError as error:
            print(directory, held, error)
    time.sleep(0.3)
    print("held:", held, "MiB")


escaped = holds(161)
