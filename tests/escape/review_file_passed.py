"""Under review: hands a file that is open for writing to another sandbox with the same kept home,
and ends. That one changes the file when the operator has read the difference, before it is applied.
Once from mounts of its own, which a nested one can make. (It cannot be taken back, so it must be
told.)

layer: supervisor
control: without a sandbox nobody is told
"""
import contextlib
import os

ENGINES = ("native",)
ENGINES_WHY = ("elsewhere a descriptor stays inside a kernel or among mounts that the container "
               "does not own")
TIMEOUT = 60
HOME = ("--set", "filesystem.home=shared", "--set", "process.nesting=true")


def take(a):
    place = a["place"] or os.environ["HOME"]
    put("ready", "")
    fds = take_over(f"{place}/{a['turn']}")
    while not os.path.exists("read"):
        time.sleep(0.01)
    attempt(lambda: os.pwrite(fds[0], b"evil\n", 0))
    attempt(lambda: put(f"/proc/self/fd/{fds[1]}/more", "evil\n"))
    put("done", "")
    time.sleep(20)


def attack(a):
    place = a["place"] or os.environ["HOME"]
    if a["turn"] == "nested":
        here = os.getcwd()
        ctypes.CDLL(None).unshare(0x10020000)	# CLONE_NEWUSER | CLONE_NEWNS
        os.chdir(here)
    fds = [os.open("file", os.O_RDWR | os.O_CREAT, 0o644), os.open(".", os.O_RDONLY)]
    os.write(fds[0], b"good\n")
    hand_over(f"{place}/{a['turn']}", fds)


def run(s):
    return any([passed(s, turn) for turn in ("plain", "nested")])


def passed(s, turn):
    ours, place = s.t.workspace(), s.t.fresh_dir("place") if s.control else None
    for name in ("ready", "read", "done"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(s.ws, name))
    other = s.companion(take, options=HOME, place=place, turn=turn)
    s.args = {"place": place, "turn": turn}
    if s.control:
        said = s.t.run(*s.program(), cwd=ours, timeout=25).err
    else:
        said = s.t.ward("run", "--review", "-w", ours, *HOME, "--", *s.program(), cwd=ours,
                        timeout=s.timeout).err
        s.t.contains(s.t.ward("diff", "-p", cwd=ours).out, "good", "the difference")
    s.t.write(s.ws, {"read": ""})
    s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "done")), 10,
                   "the other one has tried")
    if not s.control:
        s.t.equal(s.t.ward("apply", cwd=ours).rc, 0, "ward apply")
    other.terminate()
    other.wait()
    evil = [name for name in ("file", "more") if os.path.exists(os.path.join(ours, name))
            and "evil" in s.t.read(os.path.join(ours, name))]
    return bool(evil) and "can still write to it" not in said


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
