"""Forges the overlay's own attributes and marks in the review, so that the operator's `ward apply`
deletes the workspace's files.

layer: review
control: the same marks, made from outside in the review's own directory, do have that effect
"""
import glob
import os

OPTIONS = ["--review"]
ATTRIBUTES = {"opaque": b"y", "redirect": b"/kept", "metacopy": b"", "whiteout": b"y",
              "origin": b"", "impure": b"y", "xwhiteouts": b"y"}


def scene(s):
    s.t.write(s.ws, {"kept/a": "a\n", "kept/b": "b\n", "mark": "m\n"})


def attack(a):
    put("kept/new", "n\n")
    for name, value in a["attributes"].items():
        for path in ("kept", "kept/new", "kept/a", "."):
            for prefix in ("user.overlay.", "trusted.overlay."):
                attempt(os.setxattr, path, prefix + name, value.encode())
    attempt(syscall, "mknod", "kept/b2", 0o020000, 0)
    attempt(os.mknod, "kept/c", 0o020000, os.makedev(0, 0))
    attempt(put, "kept/.wh.a", "")
    attempt(put, "kept/.wh..wh..opq", "")


def run(s):
    s.args = {"attributes": {k: v.decode() for k, v in ATTRIBUTES.items()}}
    scene(s)
    if s.control:	# the same marks by other hands
        s.t.ward("run", "-w", s.ws, "--review", "--", "/bin/sh", "-c", "echo n > kept/new")
        upper = glob.glob(os.path.join(s.t.state_dir, "review", "*", "layer", "upper"))[0]
        os.setxattr(os.path.join(upper, "kept"), "user.overlay.opaque", b"y")
    else:
        r = s.run()
        s.t.check("[attack began]" in r.out + r.err, "the attack never ran")
    s.t.ward("apply", cwd=s.ws)
    left = sorted(os.listdir(os.path.join(s.ws, "kept")))
    s.t.ward("discard", cwd=s.ws)
    return not {"a", "b"} <= set(left)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
