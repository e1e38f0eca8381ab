"""Sends the operator's terminal sequences that do more than colour: clipboard (OSC 52), title,
device queries, keyboard modes.

layer: stdio
control: without a sandbox they reach the terminal
"""
EVIL = [b"\x1b]52;c;ZXZpbA==\x07", b"\x1b]0;evil\x07", b"\x1b[6n", b"\x1bP$q\"p\x1b\\", b"\x1b[21t",
        b"\x1b]52;c;x\x1b\\"]


def scene(s):
    s.tty = True
    s.args = {"evil": [e.decode() for e in EVIL]}


def attack(a):
    for text in a["evil"]:
        os.write(1, text.encode())
        for byte in text.encode():
            os.write(2, bytes([byte]))
    os.write(1, b"\nplain text\n")


def escaped(s, r):
    s.t.check(b"plain text" in r.out_bytes, "the program's own text is missing")
    return any(e in r.out_bytes for e in EVIL)
