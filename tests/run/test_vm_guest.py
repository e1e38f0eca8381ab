"""ward-vm-init in a real guest (a Debian kernel under emulation): one boot, then everything that a
command there can see and do."""
import fcntl
import hashlib
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time

from harness import by_turns, vm


PROCESSES = """for p in /proc/[0-9]*; do line=; read -r line < $p/cmdline; [ -n "$line" ] && echo process $p; done
"""
# Only what the shell does itself, and one more process in the end: it may have two.
LOOK_AROUND = PROCESSES + """read -r line < /proc/$$/stat; set -- $line; read -r up rest < /proc/uptime; echo times ${22} $up
read -r how < /proc/$$/personality; echo personality $how
for f in /proc/self/fd/*; do [ -e $f ] && echo fd $f; done	# those of the search itself are gone by now
(:) && echo FORKED-ONCE"""


def greeting(pids=0):
    now = time.time_ns()
    return (vm.frame("TIME", payload=struct.pack("<qII", now // 10**9, now % 10**9, 0)
                     + os.urandom(32))
            + vm.frame("SETUP", payload=struct.pack("<IIQQQ64s", 1000, 1000, pids, 0, 0, b"")))


def hear(t, port, heard, last):
    """All frames up to the one of that kind."""
    frames = []
    while not frames or frames[-1][0] != last:
        found, heard = vm.take_frame(port, heard)
        t.check(found is not None, f"the guest ended: {frames}")
        frames.append(found)
    return frames, heard


def command(text, terminals=0):
    words = b"".join(w.encode() + b"\0" for w in ("/", "sh", "-c", text, "PATH=/bin"))
    return vm.frame("WORDS", 1, 0, words) + vm.frame("START", 1, 0,
                                                     struct.pack("<IIIHHHH", vm.RUN, 3, 1,
                                                                 terminals, 25, 80,
                                                                 0)) + vm.frame("EOF", 1)


def check_rehearsal(t, g):
    """A guest that is left alone before its first command starts something of its own, which nobody
    hears of, and of which nothing is left: no process, no descriptor, and nothing that counts."""
    with socket.socket(socket.AF_UNIX) as port:
        port.settimeout(120)
        port.connect(g.port)
        frames, heard = hear(t, port, b"", "READY")
        time.sleep(1)
        began = time.monotonic()
        port.sendall(greeting(pids=2))
        time.sleep(2)	# nothing tells when it was; it takes a quarter of a second
        port.sendall(command(LOOK_AROUND))
        frames, heard = hear(t, port, heard, "EXIT")
        took = time.monotonic() - began
        # which is made anew, and what waits for a command goes
        port.sendall(greeting() + command(PROCESSES, terminals=7))
        shown, _ = hear(t, port, heard, "EXIT")
    t.equal({f[1] for f in frames}, {1}, f"channels: {frames}")
    out = b"".join(f[3] for f in frames if f[0] == "DATA" and f[2] == 1).decode()
    t.equal(frames[-1][3], bytes(4), f"it ended well: {frames}")
    start, up = next(line.split()[1:] for line in out.split("\n") if line.startswith("times "))
    age = float(up) - int(start) / 100
    t.check(age < took + 0.5, "what the command runs in was made before the greeting: nothing was "
            f"rehearsed since; {age} s old, greeted {took} s ago")
    t.equal((out.count("process "), "process /proc/1\n" in out), (2, True),
            f"pid 1 and the command, and nobody else: {out}")
    t.equal([line for line in out.split("\n") if line.startswith("fd ")],
            [f"fd /proc/self/fd/{n}" for n in (0, 1, 2)], "its descriptors")
    t.check("personality 00000000\n" in out, f"it lies where chance puts it: {out}")
    t.check("FORKED-ONCE" in out, f"it has its two processes: {frames}")
    t.equal(b"".join(f[3] for f in shown if f[0] == "DATA").count(b"process "), 3,
            f"pid 1, the leader of the terminal's session, the command: {shown}")
    g.first = False


def sh(g, text, *options, **more):
    return g.run(*options, command=("sh", "-c", text), **more)


def check_streams(t, g):
    r = sh(g, "echo OUT; echo ERR >&2; exit 7")
    t.equal((r.rc, r.out, r.err), (7, "OUT\n", "ERR\n"), "streams and an exit code")
    data = os.urandom(700000)
    r = g.run(command=("cat",), input=data)
    t.equal((r.rc, hashlib.sha256(r.out_bytes).hexdigest()), (0, hashlib.sha256(data).hexdigest()),
            "bytes there and back")
    r = g.run(command=("NO-SUCH-PROGRAM",))
    t.check(r.rc == 127 and "NO-SUCH-PROGRAM" in r.err, f"a program that is not there: {r}")
    t.equal(g.run(command=("/etc/passwd",)).rc, 126, "what is no program")
    r = g.run(command=("/" + "x" * 100000,))
    t.check(r.rc == 126 and len(r.err) < 2000, f"a name that fills a pipe: {r.rc} {r.err[-100:]}")
    t.equal(sh(g, "kill -TERM $$").rc, -signal.SIGTERM, "the end by a signal")
    r = t.run("sh", "-c", '"$@" | head -n 2', "sh", *g.argv(command=("yes", "ON-AND-ON")),
              env={"PATH": "/bin:/usr/bin"}, cwd="/", timeout=60)
    t.equal(r.out, "ON-AND-ON\n" * 2, "a reader that goes away")


def check_rights(t, g):
    r = sh(g, "id -u; id -g; grep -E '^(Cap|NoNew)' /proc/self/status; ls /dev; cat "
           "/proc/1/environ; ls /proc/1/root/; mount -t tmpfs x /tmp; "
              "hostname; date +%s; cat /sys/class/net/lo/flags")
    t.check(r.out.startswith("1000\n1000\n") and r.out.count("\t0000000000000000\n") == 5
            and "NoNewPrivs:\t1" in r.out, f"ids and rights: {r.out}")
    t.check("vda" not in r.out and "vdb" not in r.out and "vport" not in r.out
            and "mem\n" not in r.out, f"no device of the machine: {r.out}")
    t.check(r.err.count("ermission denied") == 3, f"pid 1 and mounts: {r.err}")
    now = int(next(line for line in r.out.split("\n") if len(line) == 10 and line.isdigit()))
    t.check(abs(now - time.time()) < 60 and "0x9" in r.out, f"the clock, and loopback: {r.out}")


def check_limits(t, g):
    r = sh(g, "i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; echo NO-LIMIT",
           "--pids", "20")
    t.check("fork" in r.err and "NO-LIMIT" not in r.out, f"processes: {r}")
    t.equal(sh(g, "ulimit -n", "--files", "77").out, "77\n", "open files")
    r = sh(g, "dd if=/dev/zero of=/dev/shm/x bs=1M count=100; echo NO-LIMIT", "--memory",
           str(48 << 20))
    t.check("NO-LIMIT" not in r.out or "Killed" in r.err, f"memory: {r}")
    r = sh(g, "ps")
    t.check("sleep" not in r.out, f"nothing of an earlier command goes on: {r.out}")


def check_trees(t, g):
    large = os.urandom(3_000_001)
    ws = t.workspace({"same": "SAME\n", "edited": "BEFORE\n", "removed": "x\n", "dir/gone/x": "x\n",
                      "turned/x": "x\n"})
    with open(f"{ws}/large", "wb") as f:
        f.write(large)
    os.symlink("same", f"{ws}/link")
    os.utime(f"{ws}/same", ns=(0, 1500000000123456789))
    os.chmod(f"{ws}/same", 0o750)
    t.write(ws, {"hidden": "SECRET-OF-THE-HOST\n"})
    if t.as_user != "root":
        os.chmod(f"{ws}/hidden", 0)
    readonly = t.workspace({"lib": "LIB\n"})
    before = os.stat(f"{ws}/same")
    r = sh(g, f"cd {ws}; cat large large > larger; rm large; stat -c '%a %Y' same; readlink link; "
           "cat edited hidden; echo AFTER > edited; rm -r removed dir/gone turned; echo f > "
           "turned; "
              "mkdir -p new/deep; echo N > new/deep/n; ln -sf /nowhere link; chmod 700 dir; touch "
           f"-d @1600000000 new/deep/n; echo LOST > {readonly}/lib; "
              "truncate -s 300M holes; echo END >> holes", "--tree", ws, "--tree-ro", readonly)
    t.equal(r.rc, 0, f"{r}")
    t.check(r.out.startswith("750 1500000000\nsame\nBEFORE\n"), f"the tree inside: {r}")
    t.check(t.as_user == "root" or ("SECRET" not in r.out and "ermission" in r.err),
            f"what cannot be read outside: {r}")
    t.equal((t.read(ws, "edited"), t.read(ws, "new/deep/n"), t.read(ws, "turned"),
             t.read(readonly, "lib")), ("AFTER\n", "N\n", "f\n", "LIB\n"), "what came back")
    t.equal((os.readlink(f"{ws}/link"), os.stat(f"{ws}/dir").st_mode & 0o777,
             os.stat(f"{ws}/new/deep/n").st_mtime), ("/nowhere", 0o700, 1600000000), "how")
    t.equal(sorted(os.listdir(ws)), ["dir", "edited", "hidden", "holes", "larger", "link", "new",
                                     "same", "turned"], "names")
    with open(f"{ws}/larger", "rb") as f:
        t.check(f.read() == large + large, "what went over the device, there and back")
    after, holes = os.stat(f"{ws}/same"), os.stat(f"{ws}/holes")
    t.equal((after.st_ino, after.st_ctime_ns), (before.st_ino, before.st_ctime_ns),
            "what did not change was not touched")
    t.check(holes.st_size == (300 << 20) + 4 and holes.st_blocks < 1000,
            f"holes stay holes: {holes}")


def read_until(t, fd, words, timeout=30):
    """What the terminal shows until the words are there."""
    out, end = b"", time.monotonic() + timeout
    while words not in out:
        if time.monotonic() > end:
            t.fail(f"{words} did not come: {out}")
        if select.select([fd], [], [], 0.2)[0]:
            out += os.read(fd, 65536)
    return out


def check_terminal(t, socket_path):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir("/")
        os.execve(vm.driver(t), [vm.driver(t), "exec", socket_path, "--", "sh"],
                  {"PATH": "/bin", "PS1": "READY> "})
    read_until(t, fd, b"READY> ")
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 123, 0, 0))
    os.write(fd, b"while ! stty size | grep '41 123'; do :; done; tty\n")
    t.check(b"/dev/pts/" in read_until(t, fd, b"/dev/pts/"), "its size and name")
    os.write(fd, b"sleep 1000\n")
    read_until(t, fd, b"sleep 1000")
    time.sleep(0.3)
    os.write(fd, b"\x03")
    read_until(t, fd, b"READY> ")
    os.write(fd, b"sh -c 'kill -STOP $PPID; echo GOES-ON'\n")	# the session's command itself stops
    os.waitpid(pid, os.WUNTRACED)
    os.kill(pid, signal.SIGCONT)
    read_until(t, fd, b"GOES-ON\r\n")
    os.write(fd, b"exit 9\n")
    while select.select([fd], [], [], 30)[0]:
        try:
            if not os.read(fd, 65536):
                break
        except OSError:
            break
    t.equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 9, "the end of a shell")
    os.close(fd)


