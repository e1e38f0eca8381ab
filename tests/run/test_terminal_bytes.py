"""What passes between a sandbox and the operator's terminal, byte for byte."""
import json
import os
import re

HOSTILE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data",
                       "terminal-hostile.txt")
QUIET = "exec \"$@\" 2>/dev/null"	# without the summary: standard error is no terminal


def decode(text):
    return re.sub(rb"\\x([0-9a-f]{2})|\\\\", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\",
                  text.encode())


def attacks():
    with open(HOSTILE) as f:
        for line in f:
            if not line.startswith("#"):
                name, rest = line.rstrip("\n").split(" | ", 1)
                evil, passes = rest.split(" |", 1)
                yield name, decode(evil), decode(passes[1:] if passes.startswith(" ") else passes)


def ward_quiet(t, *command, options=(), **more):
    """Runs a command in a sandbox on a terminal, with nothing shown but what the command shows."""
    return t.tty("/bin/sh", "-c", QUIET, "sh", *t.ward_argv("run", *options, "--", *command),
                 **more)


def test_hostile_sequences(t):
    """Each attack through a real run on a real terminal; with a terminal inside, and through a
    pipe."""
    rows = list(attacks())
    t.check(len(rows) >= 60, "too few attacks")
    data = b"".join(b"<%d>%s\x18" % (i, evil) for i, (_, evil, _) in enumerate(rows)) + b"<end>"
    ws = t.workspace()
    with open(os.path.join(ws, "evil"), "wb") as f:
        f.write(data)
    runs = {"pty": ward_quiet(t, "sh", "-c", "stty raw; cat evil", cwd=ws),
            "pipe": t.tty("/bin/sh", "-c", "exec \"$@\" </dev/null 2>/dev/null", "sh",
                          *t.ward_argv("run", "--", "cat", "evil"), cwd=ws)}
    for how, r in runs.items():
        t.equal(r.typed, b"", "what the terminal was made to type")
        for i, (name, _, passes) in enumerate(rows):
            got = re.search(rb"<%d>(.*?)<" % i, r.out_bytes, re.DOTALL)
            t.check(got, f"{how}: output ends at {name}")
            if how == "pipe":
                # its line discipline is still at work there
                passes = passes.replace(b"\r\n", b"\r\r\n")
            t.equal(got[1], passes, f"{how}: {name}")


