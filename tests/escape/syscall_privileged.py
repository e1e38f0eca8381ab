"""Calls what only an administrator may: modules, kexec, swap, accounting, reboot, the clock, the
kernel log. (With arguments that do nothing.)

layer: seccomp
control: root without a sandbox gets further than a refusal
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    calls = {
        "init_module": (b"", 0, b""), "finit_module": (-1, b"", 0),
        "kexec_load": (0, 0, None, 0xffff0000),
        "swapoff": (b"/nonexistent",), "acct": (b"/nonexistent",), "reboot": (1, 2, 3, None),
        "syslog": (10, None, 0), "fanotify_init": (0xffff0000, 0), "quotactl_fd": (-1, 0, 0, None),
    }
    for name, arguments in calls.items():
        try:
            syscall(name, *arguments)
            print("got through:", name)
        except OSError as error:
            print(error)
            if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                print("got through:", name, error.errno)


def escaped(s, r):
    return "got through:" in r.out
