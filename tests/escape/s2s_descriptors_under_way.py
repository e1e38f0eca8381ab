"""Fills sockets with descriptors that nobody takes out. The kernel counts them for all processes of
the user, and refuses whoever may have fewer open: no other sandbox of the user could be handed its
own.

layer: supervisor
control: without a sandbox another program of the user cannot send a descriptor
"""
import os
import resource

ENGINES = ("native",)
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
SERIAL = True
ONLY = "user"
SEND = """
import array, os, socket
def send(n):
    a, b = socket.socketpair()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * n))])
    return a, b
"""


def scene(s):
    s.args = {"send": SEND}


def attack(a):
    import resource
    names, kept = {}, []
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
    exec(a["send"], names)
    try:
        while True:
            kept.append(names["send"](200))
    except OSError as error:
        print(error, len(kept))
    put("ready", "")
    time.sleep(20)


def few_files():
    """As a shell has it, but for the numbers."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def run(s):
    scene(s)
    few = ("--set", "resources.open_files=400")
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, *few, "--", *s.program())
    process = s.t.popen(argv, cwd=s.ws)
    try:
        s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ready")), 10,
                       "the attack is ready")
        if s.control:
            r = s.t.run("/usr/bin/python3", "-I", "-S", "-c", SEND + "send(1)", cwd=s.ws,
                        prepare=few_files)
            return "Too many references" in r.err
        r = s.t.ward("run", "-w", s.t.workspace(), "--set", "resources.open_files=128", "--", "sh",
                     "-c", "ulimit -Hn", cwd=s.ws, prepare=few_files)
        return r.rc != 0 or r.out.strip() != "128"
    finally:
        process.terminate()
        process.wait()


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
