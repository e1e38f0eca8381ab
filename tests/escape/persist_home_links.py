"""Plants links in a home that is kept, so that ward makes the mount points of the next run's caches
outside of it.

layer: supervisor
control: a shell that makes those directories by their paths makes them outside
"""
import os

OPTIONS = ["--set", "filesystem.home=kept"]


def attack(a):
    home = os.environ["HOME"]
    for name in (".cache", ".npm", "go"):
        os.symlink(a["outside"], os.path.join(home, name))
    os.mkdir(os.path.join(home, ".cargo"))
    os.symlink("../" * 20 + a["outside"], os.path.join(home, ".cargo/registry"))


def run(s):
    home = os.path.join(s.t.directory, "kept")
    if s.control:
        os.mkdir(home)
        s.env = {"HOME": home}
    s.args = {"outside": s.outside}
    r = s.run()
    s.t.check("[attack began]" in r.err, "the attack never ran")
    if s.control:
        s.t.run("mkdir", "-p", f"{home}/.cache/pip", f"{home}/go/pkg/mod",
                f"{home}/.cargo/registry/x")
    for cache in ("pip", "npm", "go", "cargo") if not s.control else ():
        s.t.ward("run", *OPTIONS, "--set", f"filesystem.caches=[{cache}]", "--", "sh", "-c",
                 "touch ~/.npm/x ~/.cache/x", cwd=s.ws)
    return bool(os.listdir(s.outside))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
