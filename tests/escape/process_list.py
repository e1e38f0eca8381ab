"""Lists the processes of the host with their arguments.

layer: pid namespace
control: the same user without a sandbox sees them
"""


def scene(s):
    s.t.popen(["sh", "-c", "sleep 60", s.token])


def attack(a):
    for pid in processes():
        attempt(lambda: print(pid, slurp(f"/proc/{pid}/cmdline")))
    for pid in range(1, 40000, 7):
        if os.path.exists(f"/proc/{pid}/cmdline"):
            attempt(lambda: print(slurp(f"/proc/{pid}/cmdline")))
