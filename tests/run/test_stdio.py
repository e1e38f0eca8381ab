"""Standard input, output and error: what goes in comes out, whatever kind of file it is, and
nothing else."""
import os
import socket
import subprocess

from harness import only_root, serial


def files_of(t, content=b""):
    path = os.path.join(t.fresh_dir(), "file")
    with open(path, "wb") as f:
        f.write(content)
    return path


def test_pipes_carry_every_byte(t):
    data = bytes(range(256)) * 4096
    r = t.ward("run", "--", "/bin/cat", input=data, cwd=t.workspace())
    t.equal(r.rc, 0, "exit")
    t.check(r.out_bytes == data, "the bytes differ")
    t.equal(r.err, "", "standard error")


def test_streams_stay_apart(t):
    r = t.ward("run", "--", "/bin/sh", "-c", "echo out; echo err >&2", cwd=t.workspace())
    t.equal((r.out, r.err), ("out\n", "err\n"))


def test_file_in_and_out(t):
    data = os.urandom(3 << 20)
    source, target = files_of(t, data), files_of(t)
    with open(source, "rb") as stdin, open(target, "wb") as stdout:
        r = t.ward("run", "--", "/bin/cat", stdin=stdin, stdout=stdout, cwd=t.workspace())
    t.equal(r.rc, 0, "exit")
    with open(target, "rb") as f:
        t.check(f.read() == data, "the bytes differ")


def test_output_is_appended(t):
    path = files_of(t, b"before\n")
    with open(path, "ab") as stdout:
        t.ward("run", "--", "/bin/echo", "after", stdout=stdout, cwd=t.workspace())
    t.equal(t.read(path), "before\nafter\n")


def test_output_keeps_its_place(t):
    """( echo a; ward run -- echo b; echo c ) > file: the offset is shared as without ward."""
    path = files_of(t)
    script = 'echo a; "$1" run -w "$2" -- /bin/echo b; echo c'
    with open(path, "wb") as stdout:
        t.run("sh", "-c", script, "sh", t.ward_path, t.workspace(), stdout=stdout, check=True)
    t.equal(t.read(path), "a\nb\nc\n")


def test_input_is_left_for_the_next(t):
    """( ward run -- read one line; cat ) < file: what was not read is still there."""
    path = files_of(t, b"one\ntwo\nthree\n")
    script = '"$1" run -w "$2" -- /bin/sh -c "read x; echo got \\$x"; cat'
    with open(path, "rb") as stdin:
        r = t.run("sh", "-c", script, "sh", t.ward_path, t.workspace(), stdin=stdin, check=True)
    t.equal(r.out, "got one\ntwo\nthree\n")


def test_input_of_a_pipe_is_left_for_the_next(t):
    script = ('printf "one\\ntwo\\n" | { "$1" run -w "$2" -- /bin/sh -c "read x; echo got '
              '\\$x"; cat; }')
    r = t.run("sh", "-c", script, "sh", t.ward_path, t.workspace(), check=True)
    t.equal(r.out, "got one\ntwo\n")


def test_same_pipe_keeps_the_order(t):
    """2>&1 into one pipe: the lines come in the order in which they were written."""
    r = t.ward("run", "--", "/bin/sh", "-c",
               "for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done",
               stderr=subprocess.STDOUT, cwd=t.workspace())
    t.equal(r.out, "".join(f"o{i}\ne{i}\n" for i in range(1, 9)))


def test_same_file_keeps_the_order(t):
    path = files_of(t)
    with open(path, "wb") as stdout:
        t.ward("run", "--", "/bin/sh", "-c",
               "for i in 1 2 3 4 5 6 7 8; do echo o$i; echo e$i >&2; done",
               stdout=stdout, stderr=stdout, cwd=t.workspace())
    t.equal(t.read(path), "".join(f"o{i}\ne{i}\n" for i in range(1, 9)))


def test_socket_is_relayed(t):
    mine, theirs = socket.socketpair()
    process = t.ward_start("run", "--", "/bin/sh", "-c", "read x; echo got $x", stdin=theirs,
                           stdout=theirs,
                           cwd=t.workspace())
    theirs.close()
    mine.sendall(b"hello\n")
    mine.settimeout(10)
    t.equal(mine.recv(100), b"got hello\n")
    process.wait(10)
    t.equal(mine.recv(100), b"", "the end")


def test_null_and_directories_and_devices(t):
    ws = t.workspace()
    t.equal(t.ward("run", "--", "/bin/cat", cwd=ws).rc, 0, "/dev/null")
    for path in (ws, "/", "/dev/zero"):
        fd = os.open(path, os.O_RDONLY)
        r = t.ward("run", "--", "/bin/cat", stdin=fd, cwd=ws)
        os.close(fd)
        t.equal(r.rc, 125, f"standard input {path}")
        t.contains(r.err, "standard input", "the reason")


def test_end_of_input_reaches_the_command(t):
    reader, writer = os.pipe()
    process = t.ward_start("run", "--", "/bin/cat", stdin=reader, cwd=t.workspace())
    os.close(reader)
    os.write(writer, b"text")
    os.close(writer)
    r = t.finish_ward(process, 10)
    t.equal(r.out, "text")


def test_command_ends_while_input_is_open(t):
    reader, writer = os.pipe()
    r = t.ward("run", "--", "/bin/true", stdin=reader, cwd=t.workspace(), timeout=10)
    os.close(reader)
    os.close(writer)
    t.equal(r.rc, 0)


def test_terminal_in_and_out(t):
    r = t.ward_tty("run", "--", "/bin/sh", "-c", "read x; echo got $x", input=b"hello\n",
                   cwd=t.workspace())
    t.equal(r.rc, 0)
    t.contains(r.out, "got hello")


def test_terminal_of_the_caller_is_not_inside(t):
    """The command has a terminal of the sandbox's own, on a devpts of its own, and it is the
    controlling one."""
    r = t.ward_tty("run", "--", "/bin/sh", "-c",
                   "ls /dev/pts; stat -Lc 'on %d' /dev/stdin /dev/stdout /dev/stderr; echo shown "
                   ">/dev/tty",
                   cwd=t.workspace())
    t.equal(r.rc, 0)
    t.equal(r.out.split("on")[0].split(), ["0", "ptmx"], "terminals in view")
    t.contains(r.out, "shown")
    t.check(f"on {os.stat('/dev/pts').st_dev}" not in r.out,
            f"the caller's terminal is inside: {r.out}")


def test_output_after_the_end_is_complete(t):
    """A megabyte written just before the end arrives, through a slow reader too."""
    process = t.ward_start("run", "--", "/usr/bin/head", "-c", "1000000", "/dev/zero",
                           cwd=t.workspace())
    total = 0
    while True:
        part = process.stdout.read(50000)
        if not part:
            break
        total += len(part)
    process.wait(10)
    t.equal(total, 1000000, "bytes")


@serial
def test_ward_is_idle_while_the_command_is(t):
    process = t.ward_start("run", "--", "/bin/sleep", "1.5", cwd=t.workspace())
    process.wait(10)
    with open("/proc/self/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    spent = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    t.check(spent < 0.4, f"{spent:.2f} s of processor time for waiting")


@only_root
def test_file_that_only_root_may_open(t):
    """The caller's right to an open file is enough: the agent's own user could not open it."""
    path = files_of(t, b"secret\n")
    os.chmod(path, 0o400)
    with open(path, "rb") as stdin:
        r = t.ward("run", "--", "/bin/cat", stdin=stdin, cwd=t.workspace())
    t.equal(r.out, "secret\n")
