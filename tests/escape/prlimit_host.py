"""Takes away the resources of a process outside: its limits, its priority, its processors.

layer: pid namespace
control: the same user without a sandbox does it
"""
import os


def scene(s):
    s.pid = s.victim()["pid"]
    s.args = {"pid": s.pid}
    # the tests themselves may have been started with less
    s.priority = os.getpriority(os.PRIO_PROCESS, s.pid)


def attack(a):
    attempt(syscall, "prlimit64", a["pid"], 7, struct.pack("QQ", 3, 3), None)
    attempt(os.setpriority, os.PRIO_PROCESS, a["pid"], 19)
    attempt(os.sched_setaffinity, a["pid"], {0})


def escaped(s, r):
    limits = [line for line in s.t.read(f"/proc/{s.pid}/limits").splitlines()
              if line.startswith("Max open files")]
    return limits[0].split()[3] == "3" or os.getpriority(os.PRIO_PROCESS, s.pid) != s.priority
