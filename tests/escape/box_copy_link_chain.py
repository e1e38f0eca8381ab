"""Has a tree copied out in which each link seems to stay within it, but one leads out over another
that leads up.

layer: ward cp makes no link that goes up behind a name
control: without a sandbox cp makes both links, and the file outside is read through them
"""
import os


def run(s):
    from harness.boxes import box, clean
    s.secret()
    make = ("mkdir -p x/p/q && cd x && ln -s ../.. p/q/top && ln -s "
            f"p/q/top/../{os.path.basename(s.outside)}/secret.txt key")
    back = s.t.fresh_dir("back")
    place = os.path.dirname(s.outside)	# "x" lies beside "outside" then
    name = os.path.join(place, "x")
    if s.control:
        s.t.run("sh", "-c", make, cwd=back, check=True)
        s.t.run("cp", "-a", back + "/x", place, check=True)
    else:
        b = box(s.t, cwd=s.ws)
        s.t.equal(s.t.ward("exec", b, "sh", "-c", "cd /tmp && " + make).rc, 0, "exec")
        r = s.t.ward("cp", f"{b}:/tmp/x", place)
        s.t.contains(r.err, "key: a link that leads out of the copied tree was left out", "ward cp")
        s.t.check(os.path.islink(name + "/p/q/top"), "the harmless link was not copied")
        clean(s.t)
    found = s.token in s.t.run("cat", name + "/key").out
    s.t.run("rm", "-rf", name, check=True)
    return found


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
