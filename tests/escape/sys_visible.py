"""Looks at the machine through /sys: hardware addresses, disks, kernel settings, control groups.

layer: mount namespace
control: the same user without a sandbox sees it
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def attack(a):
    for path in ("/sys/kernel/notes", "/sys/class/net", "/sys/block", "/sys/fs/cgroup",
                 "/sys/devices/system/cpu"):
        try:
            print("seen:", path, os.listdir(path) if os.path.isdir(path) else slurp(path)[:40])
        except OSError as error:
            print(path, error)


def escaped(s, r):
    return "seen:" in r.out
