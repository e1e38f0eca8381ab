"""Kills a process of the same user outside, by its number: kill, tgkill, a pidfd, and a signal on
input.

layer: pid namespace
control: the same user without a sandbox kills it
"""


def scene(s):
    s.pid = s.victim()["pid"]
    s.args = {"pid": s.pid}


def attack(a):
    attempt(os.kill, a["pid"], signal.SIGKILL)
    attempt(syscall, 234, a["pid"], a["pid"], 9)
    attempt(syscall, "pidfd_open", a["pid"], 0)
    time.sleep(0.05)


def escaped(s, r):
    return not s.alive(s.pid)
