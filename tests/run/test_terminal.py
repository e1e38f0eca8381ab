"""A person at a terminal: programs that want one, jobs, windows, and the terminal afterwards. Each
test drives tmux."""
import contextlib
import os
import signal
import time

from harness import screen


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def named(pids, word):
    """Those of the processes whose program or words have this in them; what ends meanwhile is
    none."""
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError,
                                 ProcessLookupError), open(f"/proc/{pid}/cmdline", "rb") as f:
            if word in f.read():
                found.append(pid)
    return found


def ward_of(s):
    """The process id of the ward that the screen's shell runs."""
    found = []

    def look():	# the shell's child has the shell's own words before it becomes ward
        found[:] = named(children(s.pid()), b"/ward\0")
        return found
    s.t.wait_until(look, 10, "no ward")
    return found[0]


def test_job_control(t):
    """bash inside: ^Z, jobs, bg, fg, ^C, and no complaint at its start."""
    with screen.Screen(t) as s:
        s.ward("run", "--env", "PS1=in> ", "--", "bash", "--norc", "--noprofile")
        t.check("job control" not in s.wait(lambda x: x.endswith("in>"), "inner prompt"),
                "bash complains")
        s.line("sleep 300 & sleep 200")
        s.see("[1]")
        s.press("C-z", "Stopped")
        s.line("jobs -l")
        s.see("Running                 sleep 300")
        s.line("fg %2")
        s.wait(lambda x: x.splitlines()[-1] == "sleep 200", "job in front")
        s.keys("C-c")
        s.wait(lambda x: x.endswith("in>"), "inner prompt")
        s.line("echo back $?")
        s.see("\nback 130")
        s.line("bg; kill %1; wait; echo none left")
        s.see("none left")
        s.line("exit 7")
        s.see("exit 7,")


def test_vim_writes(t):
    """vim edits and saves; what it shows is what it shows outside."""
    with screen.Screen(t, files={"a.txt": "one\ntwo\n"}) as s:
        looks = []
        for ward in (False, True):
            command = ("vim", "-u", "NONE", "-N", "--cmd", "syntax on", "a.txt")
            if ward:
                s.ward("run", "--", *command)
            else:
                s.line(" ".join(command[:3]) + " -N --cmd 'syntax on' a.txt")
            s.see('"a.txt"')
            s.keys("i")
            s.see("-- INSERT --")
            s.type("x")
            s.see("xone")
            looks.append(s.colours())
            s.keys("Escape")
            s.wait(lambda shown: "INSERT" not in shown, "end of the insert mode")
            s.line(":wq" if ward else ":q!")
            s.fresh()
        t.equal(looks[1], looks[0], "vim's screen")
        t.equal(t.read(s.ws, "a.txt"), "xone\ntwo\n")


def test_pager_top_and_python(t):
    """Full-screen programs and a prompt with editing."""
    with screen.Screen(t, files={"long": "".join(f"line {i}\n" for i in range(300))}) as s:
        s.ward("run", "--", "less", "long")
        s.see("line 20")
        s.keys("Space")
        s.see("line 40")
        t.equal(s.ask("alternate_on"), "1")
        s.type("/line 200")
        s.keys("Enter")
        s.see("line 210")
        s.keys("q")
        s.fresh()
        t.equal(s.ask("alternate_on"), "0")
        s.ward("run", "--", "top")
        s.see("load average")
        s.keys("q")
        s.fresh()
        s.ward("run", "--", "/usr/bin/python3", "-q")
        s.see(">>>")
        s.line("6*7")
        s.see("\n42")
        s.keys("Up")
        s.see(">>> 6*7\n42\n>>> 6*7")
        s.keys("Enter", "C-d")
        s.see("exit 0,")


def test_resize(t):
    """The window's size goes inside, at the start and later, with the signal."""
    with screen.Screen(t, cols=91, rows=33) as s:
        s.ward("run", "--", "bash", "-c",
               "trap 'echo now $(stty size)' WINCH; echo size $(stty size); while :; do sleep "
               "0.1; done")
        s.see("size 33 91")
        s.resize(70, 20)
        s.see("now 20 70")
        s.keys("C-c")
        s.prompt()


def test_suspend(t):
    """^Z stops a command without a shell around it, and ward with it; fg brings both back; the
    shell has its terminal between."""
    with screen.Screen(t, files={"a.txt": "one\n"}) as s:
        before = s.modes()
        s.ward("run", "--", "vim", "-u", "NONE", "a.txt")
        s.see('"a.txt"')
        s.keys("C-z")
        s.see("Stopped")
        t.equal(s.modes(), before, "modes while it is stopped")
        t.equal(s.ask("alternate_on"), "0")
        s.line("fg")
        s.wait(lambda shown: shown.startswith("one"), "vim's screen")
        s.line(":wq")
        s.see("exit 0,")
        t.equal(s.modes(), before, "modes after the end")


def test_suspend_twice_and_background(t):
    """bg lets a stopped command go on without the terminal; fg gives it back, and ^C reaches it."""
    with screen.Screen(t) as s:
        s.ward("run", "--", "sh", "-c",
               "echo be''gun; while ! test -e go; do sleep 0.1; done; echo gone o''n; sleep 300")
        s.see("begun")
        s.keys("C-z")
        s.see("Stopped")
        s.line("bg")
        s.prompt()
        t.write(s.ws, {"go": ""})
        s.see("gone on")
        s.line("echo still the shell")
        s.see("\nstill the shell")
        s.front()
        s.press("C-c", "exit 130")


