"""Joins namespaces of others: those of pid 1, its own again, and by pidfd those of a process
outside.

layer: seccomp
control: in a throw-away user namespace it joins namespaces
"""
CONTROL = "unshare -Urm"


def attack(a):
    for pid in ("self", "1") if inside() else ("self",):
        for name in ("mnt", "net", "pid", "uts", "ipc", "cgroup", "user"):
            try:
                fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
                syscall("setns", fd, 0)
                print("joined:", pid, name)
            except OSError as error:
                print(pid, name, error)
    attempt(lambda: print("joined:", syscall("setns", syscall("pidfd_open", 1, 0), 0x20000))
            if inside() else None)


def escaped(s, r):
    return "joined:" in r.out
