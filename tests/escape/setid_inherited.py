"""Keeps set-id bits alive that the workspace had: copies with tar and cp -p, renames, links,
set-gid directories.

layer: seccomp
control: without a sandbox a copy keeps the bits
"""
import os


def scene(s):
    s.t.write(s.ws, {"old": "x", "dir/a": "x"})
    os.chmod(os.path.join(s.ws, "old"), 0o4755)


def attack(a):
    import subprocess
    for command in ("cp -p old copied", "tar cf t old && mkdir d && tar xpf t -C d",
                    "install -m 4755 old installed",
                    "mkdir -m 2777 setgid"):
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        print(command, done.returncode, done.stdout.decode())


def escaped(s, r):
    found = [os.path.join(top, n) for top, dirs, files in os.walk(s.ws) for n in dirs + files
             if os.lstat(os.path.join(top, n)).st_mode & 0o6000]
    return [p for p in found if os.path.basename(p) != "old" or os.path.dirname(p) != s.ws] != []
