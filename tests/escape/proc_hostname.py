"""Renames the machine, by sethostname and through /proc/sys/kernel/hostname.

layer: no capabilities
control: in a throw-away user and uts namespace
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "unshare -Uru"


def attack(a):
    attempt(syscall, "sethostname", b"evil1", 5)
    attempt(put, "/proc/sys/kernel/hostname", "evil2\n")
    attempt(put, "/proc/sys/kernel/domainname", "evil3\n")
    print("names:", os.uname().nodename, slurp("/proc/sys/kernel/domainname"))


def escaped(s, r):
    return "evil" in r.out.split("names:")[1]
