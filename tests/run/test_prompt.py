"""The question on the terminal: over whatever a program shows, answered by a person alone, and the
screen as it was afterwards. tmux is the terminal."""
import contextlib
import json
import os
import re
import shlex
import signal
import time

from harness import by_turns, screen
from harness.boxes import clean
from harness.world import World

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
    """As a person answers: the chord, the digits, the key. On a busy machine two keys may arrive as
    one, which is no answer: then again."""
    for _ in range(10):
        digits = open_keys(s)
        if key == "d":
            s.type(key)
            return
        for digit in digits:
            s.type(digit)
            time.sleep(0.1)
        s.wait(lambda shown: "  a once  s this" in "  " + shown.replace("\n", "  ") or
               "Ctrl-^ after a pause" in shown, "the digits taken")
        if "Ctrl-^ after a pause" not in s.text():
            s.type(key)
            return
    s.t.fail("the keys are not taken")


def got(s, name="go"):
    path = os.path.join(s.ws, f"{name}.got")
    s.t.wait_until(lambda: os.path.exists(path), 20, "no answer came")
    return s.t.read(path)


def ward_of(s):
    """The ward that the screen's shell runs."""
    found = []

    def look():
        with open(f"/proc/{s.pid()}/task/{s.pid()}/children") as f:
            for pid in f.read().split():
                with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
                    if b"/ward\0" in words.read():
                        found[:] = [int(pid)]
        return found
    s.t.wait_until(look, 10, "no ward")
    return found[0]


def begin(s, *command, ask=("go=db.test:443",)):
    """ward run --ask of a command, beside a program that asks."""
    words = " ".join(w.replace(":", "=") for w in ask)
    s.ward("run", "--ask", "--env", "PS1=in> ", "--", "sh", "-c",
           f"python3 ask.py {words} >/dev/null 2>&1 & exec \"$@\"", "sh", *command)


def go(s, name="go"):
    s.t.write(s.ws, {name: ""})


@by_turns
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


STREAM = """
import os, sys, time
n = 0
while not os.path.exists("stop"):
    print("line", n, flush=True)
    n += 1
    if not os.path.exists("fast"):
        time.sleep(0.01)
print("all", n, flush=True)
"""


def test_over_a_stream(t):
    """A program that streams goes on while the question is shown, and no line of it is lost."""
    with screen.Screen(t, files={"ask.py": ASK, "stream.py": STREAM}) as s:
        s._tmux("set", "-g", "history-limit", "50000")
        begin(s, "python3", "stream.py")
        s.see("line 20")
        go(s)
        see_bar(s, "db.test")
        first = s.text().split("\n")[0]
        s.wait(lambda shown: shown.split("\n")[0] != first and bar_of(shown), "live output")
        answer(s, "d")
        got(s)
        no_bar(s)
        t.write(s.ws, {"stop": ""})
        s.see("exit 0,")
        history = s._tmux("capture-pane", "-p", "-S", "-")
        count = int(re.search(r"^all (\d+)$", history, re.M).group(1))
        lines = [int(x) for x in re.findall(r"^line (\d+)$", history, re.M)]
        kept = lines[0]	# tmux keeps so much
        t.equal(lines, list(range(kept, count)), "every line once, in order")
        t.check("a question" not in history, "no bar is left")


def test_too_much_output(t):
    """A program that writes more than can be kept waits for the answer, and no line is lost."""
    with screen.Screen(t, files={"ask.py": ASK, "go": ""}) as s:
        s.ward("run", "--ask", "--", "sh", "-c",
               "python3 ask.py go=db.test=443 >/dev/null 2>&1 & while ! test -e go.got; do "
               "seq 1 20000; done; wait; echo all do''ne; sleep 1")
        see_bar(s, "db.test")
        s.wait(lambda shown: "output waits" in shown, "a full buffer", 60)
        answer(s, "d")
        t.equal(got(s), "ConnectionResetError", "denied")
        s.wait(lambda shown: "20000\nall done" in shown, "its end", 60)


