"""Writes into the pipe that it was given to read from, `producer | sh -s` with ward called inside,
so that whoever reads next takes it for the producer's words.

layer: stdio
control: without a sandbox the next reader of the pipe gets the text
"""
import os


def run(s):
    reader, writer = os.pipe()
    os.write(writer, b"first\n")
    argv = s.program() if s.control else s.t.ward_argv("run", "-w", s.ws, "--", *s.program())
    r = s.t.run(*argv, stdin=reader, cwd=s.ws)
    s.t.check("[attack began]" in r.err, "the attack never ran")
    os.set_blocking(reader, False)
    os.write(writer, b"end\n")
    left = os.read(reader, 4096)
    os.close(reader)
    os.close(writer)
    s.t.say(f"the next reader gets {left!r}")
    return b"evil" in left


def attack(a):
    for name in ("/proc/self/fd/0", "/dev/stdin", "/dev/fd/0"):
        for flags in (os.O_WRONLY, os.O_RDWR):
            attempt(lambda: os.write(os.open(name, flags | os.O_NONBLOCK), b"rm -rf evil\n"))
    attempt(os.write, 0, b"evil\n")


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
