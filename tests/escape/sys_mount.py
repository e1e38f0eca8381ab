"""Mounts file systems that lead to the kernel: sysfs, cgroup, debugfs, tracefs, bpf, binfmt_misc,
devtmpfs.

layer: no capabilities
control: root in a throw-away mount namespace mounts them
"""
CONTROL = "root"
CONTROL_SHELL = 'exec unshare -m "$@"'


def attack(a):
    os.mkdir("m")
    for kind in ("sysfs", "cgroup2", "debugfs", "tracefs", "bpf", "binfmt_misc", "devtmpfs",
                 "proc"):
        try:
            syscall("mount", b"none", "m", kind.encode(), 0, None)
            print("mounted:", kind, len(os.listdir("m")))
        except OSError as error:
            print(kind, error)


def escaped(s, r):
    return "mounted:" in r.out