@by_turns
def test_typing_fast(t):
    """What is typed while questions come and go reaches the program in order, and answers
    nothing; neither does a paste with the chord and digits."""
    names = [f"go{i}=h{i}.test:443" for i in range(4)]
    with screen.Screen(t, files={"ask.py": ASK, "read.py":
                                 "import sys, tty\ntty.setraw(0)\nprint('ready', flush=True)\n"
                                 "f = open('typed', 'wb', 0)\n"
                                 "while True:\n    c = sys.stdin.buffer.raw.read(512)\n"
                                 "    f.write(c)\n    if b'\\x04' in c: break\n"}) as s:
        begin(s, "python3", "read.py", ask=names)
        s.see("ready")
        typed = ""
        for i, name in enumerate(names):
            go(s, f"go{i}")
            for k in range(12):	# bursts: the chord is never the last key of one
                burst = ["aAsd47t\x1e"[(k * 7 + i + n) % 8] for n in range(3 + k % 3)] + ["s"]
                s.keys(*(CHORD if key == "\x1e" else key for key in burst))
                typed += "".join(burst)
                time.sleep(0.02 * (k % 4))
            see_bar(s, f"h{i}.test")
            for k in range(6):
                s.keys("a", "4", "7", CHORD, "4", "7", "a")
                typed += "47".join(("a", "\x1e", "a"))
            t.check(not os.path.exists(os.path.join(s.ws, f"go{i}.got")), "not answered")
            s.paste("\x1e12a\x1e34s")
            typed += "\x1e12a\x1e34s"
            time.sleep(0.3)
            t.check(not os.path.exists(os.path.join(s.ws, f"go{i}.got")), "not by a paste")
            answer(s, "d")
            t.equal(got(s, f"go{i}"), "ConnectionResetError", "denied by a person")
        no_bar(s)
        s.keys("C-d")
        s.see("exit 0,")
        read = t.read(s.ws, "typed")
        # keys of the two who try to open are the program's only if they came too soon
        t.equal([c for c in read if c != "\x1e"][:-1], [c for c in typed if c != "\x1e"],
                "all keys, in order")


FAKE = r"""
import os, sys, time
rows = os.get_terminal_size().lines
while not os.path.exists("stop"):
    sys.stdout.write("\x1b7\x1b[r\x1b[?6l\x1b[%d;1H\x1b[7m ward [amber falcon]  a question, "
                     "100 s left\x1b[m\x1b[K"
                     "\r\nconnect to good.example:443\x1b[K\r\n\r\n"
                     "allow: 12 and a once, s this run, t 10 minutes   d deny  ? more\x1b[K\x1b8"
                     "\x1b[?1049h\x1b[?47h\x1b[1;20r\x1b[!p\x1b[?25h" % (rows - 3))
    sys.stdout.flush()
    time.sleep(0.01)
"""


@by_turns
def test_painted_fake(t):
    """A program that paints a bar over the real one all the time: the real one stays, with a word
    that is nowhere inside; what is typed at the painted one goes to the program."""
    with screen.Screen(t, files={"ask.py": ASK, "fake.py": FAKE}) as s:
        s.ward("run", "--ask", "--", "sh", "-c",
               "python3 ask.py go=db.test=443 >/dev/null 2>&1 & sleep 1; exec python3 fake.py")
        said = s.wait(lambda shown: re.search(r"words \[([a-z ]+)\]", shown), "the words")
        word = re.search(r"words \[([a-z ]+)\]", said).group(1)
        s.wait(lambda shown: "good.example" in shown, "the painted bar")
        t.check(word != "amber falcon", "chance of one in 4096")
        s.keys(CHORD)
        time.sleep(0.6)
        s.type("12a")	# to the program, which shows nothing of it
        go(s)
        seen, lines = see_bar(s, "db.test")
        t.equal(seen, word, "the real word")
        for _ in range(30):
            shown = s.text()
            bar = bar_of("\n".join(shown.split("\n")[-4:]))
            t.check(bar and bar[0] == word, f"the real bar stays where it is:\n{shown}")
            t.contains(bar[1][1], "db.test:443", "and says what it says")
            time.sleep(0.02)
        t.check(not os.path.exists(os.path.join(s.ws, "go.got")), "not answered")
        answer(s, "d")
        t.equal(got(s), "ConnectionResetError", "denied")
        t.write(s.ws, {"stop": ""})
        s.see("exit 0,")


