"""Has ward itself print escape sequences: in the name of a command that does not exist and in paths
of its errors.

layer: supervisor
control: a shell's `echo` of the same name sends them to the terminal
"""
EVIL = "\x1b]0;evil\x07"


def run(s):
    if s.control:
        r = s.t.tty("/bin/echo", EVIL)
        return b"\x1b]0;evil" in r.out_bytes
    shown = b""
    for argv in (["run", "-w", s.ws, "--", f"/bin/{EVIL}"],
                 ["run", "-w", s.ws + EVIL, "--", "true"],
                 ["run", "-p", s.ws + EVIL, "--", "true"],
                 ["run", "--set", f"{EVIL}=1", "--", "true"],
                 ["run", "--ro", s.ws + EVIL, "--", "true"], [f"{EVIL}"], ["run", f"--{EVIL}"]):
        r = s.t.ward_tty(*argv, cwd=s.ws)
        s.t.check(r.rc != 0, "the bad name was accepted")
        shown += r.out_bytes
    return b"\x1b]0;evil" in shown


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