def test_raw_passes_everything(t):
    """process.terminal: raw is a choice, and it is one that widens."""
    evil = "\033]52;c;ZXZpbA==\007\033[6n"
    r = ward_quiet(t, "printf", "%s", evil, options=("--set", "process.terminal=raw"),
                   cwd=t.workspace())
    t.contains(r.out, evil)
    ws = t.workspace({"ward.yaml": "version: 1\nprocess: {terminal: raw}\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "process.terminal")


PROGRAMS = {
    "ls": "ls --color=always -C /usr/bin /usr/lib | head -60; ls --color=always -F .",
    "grep": "grep --color=always -n t a.txt b.txt; true",
    "git diff": "git --no-pager diff --color=always --no-index a.txt b.txt; true",
    "truecolor": "i=0; while [ $i -lt 64 ]; do printf '\\033[48;2;%d;%d;%dm\\033[38;5;%dm "
    "\\033[0m' $i $((i*3)) $((255-i)) $i; i=$((i+1)); done; echo",
    "python": "/usr/bin/python3 -c \"print('\\033[1;4;38:2::10:20:30m\\u250c\\u2500 \\U0001f916 "
    "\\u00e9\\033[0m', end='\\r\\n')\"",
    "progress": "for i in 1 2 3; do printf '\\r\\033[K%d/3 \\033[32m###\\033[m' $i; done; "
    "printf '\\n'",
    "tput": "tput setaf 1; tput bold; tput sgr0; tput civis; tput cnorm; tput cup 3 4; tput el; "
    "tput smcup; tput rmcup",
    "lines drawn": "printf '\\033(0lqqk\\033(B\\033[2;5r\\033[r'",
}


def test_colours_are_the_same_as_outside(t):
    """Programs with colours send the same bytes with ward around them."""
    ws = t.workspace({"a.txt": "one\ntwo\n", "b.txt": "one\n2\n"})
    env = {"TERM": "xterm-256color", "LS_COLORS": "di=01;34:ex=01;32"}
    for name, script in PROGRAMS.items():
        outside = t.tty("/bin/sh", "-c", QUIET, "sh", "/bin/sh", "-c", script, cwd=ws, env=env)
        inside = ward_quiet(t, "/bin/sh", "-c", script, cwd=ws, env=env)
        # titles are not pushed and popped
        wanted = re.sub(rb"\x1b\[2[23];0;0t", b"", outside.out_bytes)
        t.check(len(wanted) > 10, f"{name}: nothing is shown outside")
        t.equal(inside.out_bytes, wanted, name)


def test_queries_are_answered(t):
    """Programs that ask the terminal and wait get their answer from ward; the terminal is never
    asked."""
    script = r"""
import os, sys, tty, select
tty.setraw(0)
def ask(text):
    os.write(1, text)
    got = b""
    while select.select([0], [], [], 5)[0]:
        got += os.read(0, 100)
        if got[-1:] in b"cnR":
            return got
    return b"nothing"
answers = [ask(b"\x1b[c"), ask(b"\x1b[5n"), ask(b"\x1b[7;9H\x1b[6n"), ask(b"\x1b]11;?\x1b\\\x1b[c")]
open("answers", "w").write(repr(answers))
"""
    ws = t.workspace()
    r = ward_quiet(t, "/usr/bin/python3", "-I", "-S", "-c", script, cwd=ws)
    t.equal(t.read(ws, "answers"),
            repr([b"\x1b[?62;22c", b"\x1b[0n", b"\x1b[7;9R", b"\x1b[?62;22c"]))
    t.check(b"\x1b[6n" not in r.out_bytes and b"\x1b]11" not in r.out_bytes,
            "the terminal was asked")
    t.equal(r.typed, b"")


def test_terminal_without_an_operator(t):
    """-t: a terminal of 80 columns and 24 rows; what it shows goes to standard output, standard
    input is typed."""
    ws = t.workspace()
    r = t.ward("run", "-t", "--", "sh", "-c", "tty; tty <&2; stty size; echo $TERM; echo error >&2",
               cwd=ws, env={"TERM": None})
    t.equal(r.out, "/dev/pts/0\r\n/dev/pts/0\r\n24 80\r\nxterm-256color\r\nerror\r\n")
    t.equal((r.rc, r.err), (0, ""))
    r = t.ward("run", "-t", "--", "sh", "-c",
               "stty -echo; while read line; do echo \"[$line]\"; done; exit 4",
               input="one\ntwo\nopen", cwd=ws)
    t.equal(r.rc, 4)
    t.contains(r.out, "[two]")
    r = t.ward("run", "-t", "--", "sh", "-c", "seq 20000", cwd=ws)
    t.equal(r.out.split()[-1], "20000", "all of the output")
    r = t.ward("run", "-t", "--", "sh", "-c", "kill -9 $$", cwd=ws)
    t.equal(r.rc, 137)
    r = t.ward("run", "-t", "--", "no-such-program", cwd=ws)
    t.equal(r.rc, 127)


def test_pipes_stay_pipes(t):
    """With a terminal inside only what was the operator's terminal is one."""
    ws = t.workspace()
    script = ("for i in 0 1 2; do test -t $i && echo $i; done >seen 2>&1; echo out; true </dev/tty "
              "&& echo tty >>seen")
    for redirect, seen in (("", ["0", "tty"]), ("</dev/null", ["tty"]), ("| cat", ["0", "tty"])):
        t.tty("/bin/sh", "-c", f"\"$@\" {redirect}", "sh",
              *t.ward_argv("run", "-t", "--", "sh", "-c", script), cwd=ws)
        t.equal(t.read(ws, "seen").split(), seen, f"terminals with {redirect or 'no redirect'}")
    r = t.tty("/bin/sh", "-c", "\"$@\" | od -c", "sh", *t.ward_argv("run", "--", "printf", "a\\n"),
              cwd=ws)
    t.contains(r.out, "a  \\n\r\n", "bytes through a pipe")


def test_output_limit_and_json(t):
    ws = t.workspace()
    r = t.ward("run", "-t", "--set", "resources.output_limit=10000", "--", "yes", cwd=ws)
    t.equal(r.rc, 137)
    t.contains(r.err, "output")
    t.check(len(r.out_bytes) < 200000, "output goes on")
    r = t.ward_tty("run", "--json", "--", "sh", "-c", "printf 'no newline'; exit 3", cwd=ws)
    last = json.loads(r.out.splitlines()[-1])
    t.equal((r.rc, last["exit"]["code"]), (3, 3))


def test_terminal_is_as_before(t):
    """Modes after every kind of end; nothing is typed for the next reader."""
    ws = t.workspace()
    ends = {"exit": ("true",), "signal": ("sh", "-c", "kill -9 $$"), "not found": ("nowhere",),
            "raw left": ("stty", "raw", "-echo"),
            "refused": ()}
    for name, command in ends.items():
        options = ("--set", "resources.pids_limit=1") if name == "refused" else ()
        r = t.ward_tty("run", *options, "--", *(command or ("true",)), cwd=ws)
        t.equal(r.modes_after, r.modes_before, f"modes after: {name}")
    r = t.ward_tty("run", "--", "printf", "\\033[?1049h\\033[?1003h\\033[?25l\\033[31m", cwd=ws)
    for undo in ("\x1b[?1049l", "\x1b[?1003l", "\x1b[?25h", "\x1b[m"):
        t.contains(r.out, undo)