def test_word_is_secret(t):
    """The word is in nothing that the sandbox can read."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        begin(s, "sh", "-c", "while ! test -e look; do sleep 0.1; done; "
              "cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo 2>/dev/null "
              "| tr '\\0' '\\n' >all; "
              "grep -rsa \"$(rev <look)\" /tmp /run /dev/shm /var/tmp /etc >>found; "
              "grep -a \"$(rev <look)\" all >>found; echo lo''oked; sleep 100")
        said = s.wait(lambda shown: re.search(r"words \[([a-z ]+)\]", shown), "the words")
        word = re.search(r"words \[([a-z ]+)\]", said).group(1)
        t.write(s.ws, {"look.new": word[::-1]})
        os.rename(os.path.join(s.ws, "look.new"), os.path.join(s.ws, "look"))
        s.see("looked")
        t.equal(t.read(s.ws, "found"), "", "found inside")
        s.keys("C-c")
        s.prompt()


def test_sizes(t):
    """Resized while shown, down to a few rows and columns and back: always a bar, and afterwards a
    program that draws itself anew as it wants."""
    with screen.Screen(t, files={"ask.py": ASK, "a.txt": "one\ntwo\nthree\n"}) as s:
        begin(s, "vim", "-u", "NONE", "-N", "a.txt")
        s.see("three")
        go(s)
        word, _ = see_bar(s)
        for cols, rows in ((60, 12), (60, 7), (30, 3), (20, 2), (100, 30)):
            s.resize(cols, rows)
            s.wait(lambda shown: f"[{word}]" in shown.split("\n")[-4 if rows >= 8 else -1]
                   if len(shown.split("\n")) >= (4 if rows >= 8 else 1) else False,
                   f"bar in {cols}x{rows}")
        answer(s, "d")
        got(s)
        no_bar(s)
        s.line(":set nu")
        s.see("1 one")
        s.line(":q!")
        s.see("exit 0,")


def test_half_typed_line(t):
    """bash with a half-typed line, in the middle of the screen: as it was, and it goes on; the
    answer lets the connection go on."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        begin(s, "bash", "--norc", "--noprofile")
        s.wait(lambda x: x.rstrip().endswith("in>"), "inner prompt")
        s.type("echo half")
        s.see("in> echo half")
        before = (s.colours(), s.ask("cursor_x"), s.ask("cursor_y"))
        go(s)
        see_bar(s)
        answer(s, "d")
        got(s)
        no_bar(s)
        s.wait(lambda _: (s.colours(), s.ask("cursor_x"), s.ask("cursor_y")) == before,
               "the screen as it was")
        s.type("'wa'y")
        s.keys("Enter")
        s.see("\nhalfway")
        s.line("exit")
        s.see("exit 0,")


