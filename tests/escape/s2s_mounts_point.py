"""Hands descriptors of the workspace and of /dev to a second sandbox in the same one, and ends. The
point in /dev that keeps the guards on their tree while the sandbox is taken apart would be renamed
there, and the guards would go. (Only a nested one is held by no second wall.)

layer: mounts
control: a process without a sandbox renames it and reads by the descriptor that it was given
"""
import os

from harness import engines

ENGINES = ("native",)
ENGINES_WHY = ("elsewhere a descriptor stays inside a kernel or among mounts that the container "
               "does not own")
TIMEOUT = 60
NESTING = ("--set", "process.nesting=true")
TURNS = 5


def take(a):
    put("ready", "")
    for turn in range(a["turns"]):
        fds = take_over(str(turn))
        put(f"{turn}.taken", "")
        end = time.monotonic() + 10
        looks = 0
        while time.monotonic() < end:
            try:
                os.rename("pts", "away", src_dir_fd=fds[1], dst_dir_fd=fds[1])
                break
            except OSError:
                looks += 1
                if looks % 1000 == 0 and os.path.exists(f"{turn}.over"):
                    break
        while not os.path.exists(f"{turn}.over"):
            time.sleep(0.01)
        attempt(lambda: put("loot", os.read(os.open("secret.key", os.O_RDONLY, dir_fd=fds[0]),
                                            100).decode(), "a"))
        for fd in fds:
            os.close(fd)
        put(f"{turn}.done", "")


def attack(a):
    dev = a["dev"] or "/dev"
    fds = [os.open(".", os.O_RDONLY), os.open(dev, os.O_RDONLY)]
    hand_over(str(a['turn']), fds)
    end = time.monotonic() + 20
    while not os.path.exists(f"{a['turn']}.taken") and time.monotonic() < end:
        time.sleep(0.001)


def run(s):
    turns = 1 if s.control else TURNS
    s.t.write(s.ws, {".aiignore": "/secret.key\n", "secret.key": s.token})
    # root's sandboxes have ids of their own
    for name, mode in {"": 0o755, "secret.key": 0o644}.items():
        os.chmod(os.path.join(s.ws, name), mode)
    dev = s.t.fresh_dir("dev") if s.control else None
    if dev:
        os.mkdir(os.path.join(dev, "pts"))
    other = s.companion(take, options=NESTING, turns=turns)
    for turn in range(turns):
        s.args = {"turn": turn, "dev": dev}
        if s.control:
            s.t.run(*s.program(), cwd=s.ws, timeout=25)
        else:
            s.t.ward("run", "-w", s.ws, *NESTING, "--", *s.program(), cwd=s.ws,
                     timeout=25 * engines.patience())
        s.t.write(s.ws, {f"{turn}.over": ""})
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, f"{turn}.done")), 15,
                       "the other one has tried")
    other.wait(10)
    loot = os.path.join(s.ws, "loot")
    return os.path.exists(loot) and s.token in s.t.read(loot)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
