"""Makes `ward apply` write outside the workspace: links in place of directories, old links with a
directory in their place, chains of links.

layer: apply
control: the same user without a sandbox writes and links there
"""
import os

OPTIONS = ["--review"]


def scene(s):
    s.t.write(s.ws, {"dir/file": "f\n", "real/x": "x\n"})
    os.symlink(s.outside, os.path.join(s.ws, "old"))	# the operator's own
    s.args = {"outside": s.outside}


def attack(a):
    import shutil
    attempt(put, "old/direct", "evil\n")
    attempt(os.unlink, "old")
    attempt(os.mkdir, "old")
    attempt(put, "old/planted", "evil\n")
    attempt(shutil.rmtree, "dir")
    attempt(os.symlink, a["outside"], "dir")
    attempt(os.symlink, ".", "here")
    attempt(os.symlink, "here/..", "up")
    attempt(os.symlink, "real/../../" + os.path.basename(a["outside"]), "round")
    attempt(os.symlink, "/proc/self/root" + a["outside"], "magic")


def escaped(s, r):
    if not s.control:
        s.t.ward("apply", "--protected", cwd=s.ws)
        s.t.ward("apply", "--protected", "--force", "old/planted", cwd=s.ws)
        s.t.ward("apply", "--protected", "--force", cwd=s.ws)
    found = bool(os.listdir(s.outside))
    for name in ("dir", "up", "round", "magic"):
        path = os.path.join(s.ws, name)
        found |= os.path.islink(path) and not os.path.realpath(path).startswith(s.ws)
    return found
