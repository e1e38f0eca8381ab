"""Turns a name in a directory that it may write into a link, and waits for the operator to copy
through it: in and out, by every name of that directory.

layer: ward cp follows no link that stands where the sandbox can write
control: without a sandbox a plain cp follows it
"""
import os


def run(s):
    from harness.boxes import box, clean
    given, outer = s.t.fresh_dir("given"), s.t.fresh_dir("outer")
    s.secret()
    for directory in (s.ws, given):
        s.t.run("ln", "-s", s.outside, directory + "/dir", check=True)
    for name, target in (("ws", s.ws), ("given", given), ("far", given + "/dir")):
        s.t.run("ln", "-s", target, f"{outer}/{name}", check=True)
    s.t.write(outer, {"plain": "planted"})
    tops = [s.ws, given, f"{outer}/ws", f"{outer}/given",
            f"{outer}/given/../{os.path.basename(given)}"]
    tries = [f"{top}/dir" for top in tops] + [f"{outer}/far"]
    if s.control:
        for at in tries:
            s.t.run("cp", f"{outer}/plain", f"{at}/planted", check=True)
            s.t.equal(s.t.run("cat", f"{at}/secret.txt").out.strip(), s.token, at)
        return os.path.exists(s.outside + "/planted")
    b = box(s.t, "--rw", given, cwd=s.ws)
    s.t.equal(s.t.ward("exec", b, "sh", "-c", "echo planted > /tmp/planted").rc, 0, "exec")
    for i, at in enumerate(tries):
        s.t.equal(s.t.ward("cp", f"{b}:/tmp/planted", f"{at}/planted").rc, 125,
                  f"out to {at}/planted")
        s.t.equal(s.t.ward("cp", f"{at}/secret.txt", f"{b}:/tmp/in{i}").rc, 125, f"in from {at}")
    # the operator's own links elsewhere are no hindrance
    s.t.equal(s.t.ward("cp", f"{b}:/tmp/planted", f"{outer}/given").rc, 0,
              "through the operator's own link")
    s.t.equal(s.t.read(given, "planted"), "planted\n", "through the operator's own link")
    found = s.token in s.t.ward("exec", b, "sh", "-c", "cat /tmp/in*").out
    clean(s.t)
    return found or os.listdir(s.outside) != ["secret.txt"]


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
