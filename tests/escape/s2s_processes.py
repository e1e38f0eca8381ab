"""From one sandbox: kills, traces and reads the processes of another sandbox of the same user, by
their numbers outside.

layer: pid namespace
control: two plain processes of the same user
"""
import time

from harness import leaks


def wait(a):
    put("ready", str(os.getpid()))
    time.sleep(20)


def scene(s):
    s.first = s.companion(wait)
    s.pids = leaks.with_rights(lambda: sorted(leaks.descendants(s.first.pid))) or [s.first.pid]
    s.args = {"pids": s.pids + ([s.first.pid] if s.first.pid not in s.pids else [])}


def attack(a):
    for pid in a["pids"]:
        attempt(lambda: print("environ:", len(slurp(f"/proc/{pid}/environ"))))
        attempt(syscall, "ptrace", 0x4206, pid, 0, 0)
        attempt(os.kill, pid, signal.SIGKILL)
    for pid in processes():
        if pid not in (1, os.getpid()):
            attempt(os.kill, pid, signal.SIGKILL)


def escaped(s, r):
    time.sleep(0.1)
    return "environ:" in r.out or s.first.poll() is not None
