"""Watches every file access on a file system with fanotify.

layer: seccomp
control: root without a sandbox makes the watch
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    for flags in (0, 0x200, 0x400):
        try:
            syscall("fanotify_init", flags, 0)
            print("watch made:", flags)
        except OSError as error:
            print(error)


def escaped(s, r):
    return "watch made:" in r.out
