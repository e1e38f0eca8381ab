"""Waits for the operator to run a command in a directory of the workspace that the sandbox has made
a link to a place outside.

layer: mount namespace; ward exec changes the directory inside
control: without a sandbox the link is followed
"""
import os


def scene(s):
    s.secret()
    os.symlink(s.outside, s.ws + "/dir")


def run(s):
    from harness.boxes import box, clean
    scene(s)
    if s.control:
        return s.token in s.t.run("sh", "-c", "cd dir && cat secret.txt", cwd=s.ws).out
    b = box(s.t, cwd=s.ws)
    found = False
    for where in ("dir", s.ws + "/dir", "/proc/1/root" + s.outside, "/proc/1/cwd/../../..",
                  "/proc/self/fd/3"):
        r = s.t.ward("exec", "-C", where, b, "sh", "-c",
                     f"cat secret.txt; cat {s.outside}/secret.txt; ls -la")
        found |= s.token in r.out or "secret.txt" in r.out
    clean(s.t)
    return found


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
