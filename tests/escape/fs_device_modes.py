"""Changes the modes of the host's devices, by name and through standard input, where the agent is
the host's uid 0.

layer: mounts
control: without a sandbox root does
"""
import os

ONLY = "root"
DEVICES = ("/dev/full", "/dev/null")


def times():
    return [os.stat(path).st_ctime_ns for path in DEVICES]


def scene(s):
    # root that may not make id-mapped mounts, as in a container
    s.wrap = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    s.before = times()
    s.stdin = open("/dev/null")


def attack(a):
    # to what they are already: the change shows in the inode's time alone
    attempt(os.chmod, "/dev/full", 0o666)
    attempt(os.fchmod, 0, 0o666)
    print(open("/proc/self/uid_map").read())


def escaped(s, r):
    s.stdin.close()
    if not s.control:
        s.t.check(" 0 " in r.out, "the agent is not the host's uid 0, so nothing was shown: "
                  + r.out)
        return times() != s.before
    return all(a != b for a, b in zip(times(), s.before))
