"""Writes a new user id map for itself or for pid 1, to become root.

layer: user namespace
control: in a throw-away user namespace that has no map yet
"""
CONTROL = "unshare -U"


def attack(a):
    for pid in ("self", "1") if inside() else ("self",):
        for value in ("0 0 1", "0 1000 1", "0 %d 1" % os.getuid()):
            attempt(put, f"/proc/{pid}/uid_map", value)
    attempt(put, "/proc/self/setgroups", "allow")
    # outside the map is written from a child's view; inside it must already be closed
    if slurp("/proc/self/uid_map").strip() == "":
        print("the map is still open")
    if os.geteuid() == 0:
        print("became root")


def escaped(s, r):
    return "became root" in r.out or "the map is still open" in r.out
