"""The question on the terminal: over whatever a program shows, answered by a person alone, and the
screen as it was afterwards. tmux is the terminal."""
import os
import re
import time

from harness import screen

# connects when the file NAME exists, writes what came of it to NAME.got
ASK = r"""
import os, socket, sys, time
for word in sys.argv[1:]:
    name, host, port = word.split("=")
    while name and not os.path.exists(name):
        time.sleep(0.02)
    try:
        s = socket.create_connection((host, int(port)), 60)
        s.sendall(b"hello")
        got = s.recv(5).decode() or "closed"
    except OSError as error:
        got = type(error).__name__
    with open((name or "it") + ".new", "w") as f:
        f.write(got)
    os.rename((name or "it") + ".new", (name or "it") + ".got")
"""
CHORD = "C-^"


def bar_of(shown):
    """(word, lines of the bar) or None."""
    lines = shown.split("\n")
    for i, line in enumerate(lines):
        found = re.match(r" ward \[([a-z]+ [a-z]+)\]  a question", line)
        if found:
            return found.group(1), lines[i:]
    return None


def see_bar(s, what=""):
    """Waits until a question about this is shown; returns (word, lines)."""
    s.wait(lambda shown: bar_of(shown) and what in "\n".join(bar_of(shown)[1]), f"bar {what}")
    return bar_of(s.text())


def no_bar(s):
    s.wait(lambda shown: not bar_of(shown), "end of the bar")


def open_keys(s):
    """Presses the chord until keys belong to ward; returns the two digits."""
    def opened(shown):
        found = re.search(r"allow: (\d\d) and a once", shown)
        if not found:
            time.sleep(0.7)
            if not re.search(r"allow: (\d\d) and a once", s.text()):
                s.keys(CHORD)
                time.sleep(0.6)
        return found
    return re.search(r"allow: (\d\d) and", s.wait(opened, "keys for the answer")).group(1)


def answer(s, key):
    """As a person answers: the chord, the digits, the key."""
    if key == "d":
        open_keys(s)
    else:
        for digit in open_keys(s):
            s.type(digit)
            time.sleep(0.05)
    s.type(key)


def got(s, name="go"):
    path = os.path.join(s.ws, f"{name}.got")
    s.t.wait_until(lambda: os.path.exists(path), 20, "no answer came")
    return s.t.read(path)


def begin(s, *command, ask=("go=db.test:443",)):
    """ward run --ask of a command, beside a program that asks."""
    words = " ".join(w.replace(":", "=") for w in ask)
    s.ward("run", "--ask", "--env", "PS1=in> ", "--", "sh", "-c",
           f"python3 ask.py {words} >/dev/null 2>&1 & exec \"$@\"", "sh", *command)


def go(s, name="go"):
    s.t.write(s.ws, {name: ""})


def test_over_vim(t):
    """Over vim: the bar, and afterwards the screen, cursor and modes as they were; denied."""
    text = "".join(f"line {i} \u00fc\n" for i in range(100))
    for cols, rows in ((80, 24), (60, 20)):
        with screen.Screen(t, cols=cols, rows=rows, files={"a.txt": text, "ask.py": ASK}) as s:
            begin(s, "vim", "-u", "NONE", "-N", "+set mouse=a ruler", "+50", "a.txt")
            s.see("line 50")
            s.keys("i")
            s.see("-- INSERT --")
            look = lambda: (s.colours(), s.ask("cursor_x"), s.ask("cursor_y"),
                            s.ask("mouse_any_flag"), s.ask("cursor_flag"))
            before = look()
            go(s)
            word, lines = see_bar(s)
            t.contains(lines[1], "connect to db.test:443", "what is asked")
            t.contains(lines[3], "Ctrl-^", "the keys")
            t.equal(s.ask("mouse_any_flag"), "0", "the mouse is not the program's now")
            answer(s, "d")
            t.equal(got(s), "ConnectionResetError", "denied")
            no_bar(s)
            s.wait(lambda _: look() == before, "the screen as it was")
            s.type("zz")
            s.see("zzline 49")
            s.keys("Escape")
            s.line(":wq")
            s.see("exit 0,")
            t.equal(s.ask("alternate_on"), "0")
