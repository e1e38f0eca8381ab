"""Makes a process of the user outside the first victim of the kernel when memory is short.

layer: pid namespace
control: the same user without a sandbox does it
"""


def scene(s):
    s.pid = s.victim()["pid"]
    s.args = {"pid": s.pid}


def attack(a):
    for pid in [a["pid"], *processes()]:
        if pid != os.getpid():
            attempt(put, f"/proc/{pid}/oom_score_adj", "1000")


def escaped(s, r):
    return s.t.read(f"/proc/{s.pid}/oom_score_adj").strip() == "1000"
