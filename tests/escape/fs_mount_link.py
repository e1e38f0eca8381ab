"""Two runs of one policy that shows a directory of the workspace, and one of another writable
directory, at places of their own: the first run puts links to a secret of the user's there, the
second one looks.

layer: plan
control: whoever follows the path by itself reads the secret
"""
import os


def run(s):
    secret = s.secret()
    place = os.path.dirname(secret)
    given = os.path.join(s.t.fresh_dir("second"), "given")
    os.makedirs(os.path.join(given, "deep/docs"))
    os.chmod(given, 0o777)
    s.t.write(s.ws, {"docs/secret.txt": "harmless\n"})
    s.t.write(given, {"deep/docs/secret.txt": "harmless\n"})
    mounts = {os.path.join(s.ws, "docs"): "/shown/a", os.path.join(given, "deep/docs"): "/shown/b"}
    script = "".join(f"mv {path} {path}.old; ln -s {place} {path}; " for path in mounts) + "true"
    options = ["-w", s.ws, "--rw", given]
    if s.control:
        s.t.run("sh", "-c", script, cwd=s.ws)
        return any(s.token in s.t.run("cat", path + "/secret.txt", cwd=s.ws).out for path in mounts)
    first = s.t.ward("run", *options,
                     *(w for p, at in mounts.items() for w in ("--ro", f"{p}:{at}")), "--", "sh",
                     "-c", script, cwd=s.ws)
    s.t.check(first.rc == 0, f"the first run: exit {first.rc}")
    s.t.check(all(os.path.islink(path) for path in mounts), "the links are there")
    bad = False
    for path, at in mounts.items():
        for mode in ("--ro", "--rw"):
            r = s.t.ward("run", *options, mode, f"{path}:{at}", "--", "cat", at + "/secret.txt",
                         cwd=s.ws)
            bad |= s.token in r.out
            s.t.check(r.rc != 125 or "link" in r.err, f"a refusal names the link: {r.err}")
    r = s.t.ward("run", *options, "--set", "image=" + os.path.join(s.ws, "docs"), "--",
                 "/secret.txt", cwd=s.ws)
    s.t.check(r.rc == 125 and "link" in r.err, f"an image by way of a link: exit {r.rc}, {r.err}")
    return bad


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
