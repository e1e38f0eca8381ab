"""Hands a descriptor of its workspace to a sandbox of another one that has the same kept home, and
ends: what that one plants then nobody would sweep. Once alone, once with a file that is open for
writing, which must be told.

layer: mounts
control: a process without a sandbox plants it by the descriptor that it was given
"""
import os

from harness import engines

ENGINES = ("native",)
ENGINES_WHY = ("elsewhere a descriptor stays inside a kernel or among mounts that the container "
               "does not own")
TIMEOUT = 60
# nested ones have no second wall
HOME = ("--set", "filesystem.home=shared", "--set", "process.nesting=true")


def take(a):
    put("ready", "")
    for turn in a["turns"]:
        place = a["place"] or os.environ["HOME"]
        fds = take_over(f"{place}/{turn}")
        while not os.path.exists(turn + ".over"):
            time.sleep(0.01)
        attempt(lambda: os.write(os.open(".envrc", os.O_WRONLY | os.O_CREAT, dir_fd=fds[0]),
                                 b"evil\n"))
        for fd in fds:
            os.close(fd)
        put(turn + ".done", "")


def attack(a):
    place = a["place"] or os.environ["HOME"]
    fds = [os.open(".", os.O_RDONLY)]
    if a["turn"] == "open":
        fds.append(os.open("file", os.O_RDWR | os.O_CREAT))
    hand_over(f"{place}/{a['turn']}", fds)


def run(s):
    turns, done = ["alone", "open"], False
    ours = s.t.workspace()
    place = s.t.fresh_dir("place") if s.control else None
    s.options += HOME
    other = s.companion(take, options=HOME, turns=turns, place=place)
    for turn in turns:
        s.args = {"turn": turn, "place": place}
        if s.control:
            said = s.t.run(*s.program(), cwd=ours, timeout=25).err
        else:
            said = s.t.ward("run", "-w", ours, *HOME, "--", *s.program(), cwd=ours,
                            timeout=25 * engines.patience()).err
        s.t.write(s.ws, {turn + ".over": ""})
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, turn + ".done")), 10,
                       "the other one has tried")
        planted = os.path.join(ours, ".envrc")
        done = done or (os.path.exists(planted) and "can still write to it" not in said)
    other.wait(10)	# else it is still ending when the test looks for what is left
    return done


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
