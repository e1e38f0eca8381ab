"""Fills every file system of the machine, so that its agent cannot work on: memory, the root's
upper layer, the workspace; then ends.

layer: limits of the guest's cgroup; the agent's own memory is kept free
control: without a sandbox, in a small file system, everything is full
"""
SLOW = True
CONTROL = "unshare -Urm"
CONTROL_SHELL = ('mkdir t && mount -t tmpfs -o size=8m none "$PWD/t" && cd t && "$@"; df '
                 '--output=avail . | tail -1')


def attack(a):
    chunk = b"x" * (1 << 20)
    for directory in ("/tmp", "/dev/shm", "/run", "/var/tmp", "/home/agent",
                      "/") if inside() else ():
        def fill():
            with open(directory + "/fill", "wb", 0) as f:
                for _ in range(1024):
                    f.write(chunk)
        attempt(fill)
    def here():
        with open("fill", "wb", 0) as f:
            for _ in range(1024):
                f.write(chunk)
    attempt(here)


def escaped(s, r):
    if s.control:
        return r.out.strip().endswith("\n0") or r.out.strip().split()[-1] == "0"
    # the machine must say how its command ended, or ward that it did not; what it must not do is
    # hang (the time limit of the test) or take the supervisor with it
    s.t.say(f"exit {r.rc} after {r.seconds:.0f} s")
    return r.rc not in (0, 1, 125, 137)
