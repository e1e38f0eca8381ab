"""Reads from the pipe that it was given to write to, and so takes what the caller wrote before.

layer: stdio
control: without a sandbox it reads the token
"""
import os


def run(s):
    reader, writer = os.pipe()
    os.write(writer, s.token.encode() + b"\n")
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, "--", *s.program())
    r = s.t.run(*argv, stdout=writer, cwd=s.ws)
    s.t.check("[attack began]" in r.err, "the attack never ran")
    os.close(writer)
    os.close(reader)
    return s.token in r.err


def attack(a):
    for name in ("/proc/self/fd/1", "/dev/stdout"):
        for flags in (os.O_RDONLY, os.O_RDWR):
            try:
                os.write(2, os.read(os.open(name, flags | os.O_NONBLOCK), 4096))
            except OSError as error:
                os.write(2, repr(error).encode() + b"\n")


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
