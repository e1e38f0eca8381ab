"""Hands a descriptor of the workspace to a second sandbox in the same one, and ends: with the first
one's mounts its guards would go, and the descriptor would lead to what is hidden and protected.
Once it ends at once, once later.

layer: mounts
control: a process without a sandbox reads and writes by the descriptor that it was given
"""
import os

from harness import engines

ENGINES = ("native", "oci")
ENGINES_WHY = "elsewhere a descriptor stays inside a kernel"
TIMEOUT = 60


def take(a):
    put("ready", "")
    while not os.path.exists("go"):
        time.sleep(0.01)
    for turn in a["turns"]:
        fd = take_over(turn)[0]
        while not os.path.exists(turn + ".over"):
            time.sleep(0.01)

        def reach(name, flags):
            at = os.open(name, flags, dir_fd=fd)
            if flags == os.O_RDONLY:
                put("loot", os.read(at, 100).decode(), "a")
            else:
                os.write(at, b"evil\n")
        attempt(reach, "secret.key", os.O_RDONLY)
        attempt(reach, "kept/secret.key", os.O_RDONLY)
        attempt(reach, ".envrc", os.O_WRONLY | os.O_APPEND)
        put(turn + ".done", "")


def attack(a):
    directory = os.open(".", os.O_RDONLY)
    hand_over(a["turn"], [directory])
    time.sleep(a["stays"])


def run(s):
    turns = {"soon": 0, "late": 1.5, "detached": 0}
    s.t.write(s.ws, {".aiignore": "/secret.key\n/kept/\n", "secret.key": s.token,
                     "kept/secret.key": s.token, ".envrc": "old\n"})
    # root's sandboxes have ids of their own
    for name, mode in {"": 0o755, "kept": 0o755, "secret.key": 0o644,
                       "kept/secret.key": 0o644}.items():
        os.chmod(os.path.join(s.ws, name), mode)
    other = s.companion(take, turns=list(turns))
    s.t.write(s.ws, {"go": ""})
    for turn, stays in turns.items():
        s.args = {"turn": turn, "stays": stays}
        if s.control:
            s.t.run(*s.program(), cwd=s.ws, timeout=25)
        elif turn == "detached":
            r = s.t.ward("run", "-d", "-w", s.ws, "--", *s.program(), cwd=s.ws)
            s.t.ward("wait", r.out.strip(), cwd=s.ws, timeout=25)
            s.t.ward("rm", r.out.strip(), cwd=s.ws)
        else:
            s.t.ward("run", "-w", s.ws, "--", *s.program(), cwd=s.ws,
                     timeout=25 * engines.patience())
        s.t.write(s.ws, {turn + ".over": ""})
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, turn + ".done")), 10,
                       "the other one has tried")
    other.wait(10)
    loot = os.path.join(s.ws, "loot")
    return "evil" in s.t.read(os.path.join(s.ws, ".envrc")) or (os.path.exists(loot)
                                                                and s.token in s.t.read(loot))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
