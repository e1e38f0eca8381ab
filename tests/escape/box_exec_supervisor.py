"""A command of ward exec looks for what its supervisor holds: descriptors, the control socket of
ward-init, the init process itself.

layer: pid namespace, PR_SET_DUMPABLE, close-on-exec
control: without a sandbox a process of the same user reads another one's descriptors
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "pid 1 behind it has the agent's own id and holds nothing that the command has not"


def attack(a):
    for n in range(3, 64):
        if os.path.lexists(f"/proc/self/fd/{n}"):
            print("inherited", os.readlink(f"/proc/self/fd/{n}"))
    for pid in (1, os.getppid()) if inside() else (a["victim"]["pid"],):
        attempt(lambda: print("fds",
                              [os.readlink(f"/proc/{pid}/fd/{n}")
                               for n in os.listdir(f"/proc/{pid}/fd")]))
        for n in range(8) if inside() else (a["victim"]["fd"],):
            attempt(lambda: print(open(f"/proc/{pid}/fd/{n}").read(100)))
        fd = attempt(lambda: syscall("pidfd_open", pid, 0))
        if fd is not None:
            attempt(lambda: print("stolen", syscall("pidfd_getfd", fd, 3, 0)))
        attempt(lambda: print("traced", syscall("ptrace", 16, pid, 0, 0)))


def run(s):
    from harness.boxes import box, clean
    if s.control:
        s.args = {"victim": s.victim()}
        return s.token in s.run_control().out
    b = box(s.t, cwd=s.ws)
    s.args = {"victim": {"pid": 1, "fd": 3}}
    r = s.t.ward("exec", b, *s.program())
    clean(s.t)
    s.t.check("[attack began]" in r.err + r.out, "the attack never ran")
    return any(line.startswith(("fds [", "stolen", "traced", "inherited"))
               for line in r.out.splitlines())


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