def test_started_in_the_background(t):
    """A job in the background shows its output, takes no input, and leaves the terminal as it
    is."""
    with screen.Screen(t) as s:
        before = s.modes()
        s.line(" ".join(t.ward_argv("run", "--", "sh", "-c",
                                    "'while ! test -e go; do sleep 0.1; done; echo sho\"\"wn; read "
                                    "x; echo got $x'")) + " &")
        s.prompt()
        s.line("echo mine; touch go")
        s.see("\nmine")
        s.see("shown")
        t.equal(s.modes(), before, "modes")
        s.front()
        s.line("word")
        s.see("\ngot word")


def test_killed(t):
    """kill -9 of ward in the middle of vim: modes and screen are as before."""
    with screen.Screen(t, files={"a.txt": "one\n"}) as s:
        before = s.modes()
        s.ward("run", "--", "vim", "-u", "NONE", "-c", "set mouse=a", "a.txt")
        s.see('"a.txt"')
        t.equal(s.ask("alternate_on"), "1")
        os.kill(ward_of(s), signal.SIGKILL)
        t.wait_until(lambda: s.ask("alternate_on") == "0", 10, "the alternate screen stays")
        s.prompt()
        t.equal(s.ask("mouse_any_flag"), "0", "mouse reports")
        t.equal(s.ask("cursor_flag"), "1", "the cursor")
        t.equal(s.modes(), before, "modes")


def test_ended_by_a_limit(t):
    """A limit ends a program in the middle of its screen: the terminal is put back."""
    with screen.Screen(t) as s:
        before = s.modes()
        s.ward("run", "--timeout", "1", "--", "sh", "-c",
               r"stty raw -echo; printf "
               r"'\033[?1049h\033[?25l\033[?1003h\033[?2004h\033[31m\033(0screen'; sleep 60")
        s.see("exit 124")
        s.prompt()
        t.equal([s.ask(f) for f in ("alternate_on", "cursor_flag", "mouse_any_flag")],
                ["0", "1", "0"], "the screen's state")
        t.equal(s.modes(), before, "modes")


def test_end_of_input_and_paste(t):
    """^D ends the input; pasted text is marked where the program asks for it."""
    with screen.Screen(t) as s:
        s.ward("run", "--", "sh", "-c", "echo 'ready now'; exec cat")
        s.see("\nready now")
        s.line("a line")
        s.wait(lambda shown: shown.count("a line") == 2, "the line")
        s.keys("C-d")
        s.see("exit 0,")
        s.fresh()
        s.ward("run", "--", "sh", "-c", r"stty raw -echo; printf '\033[?2004hready\r\n'; dd bs=1 "
               r"count=17 2>/dev/null | cat -v; printf '\033[?2004l'; stty sane")
        s.see("\nready")
        s.paste("words")
        s.see("^[[200~words^[[201~"[:17])


def test_the_terminal_hangs_up(t):
    """The window is closed: the command gets SIGHUP, and nothing stays."""
    s = screen.Screen(t)
    s.ward("run", "--", "sh", "-c",
           "trap 'touch hung; exit' HUP; echo ready; while :; do sleep 0.1; done")
    s.see("\nready")
    pid = ward_of(s)
    s._run("kill-server")
    t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "hung")), 10, "no SIGHUP inside")

    def gone():
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")")[1].split()[0] in "ZX"
        return True
    t.wait_until(gone, 10, "ward stays")


def test_suspend_without_a_terminal_inside(t):
    """Output goes to a file, so the command has pipes; ^Z stops it all the same, and nothing inside
    goes on meanwhile."""
    with screen.Screen(t) as s:
        beat = os.path.join(s.ws, "beat")
        s.line(" ".join(t.ward_argv("run", "--", "sh", "-c",
                                    "'i=0; while :; do i=$((i+1)); echo $i >new; mv new beat; "
                                    "sleep 0.02; done'")) + " >log")
        t.wait_until(lambda: os.path.exists(beat), 10, "the command did not start")
        s.keys("C-z")
        s.see("Stopped")
        time.sleep(0.3)	# what was under way is done
        before = t.read(beat)
        time.sleep(0.3)
        t.equal(t.read(beat), before, "it goes on while ward is stopped")
        s.line("fg")
        t.wait_until(lambda: t.read(beat) != before, 10, "it does not go on")
        s.keys("C-c")
        s.prompt()


def test_tmux_inside(t):
    """A terminal multiplexer, which asks the terminal many things at its start, in a terminal of
    its own."""
    with screen.Screen(t) as s:
        s.ward("run", "--", "tmux", "-f", "/dev/null", "new-session",
               "echo in''ner $(tput cols); exec cat")
        s.see("inner 80")
        t.check("[0]" in s.see("0:"), "no status line")
        s.line("echoed")
        s.wait(lambda shown: shown.count("echoed") == 2, "the typed line twice")
        s.keys("C-d")
        s.see("exit 0,")
        t.equal(s.ask("alternate_on"), "0")


def test_the_keeper_dies(t):
    """The process that would put the terminal back is killed: the run goes on, and ward itself puts
    it back."""
    with screen.Screen(t, files={"long": "line\n" * 300}) as s:
        before = s.modes()
        s.ward("run", "--", "less", "long")
        s.see("line\nline")
        ward, keepers = ward_of(s), []

        def look():	# one that has not become a keeper yet still has ward's words
            keepers[:] = named(children(ward), b"ward-keeper")
            return keepers
        t.wait_until(look, 10, "no keeper")
        t.equal(len(keepers), 1, "keepers")
        os.kill(keepers[0], signal.SIGKILL)
        s.keys("q")
        s.see("exit 0,")
        t.equal(s.modes(), before, "modes")
