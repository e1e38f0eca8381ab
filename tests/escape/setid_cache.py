"""Leaves a set-uid program in a cache, where the sweep does not look, for somebody on the host to
run.

layer: seccomp
control: without a sandbox the bit is set
"""
import os

OPTIONS = ["--set", "filesystem.caches=[npm]", "--set", "filesystem.home=kept"]


def attack(a):
    home = a["home"] if not inside() else os.path.expanduser("~")
    for directory in (home, os.path.join(home, ".npm")):
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, "suid")
        put(path, "#!/bin/sh\n")
        for how in (lambda: os.chmod(path, 0o6755),
                    lambda: os.close(os.open(path + "2", os.O_CREAT | os.O_WRONLY, 0o6755)),
                    lambda: os.mknod(path + "3", 0o106755), lambda: os.mkdir(path + "4", 0o2755)):
            try:
                how()
            except OSError as error:
                print(error)


def scene(s):
    s.args = {"home": os.path.join(s.t.directory, "plain")}


def escaped(s, r):
    with s.t.root():
        for top, dirs, files in os.walk(s.args["home"] if s.control else s.t.state_dir):
            for name in dirs + files:
                if os.lstat(os.path.join(top, name)).st_mode & 0o6000:
                    return True
    return False
