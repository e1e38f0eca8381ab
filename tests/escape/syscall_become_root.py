"""Changes its user, groups and capabilities: setuid, setgroups, capset, ambient capabilities.

layer: no capabilities
control: in a throw-away user namespace root becomes another user
"""
CONTROL = "unshare -Ur"


def attack(a):
    attempt(syscall, 126, struct.pack("II", 0x20080522, 0),
            struct.pack("IIIIII", *([0xffffffff] * 6)))
    for call in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0),
                 lambda: os.setgroups([0])):
        attempt(call)
    for line in slurp("/proc/self/status").splitlines():
        if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Groups")):
            print(line)
    print("uid", os.getresuid(), "gid", os.getresgid())


def escaped(s, r):
    return "uid (0, 0, 0)" in r.out or any(
        line.startswith(("CapEff", "CapPrm", "CapAmb")) and int(line.split()[1], 16)
        for line in r.out.splitlines())