def check_exec(t, g):
    socket_path = os.path.join(t.fresh_dir("sock"), "s")
    argv = g.argv("--exec-socket", socket_path,
                  command=("sh", "-c",
                           "trap 'echo LAST-WORDS; exit 3' TERM; while :; do sleep 0.1; done"))
    first = t.popen(argv, env={"PATH": "/bin"}, cwd="/")
    ask = [vm.driver(t), "exec", socket_path, "--"]
    several = [t.popen([*ask, "sh", "-c", f"cat; exit {i}"], stdin=subprocess.PIPE,
                       env={"PATH": "/bin"}, cwd="/") for i in range(5)]
    for i, process in enumerate(several):
        r = t.finish(process, ask, input=b"INPUT%d\n" % i, timeout=60)
        t.equal((r.rc, r.out), (i, f"INPUT{i}\n"), "several at one time")
    lonely = t.popen([*ask, "sleep", "7777"], env={"PATH": "/bin"}, cwd="/")
    while "7777" not in t.run(*ask, "ps", env={"PATH": "/bin"}, cwd="/").out:
        time.sleep(0.1)
    lonely.kill()
    while "7777" in t.run(*ask, "ps", env={"PATH": "/bin"}, cwd="/").out:
        time.sleep(0.1)	# it ends with who asked for it; the test's time limit says otherwise
    r = t.run(vm.driver(t), "copy", socket_path, "put", "/tmp", "name", cwd="/",
              input=vm_copy("FILE-PUT\n"))
    t.equal(r.rc, 0, f"a copy into it: {r}")
    t.equal(t.run(*ask, "cat", "/tmp/name", env={"PATH": "/bin"}, cwd="/").out, "FILE-PUT\n",
            "what was put")
    r = t.run(vm.driver(t), "copy", socket_path, "get", "/tmp/name", cwd="/")
    t.check(b"FILE-PUT\n" in r.out_bytes and r.out_bytes.startswith(b"wcp1"),
            f"a copy out of it: {r}")
    check_terminal(t, socket_path)
    first.send_signal(signal.SIGTERM)
    r = t.finish(first, argv, timeout=60)
    t.equal((r.rc, r.out), (3, "LAST-WORDS\n"), "a signal")


def vm_copy(content):
    """Records of ward cp: one file."""
    head = struct.pack("<IHHIIQq", 0x31706377, 2, 0o644, 0, 0, len(content), 0)
    return head + content.encode() + struct.pack("<IHHIIQq", 0x31706377, 5, 0, 0, 0, 0, 0)


@by_turns
def test_guest(t):
    g = vm.RealGuest(t)
    check_rehearsal(t, g)
    check_streams(t, g)
    check_rights(t, g)
    check_limits(t, g)
    check_trees(t, g)
    check_exec(t, g)


test_guest.needs = ("emulator", "unsanitized")
test_guest.timeout = 180
