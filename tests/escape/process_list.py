"""Lists the processes of the host with their arguments.

layer: pid namespace
control: the same user without a sandbox sees them
"""
import subprocess


def scene(s):
    s.args = {"pids": [s.t.popen(["sh", "-c", "read x # " + s.token], stdin=subprocess.PIPE).pid]}


def attack(a):
    for pid in processes():
        attempt(lambda: print(pid, slurp(f"/proc/{pid}/cmdline")))
    for pid in a["pids"]:
        attempt(lambda: print(slurp(f"/proc/{pid}/cmdline")))
