"""Uses /proc/self/root and /proc/thread-self/root with ".." to leave the root that was pivoted to.

layer: mount namespace
control: the same user without a sandbox reaches the file that way
"""


def scene(s):
    s.args = {"path": s.secret()}


def attack(a):
    for base in ("/proc/self/root", "/proc/thread-self/root", "/proc/self/root/../..",
                 "/proc/1/root", "/.."):
        attempt(lambda: print(slurp(base + a["path"])))