def test_screens_switched(t):
    """A program that enters and leaves the alternate screen under the bar: text and screen are
    right afterwards."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        begin(s, "sh", "-c", "echo one; while ! test -e a; do sleep 0.05; done; "
              "printf '\\033[?1049h\\033[2J\\033[Hinside'; "
              "while ! test -e b; do sleep 0.05; done; printf '\\033[?1049l'; echo two; sleep 100")
        s.see("\none")
        go(s)
        see_bar(s)
        t.write(s.ws, {"a": ""})
        s.wait(lambda shown: shown.startswith("inside") and bar_of(shown), "the other screen")
        t.write(s.ws, {"b": ""})
        s.wait(lambda shown: "\ntwo" in shown and bar_of(shown), "the first one")
        answer(s, "d")
        got(s)
        no_bar(s)
        s.wait(lambda shown: "one\ntwo" in shown, "the text")
        t.equal(s.ask("alternate_on"), "0")
        s.keys("C-c")
        s.prompt()


def test_stopped_and_continued(t):
    """SIGTSTP while the question is shown: the shell gets its terminal and screen; after fg the
    question is there again, and can be answered."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        modes = s.modes()
        begin(s, "sh", "-c", "echo at wo''rk; sleep 100")
        s.see("at work")
        go(s)
        see_bar(s)
        os.kill(ward_of(s), signal.SIGTSTP)
        s.see("Stopped")
        t.check(not bar_of(s.text()), "no bar at the outer shell")
        t.equal(s.ask("alternate_on"), "0")
        t.equal(s.modes(), modes, "the shell's modes")
        s.prompt()
        s.line("fg")
        see_bar(s)
        answer(s, "d")
        got(s)
        no_bar(s)
        s.see("at work")
        s.keys("C-c")
        s.prompt()
        t.equal(s.modes(), modes, "the shell's modes")


