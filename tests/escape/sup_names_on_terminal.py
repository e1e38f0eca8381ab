"""Has ward itself print escape sequences: in the names of quarantined files, which the summary
lists on the terminal.

layer: supervisor
control: a plain listing of the names sends them to the terminal
"""
OPTIONS = ["--verbose"]
CONTROL_SHELL = '"$@"; printf "%s\\n" */.envrc'


def scene(s):
    s.tty = True


def attack(a):
    for name in ("\x1b]0;evil\x07", "\x1b]52;c;ZXZpbA==\x07", "\x9b31m\x1b[8m",
                 "a\nward: all is well\n"):
        os.mkdir(name)
        put(name + "/.envrc", "evil\n")


def escaped(s, r):
    return (b"\x1b]0;evil" in r.out_bytes or b"\x1b]52;" in r.out_bytes
            or b"\nward: all is well" in r.out_bytes.replace(b"\r", b""))
