"""Streams as programs really use them: by their names in /dev, in pipelines, with slow readers, by
the megabyte."""
import hashlib
import os
import signal
import subprocess
import time

from harness import by_turns, timeout

MEGABYTES = 32


def shell(t, script, cwd, **options):
    """A shell outside, in which $WARD is ward."""
    return t.run("/bin/bash", "-c", script, cwd=cwd, env={"WARD": t.ward_path}, **options)


def test_names_in_dev(t):
    """echo > /dev/stderr, tee /dev/stdout, cat /dev/stdin: in a pipe, in a file, at /dev/null."""
    ws = t.workspace({"in": "input\n"})
    r = shell(t,
              """echo piped | $WARD run -- sh -c 'cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr;
                    echo three | tee /dev/fd/1 /proc/self/fd/2'""", ws)
    t.equal(r.out, "piped\nout\nthree\nthree\n", "output")
    t.equal(r.err, "err\nthree\n", "error")
    r = shell(t, "$WARD run -- sh -c 'cat /dev/stdin; echo a > /dev/stdout; echo b > /dev/stderr' "
              "< in > out 2>&1", ws)
    t.equal((r.rc, t.read(ws, "out")), (0, "input\na\nb\n"), "files")
    r = shell(t, "$WARD run -- sh -c 'cat /dev/stdin; echo x > /dev/stdout' < /dev/null > "
              "/dev/null", ws)
    t.equal((r.rc, r.err), (0, ""), "/dev/null")


def test_a_name_in_dev_gives_no_other_right(t):
    """The input of the next program in the pipeline cannot be read back, nor written into that of
    the one before."""
    ws = t.workspace()
    r = shell(t,
              """$WARD run -- sh -c 'echo one; (timeout 0.3 cat < /proc/self/fd/1) >&2; sleep 0.2; echo two' |
                    (sleep 0.1; cat)""", ws)
    t.equal(r.out.splitlines()[-1], "two")
    r = shell(t, "(echo given; sleep 0.3) | (IFS= read -r x; $WARD run -- sh -c 'echo planted > "
              "/dev/stdin' ; cat; echo end)",
              ws)
    t.equal(r.out, "end\n", "what was left in the pipe")


def test_written_into_its_own_input(t):
    """The agent can fill its own input; the caller's offset does not go back behind what it was."""
    ws = t.workspace({"in": "first line\n" + "x" * 100 + "\nlast\n"})
    r = shell(t,
              """(read -r line; $WARD run -- sh -c 'cat > /dev/null; head -c 30000 /dev/zero > /dev/stdin'; cat) < in""",
              ws)
    t.check("first" not in r.out, f"the offset went back: {r.out[:80]!r}")


@timeout(90)
def test_megabytes(t):
    """File to file, pipe to pipe, pipe to file, and appended: every byte, in order."""
    ws = t.workspace()
    data = os.urandom(1 << 20) * MEGABYTES
    with open(os.path.join(ws, "big"), "wb") as f:
        f.write(data)
    wanted = hashlib.md5(data).hexdigest()
    for script in ("$WARD run -- cat < big > out", "cat big | $WARD run -- cat | cat > out",
                   "cat big | $WARD run -- cat > out", ": > out; $WARD run -- cat < big >> out",
                   "$WARD run -- cat big 2>&1 | cat > out"):
        t.equal(shell(t, script, ws).rc, 0, script)
        with open(os.path.join(ws, "out"), "rb") as f:
            t.equal(hashlib.md5(f.read()).hexdigest(), wanted, script)


def test_a_thousand_files(t):
    ws = t.workspace()
    r = t.ward("run", "--", "sh", "-c",
               "i=0; while [ $i -lt 1000 ]; do echo $i > f$i; i=$((i+1)); done", cwd=ws)
    t.equal(r.rc, 0)
    t.equal(len(os.listdir(ws)), 1000, "files")
    t.equal(t.read(ws, "f999"), "999\n")


def test_head_ends_the_command(t):
    r = shell(t, "$WARD run -- yes | head -1; echo ${PIPESTATUS[*]}", t.workspace())
    t.equal(r.out, "y\n141 0\n")
    t.check(r.seconds < 5, "it took too long")


def test_closed_streams(t):
    ws = t.workspace()
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        r = shell(t, f"$WARD run -- sh -c 'echo o; echo e >&2; cat; echo end > file' {closed}; "
                  "echo $?", ws)
        t.equal(r.out.splitlines()[-1], "0", closed)
        t.equal(t.read(ws, "file"), "end\n", closed)
        os.unlink(os.path.join(ws, "file"))


def test_jobs_in_the_background(t):
    """The command's end is the end, whoever still holds its output; a background job that it waits
    for is heard."""
    ws = t.workspace()
    r = shell(t, "$WARD run -- sh -c 'sleep 30 & echo done' | cat", ws)
    t.equal(r.out, "done\n")
    t.check(r.seconds < 5, "the background job was waited for")
    r = shell(t, "$WARD run -- bash -c '(sleep 0.1; echo late) & wait; jobs; echo $?'", ws)
    t.equal(r.out, "late\n0\n")


@by_turns
def test_a_slow_reader_gets_everything(t):
    """More than a pipe holds, and the reader waits longer than any patience of ward's."""
    ws = t.workspace()
    process = t.ward_start("run", "--", "seq", "20000", cwd=ws)
    time.sleep(3)
    r = t.finish_ward(process)
    t.equal(r.out.splitlines()[-1:], ["20000"])
    t.equal((len(r.out.splitlines()), r.rc), (20000, 0), "lines, exit")


def test_a_slow_reader_can_be_left(t):
    """A signal ends the waiting for a reader that does not read."""
    process = t.ward_start("run", "--", "seq", "20000", cwd=t.workspace())
    time.sleep(1)
    t.check(process.poll() is None, "ward did not wait for the reader")
    process.send_signal(signal.SIGTERM)
    process.wait(5)


@by_turns
def test_limits_hold_while_nobody_reads(t):
    """The supervisor does not wait in a write: the time is up though the pipe is full."""
    began = time.monotonic()
    process = t.ward_start("run", "--timeout", "1", "--", "yes", cwd=t.workspace())
    try:
        t.equal(process.wait(8), 124)
    except subprocess.TimeoutExpired:
        t.fail("the pipe was full, and the time was never up")
    t.check(time.monotonic() - began >= 1, "it ended early")


def test_terminal_is_relayed(t):
    """A terminal's lines reach the command; the terminal itself does not."""
    r = t.ward_tty("run", "--", "sh", "-c", "read x; echo got $x; tty", input=b"typed\n",
                   cwd=t.workspace())
    t.contains(r.out, "got typed")
    t.contains(r.out, "/dev/pts/0")
