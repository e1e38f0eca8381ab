"""Kills what watches over it: its parent, pid 1, its process group and session; the exit code must
stay its own.

layer: pid namespace
control: without a sandbox the parent, a shell that would have reported, dies
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "pid 1 behind it has the agent's own id: it can end its own run, as any exit does"
CONTROL_SHELL = '"$@"; echo "supervisor reports $?"'


def attack(a):
    attempt(os.setpgid, 0, 0)
    for pid in (os.getppid(), 1) if inside() else (os.getppid(),):
        for sig in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
            attempt(os.kill, pid, sig)
    time.sleep(0.1)
    sys.stdout.flush()
    os._exit(7)


def escaped(s, r):
    if s.control:
        return "supervisor reports" not in r.out
    return r.rc != 7 or not r.report or r.report["exit"]["code"] != 7