def test_ends(t):
    """The program ends while the question is shown: its output is on the screen, the terminal as
    before. ward is killed: so is the terminal."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        modes = s.modes()
        begin(s, "sh", "-c", "echo be''gun; while ! test -e end; do sleep 0.05; done; "
              "echo the e''nd")
        s.see("begun")
        go(s)
        see_bar(s)
        t.write(s.ws, {"end": ""})
        s.see("exit 0,")
        s.see("the end")
        no_bar(s)
        t.equal((s.modes(), s.ask("alternate_on")), (modes, "0"))
        os.unlink(os.path.join(s.ws, "end"))
        os.unlink(os.path.join(s.ws, "go"))
        s.fresh()
        begin(s, "sh", "-c", "echo be''gun; sleep 100")
        s.see("begun")
        go(s)
        see_bar(s)
        os.kill(ward_of(s), signal.SIGKILL)
        t.wait_until(lambda: s.ask("alternate_on") == "0", 20, "the screen is not given back")
        no_bar(s)
        t.equal((s.modes(), s.ask("alternate_on")), (modes, "0"), "after a kill")


def test_simple_terminals(t):
    """Where no bar can be shown a line says what waits and how to answer it; a policy that asks
    nothing says nothing."""
    for name in ("dumb", "linux"):
        with screen.Screen(t, files={"ask.py": ASK, "go": ""}, env={"WARD_TEST_TERM": name}) as s:
            s.line(f"export TERM={name}")
            begin(s, "sleep", "100")
            shown = s.see("waits for an answer: ward approve")
            t.check(not bar_of(shown), "no bar")
            found = re.search(r"db.test:443 waits for an answer: ward approve (\S+) --once",
                              shown.replace("\n", ""))
            t.equal(t.ward("approve", found.group(1), "--deny").rc, 0, "answered from elsewhere")
            got(s)
            s.keys("C-c")
            s.prompt()
    with screen.Screen(t) as s:
        s.ward("run", "--", "sh", "-c", "echo pla''in; sleep 0.2")
        s.see("exit 0,")
        t.check("question" not in s.text(), "nothing is said without a question")


@by_turns
def test_answered_elsewhere(t):
    """A question that is answered, or withdrawn, while keys are being typed at it goes; an answer
    hits no other question."""
    with screen.Screen(t, files={"ask.py": ASK}) as s:
        begin(s, "sleep", "100", ask=("go=db.test:443", "go2=web.test:443"))
        go(s)
        see_bar(s, "db.test")
        digits = open_keys(s)
        s.type(digits[0])
        box = json.loads(t.ward("approve", "--json").out)["questions"][0]["id"]
        go(s, "go2")
        t.equal(t.ward("approve", box, "--deny").rc, 0, "from elsewhere")
        got(s)
        see_bar(s, "web.test")
        s.type(digits[1] + "a")	# late: to the program
        time.sleep(0.6)
        t.check(not os.path.exists(os.path.join(s.ws, "go2.got")), "not answered")
        answer(s, "d")
        t.equal(got(s, "go2"), "ConnectionResetError", "denied")
        s.keys("C-c")
        s.prompt()


@by_turns
def test_allowed(t):
    """Once and for the run, by the keys: the connection goes on, and who answered is on record."""
    world = World(t)
    with screen.Screen(t, files={"ask.py": ASK}, root=True) as s:
        words = ["go=db.test=5432", "go2=web.test=5432", "go3=web.test=5432"]
        path = os.path.join(t.fresh_dir("policy"), "p.json")
        with open(path, "w") as f:
            f.write(json.dumps({"version": 1, "network": {
                "mode": "restricted",
                "egress_allowlist": [{"host": "*", "ports": [5432], "ask": True}]},
                "approvals": {"mode": "ask"}}))
        s.line(" ".join(map(shlex.quote, t.ward_argv(
            "run", "-p", path, "--", "python3", "ask.py", *words, wrap=world.wrap(s.ws)))))
        for name, key in (("go", "a"), ("go2", "s")):
            go(s, name)
            see_bar(s)
            answer(s, key)
            t.equal(got(s, name), "hello", f"allowed by {key}")
            no_bar(s)
        go(s, "go3")
        t.equal(got(s, "go3"), "hello", "for the run")
        s.see("exit 0,")
    r = t.ward("audit", "show", "--json", cwd=s.ws)
    answers = [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "approval.answer"]
    t.equal([(e["scope"], e["via"]) for e in answers],
            [("once", "terminal"), ("sandbox", "terminal")],
            f"on record {r.err}")


def see_change(s):
    """Looks at each page of a change of the policy; returns all that was shown."""
    seen = ""
    while True:
        found = re.search(r"page (\d) of (\d)", s.wait(lambda x: "always: " in x, "the change"))
        seen += "".join(line.removeprefix("| ") for line in s.text().split("\n")[-3:-1])
        if found.group(1) == found.group(2):
            s.see("A changes the policy file")
            return seen
        s.type("?")
        s.see(f"page {int(found.group(1)) + 1} of")


@by_turns
def test_always(t):
    """Always, by the keys: the change of the policy is shown, then made by the checks of ward
    policy add, then the connection goes on; a file that changed meanwhile is not written over."""
    world = World(t)
    with screen.Screen(t, files={"ask.py": ASK}, root=True) as s:
        path = os.path.join(t.fresh_dir("policy"), "p.json")
        policy = {"version": 1, "network": {"mode": "restricted", "egress_allowlist": [
            {"host": "*", "ports": [5432], "ask": True}]}, "approvals": {"mode": "ask"}}
        with open(path, "w") as f:
            f.write(json.dumps(policy))
        s.line(" ".join(map(shlex.quote, t.ward_argv(
            "run", "-p", path, "--", "python3", "ask.py", "go=db.test=5432",
            wrap=world.wrap(s.ws)))))
        go(s)
        see_bar(s)
        answer(s, "A")
        shown = see_change(s)
        t.contains(shown, '"db.test:5432"', "the change")
        policy["approvals"]["timeout_seconds"] = 60
        with open(path, "w") as f:
            f.write(json.dumps(policy))
        time.sleep(0.6)
        s.type("A")
        s.see("not always: ")
        t.equal(json.loads(t.read(path)), policy, "not written")
        answer(s, "A")
        see_change(s)
        time.sleep(0.6)
        s.type("A")
        t.equal(got(s), "hello", "the connection goes on")
        s.see("exit 0,")
        t.contains(t.read(path), "db.test:5432", "written")
    r = t.ward("audit", "show", "--json", cwd=s.ws)
    answers = [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "approval.answer"]
    t.equal([(e["scope"], e["via"]) for e in answers], [("always", "terminal")], r.err)


@by_turns
def test_attached(t):
    """ward attach and ward exec -t show the questions of the sandbox they join; the first answer
    counts, and the others' bars go."""
    t.defer(clean, t)
    with screen.Screen(t, files={"ask.py": ASK}) as s, screen.Screen(t) as other:
        r = t.ward("run", "-d", "-t", "--ask", "--env", "PS1=in> ", "--", "bash", "--norc",
                   cwd=s.ws)
        t.equal(r.rc, 0, r.err)
        box = r.out.strip()
        s.ward("attach", box)
        s.see("are shown in a bar")
        other.ward("exec", "-t", box, "bash", "--norc")
        other.see("are shown in a bar")
        process = t.popen(t.ward_argv("exec", box, "python3", "ask.py", "go=db.test=443",
                                      "go2=web.test=443"), cwd=s.ws)
        go(s)
        first, second = see_bar(s, "db.test")[0], see_bar(other, "db.test")[0]
        t.check(first != second, "each has words of its own")
        answer(other, "d")
        t.equal(got(s), "ConnectionResetError", "denied")
        no_bar(s)
        no_bar(other)
        go(s, "go2")
        see_bar(other, "web.test")
        see_bar(s, "web.test")
        answer(s, "d")
        t.equal(got(s, "go2"), "ConnectionResetError", "denied")
        no_bar(s)
        no_bar(other)
        process.wait(10)
        s.keys("C-p", "C-q")
        s.prompt()
        other.line("exit")
        other.prompt()
        r = t.ward("audit", "show", box, "--json")
        answers = [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "approval.answer"]
        t.equal([(e["via"], e["from"][:8]) for e in answers], [("terminal", "/dev/pts")] * 2)


