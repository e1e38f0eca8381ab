"""Watches the system's directories, which are the host's own, to see by name which programs the
host and other sandboxes start. (Only the strict set of system calls stops it.)

layer: seccomp
control: without a sandbox it sees them
"""
import os

ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
OPTIONS = ["--set", "process.syscalls=strict"]


def attack(a):
    fd = LIBC.inotify_init1(0)
    wd = LIBC.inotify_add_watch(fd, b"/usr/bin", 0x31)	# IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN
    put("ready", "")
    if wd < 0:
        print("refused")
        return
    seen, end = b"", time.monotonic() + 10
    while b"tac" not in seen and time.monotonic() < end:
        seen += os.read(fd, 65536)
    print("SEEN_STARTING" if b"tac" in seen else "nothing")


def run(s):
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, *OPTIONS, "--",
                                                       *s.program())
    log = os.path.join(s.outside, "log")
    with open(log, "w") as out:
        process = s.t.popen(argv, cwd=s.ws, stdout=out, stderr=out)
        try:
            s.t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ready")), 10,
                           "the attack watches")
            s.t.run("/usr/bin/tac", "/dev/null")
            s.t.wait_until(lambda: process.poll() is not None, 15, "the attack has ended")
        finally:
            process.terminate()
            process.wait()
    said = s.t.read(log)
    s.t.check("[attack began]" in said, f"the attack never ran: {said}")
    return "SEEN_STARTING" in said


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
