"""Uses the supplementary groups that root had when it called ward.

layer: user namespace
control: an unprivileged user with that group reads the file
"""
import os

ONLY = "root"
NEEDS = ["root"]
GROUP = 4242


def scene(s):
    path = s.secret()
    os.chown(path, 0, GROUP)
    os.chmod(path, 0o040)
    os.chmod(s.outside, 0o755)
    os.chmod(s.t.directory, 0o755)
    s.options += ["--ro", s.outside]
    s.args = {"path": path}
    s.wrap = ["setpriv", "--groups", str(GROUP)]
    if s.control:
        s.wrap = ["setpriv", "--groups", str(GROUP), "--reuid", "65534", "--regid", "65534"]


def attack(a):
    print("groups", os.getgroups(), os.getresuid())
    print(slurp(a["path"]))