@by_turns
def test_offered_at_the_end(t):
    """ward run --ask on a new project: what the answers made is shown as a difference and written
    on a yes, and the next run needs no answer. A no writes nothing."""
    world = World(t)
    with screen.Screen(t, root=True) as s:
        def run(*options):
            s.fresh()
            s.line(" ".join(map(shlex.quote, t.ward_argv(
                "run", *options, "--", "curl", "-sko", "/dev/null", "-w", "code=%{http_code}\\n",
                "https://web.test/", wrap=world.wrap(s.ws)))))
        for reply in ("n", "y"):
            run("--ask")
            see_bar(s, "web.test")
            answer(s, "s")
            t.contains(s.see("write it? [y/N]"), "web.test", "the difference")
            s.see("code=200")
            s.line(reply)
            s.prompt()
            t.equal(os.path.exists(os.path.join(s.ws, "ward.yaml")), reply == "y", "written")
        t.contains(t.read(s.ws, "ward.yaml"), "web.test", "the rule")
        run()
        s.see("code=200")
        s.prompt()
    process = t.popen(t.ward_argv("run", "--ask", "--widen", "--yes", "--", "curl", "-sko",
                                  "/dev/null", "https://other.test/", wrap=world.wrap(s.ws)),
                      cwd=s.ws, root=True)
    t.wait_until(lambda: process.poll() is not None or json.loads(
        t.ward("approve", "--json").out)["questions"], 20, "nothing is asked")
    t.check(process.poll() is None, process.poll() is None or process.communicate())
    q = json.loads(t.ward("approve", "--json").out)["questions"][0]["id"]
    t.equal(t.ward("approve", q, "--run").rc, 0, "answered")
    t.equal(process.communicate(timeout=30)[0], b"", "nothing on standard output")
    t.contains(t.read(s.ws, "ward.yaml"), "other.test", "written with --yes")
