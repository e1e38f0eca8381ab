"""Leaves the operator's terminal in a state of its choice: alternate screen, mouse reports that are
typed into the shell, no cursor, line drawing.

layer: terminal filter
control: without a sandbox the terminal stays so
"""
STATES = {b"\x1b[?1049h": b"\x1b[?1049l", b"\x1b[?1003h": b"\x1b[?1003l",
          b"\x1b[?1004h": b"\x1b[?1004l", b"\x1b[?2004h": b"\x1b[?2004l",
          b"\x1b[?1h": b"\x1b[?1l", b"\x1b[?25l": b"\x1b[?25h", b"\x1b[?7l": b"\x1b[?7h",
          b"\x1b(0": b"\x1b(B", b"\x1b[3;4r": b"\x1b[r", b"\x1b[8m": b"\x1b[m",
          b"\x1b[4h": b"\x1b[4l", b"\x1b=": b"\x1b>"}


def scene(s):
    s.tty = True
    s.args = {"states": [state.decode() for state in STATES]}


def attack(a):
    for state in a["states"]:
        os.write(1, state.encode())
    os.write(1, b"the end\n")
    os.kill(os.getpid(), signal.SIGKILL)


def escaped(s, r):
    shown = r.out_bytes
    s.t.check(b"the end" in shown, "the program's own text is missing")
    return any(shown.rfind(state) > shown.rfind(undo) for state, undo in STATES.items())
