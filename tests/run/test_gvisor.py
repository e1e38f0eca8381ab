"""The gvisor engine: gVisor's kernel inside a native sandbox. What every engine does is in
test_conformance.py; here is what is gVisor's own."""
import json
import os
import random
import signal
import time

from harness import by_turns, needs, slow, timeout
from harness.bare import bare
from harness.boxes import box, clean, supervisor
from harness.gvisor import other_version, usable
from harness.world import World, policy

GVISOR = ("--isolation", "gvisor")
LOOK = r"""
import json, os, platform
def tries(action):
    try:
        return repr(action())
    except OSError as error:
        return error.strerror
print(json.dumps({
    "release": platform.release(), "version": open("/proc/version").read(),
    "ids": [os.getuid(), os.getgid(), os.stat(".").st_uid],
    "caps": [l.split()[1] for l in open("/proc/self/status") if l.startswith("CapEff")],
    "cwd": os.getcwd(),
    "odd": os.environb[b"ODD"].decode("latin-1"), "own": sorted(os.listdir("/.ward")),
    "processes": [p for p in os.listdir("/proc") if p.isdigit()],
    "hidden": tries(lambda: open("secret.key").read()),
    "protected": tries(lambda: open(".git/config", "a").write("x")),
    "unlinked": tries(lambda: os.unlink("secret.key")),
    "replaced": tries(lambda: os.rename("look.py", ".git/config")),
    "usr": tries(lambda: open("/usr/bin/MARKERGVISOR", "w")),
    "state": tries(lambda: os.listdir("/.ward/gvisor")),
    "proc": tries(lambda: os.listdir("/.ward/proc")), "mem": tries(lambda: open("/dev/mem", "rb")),
    "wrote": open("made", "w").write("from inside\n"),
}))
"""
SOCKETS = r"""
import socket
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/s"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("/tmp/s"); c.sendall(b"unix"); print(
    s.accept()[0].recv(9).decode())
"""


def test_another_kernel_with_the_same_files(t):
    """gVisor's kernel, the agent's id, no capability; the workspace is the real one, what is hidden
    or protected stays so, nothing of the runner's is in view."""
    about = usable(t)
    ws = t.git_repo({"secret.key": "MARKERSECRET", "look.py": LOOK, "unix.py": SOCKETS,
                     ".wardignore": ""})
    r = t.ward("run", *GVISOR, "--set", "filesystem.hide=[secret.key]", "--env", "ODD", "--",
               "python3", "look.py", cwd=ws, report=True, env={"ODD": "\udcff=\udcfe \n'"})
    t.equal(r.rc, 0, r.err)
    got = json.loads(r.out)
    t.equal((got["release"], got["ids"], got["caps"], got["cwd"]),
            ("4.4.0", [1000, 1000, 1000], ["0" * 16], ws), "the kernel")
    t.check(os.uname().release not in got["version"], got["version"])
    t.equal(got["odd"], "\xff=\xfe \n'", "bytes of a variable")
    t.equal((got["own"], len(got["processes"])), (["io", "start", "ward-gvisor"], 2),
            "what is in view")
    t.check("MARKERSECRET" not in got["hidden"], got["hidden"])
    t.check(got["protected"] in ("Permission denied", "Read-only file system")
            and got["usr"] in ("Permission denied", "Read-only file system"), got)
    t.equal((got["state"], got["proc"], got["mem"]), ("No such file or directory",) * 3,
            "what must not be there")
    t.equal((t.read(ws, "secret.key"), t.read(ws, "look.py")), ("MARKERSECRET", LOOK),
            f"a mount point was removed: {got}")
    t.equal(t.read(ws, "made"), "from inside\n", "the workspace")
    t.equal(os.stat(os.path.join(ws, "made")).st_uid, os.stat(ws).st_uid, "whose file it is")
    t.equal(r.report["engine"], "gvisor")
    t.check(("platform " + r.report["wall"].split()[-1]) in about, (r.report["wall"], about))
    r = t.ward("run", *GVISOR, "--set", "gvisor.platform=ptrace", "--", "sh", "-c",
               "dmesg | head -1; git log --oneline | wc -l; python3 unix.py", cwd=ws, report=True)
    t.check(r.rc == 0 and "Starting gVisor" in r.out and r.out.split()[-2:] == ["1", "unix"],
            (r.out, r.err))
    t.contains(r.report["wall"], "platform ptrace")


def test_platform_kvm_only_where_it_is_seen_to_work(t):
    """A KVM that opens and emulates is not taken, by name refused with the way out; a runsc that
    nobody knows gets no KVM at all. Where KVM works, make test-gvisor-kvm has run it."""
    about = usable(t)
    ws = t.workspace({"runsc": "#!/bin/sh\nexec /usr/bin/runsc \"$@\"\n"})
    os.chmod(os.path.join(ws, "runsc"), 0o755)
    r = t.ward("run", *GVISOR, "--set", "gvisor.platform=kvm", "--", "true", cwd=ws,
               env={"WARD_RUNSC": os.path.join(ws, "runsc")})
    t.check(r.rc == 125 and "gvisor.platform: kvm: ward does not know which KVM calls " in r.err
            and "gvisor.platform: auto" in r.err, f"an unknown runsc: {r}")
    r = t.ward("plan", "--full", *GVISOR, "--set", "gvisor.platform=systrap", "--", "true", cwd=ws)
    t.check(r.rc == 0 and "/dev/kvm" not in r.out, f"another platform has no device: {r}")
    if ", platform kvm" in about:
        return
    t.contains(about, "; not kvm: ")
    r = t.ward("plan", "--full", *GVISOR, "--", "true", cwd=ws)
    t.check(r.rc == 0 and "/dev/kvm" not in r.out and "platform systrap" in r.out,
            f"taken by itself: {r}")
    r = t.ward("run", *GVISOR, "--set", "gvisor.platform=kvm", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "gvisor.platform: kvm: " in r.err and "gvisor.platform: auto" in r.err,
            f"by name: {r}")
    if os.path.exists("/sys/module/kvm_pvm"):
        t.contains(r.err, "kvm_pvm, which emulates")


@needs("unsanitized")
def test_ends_and_streams(t):
    """Exit codes, signals and streams are the command's; a file that is appended to keeps what was
    in it."""
    usable(t)
    ws = t.workspace({"in": "first\nsecond\n"})
    r = t.ward("run", *GVISOR, "--", "sh", "-c", "kill -SEGV $$", cwd=ws, report=True)
    t.equal((r.rc, r.report["exit"]), (139, {"code": 139, "signal": 11}), r.err)
    r = t.ward("run", *GVISOR, "--", "sh", "-c", "exit 143", cwd=ws, report=True)
    t.equal((r.rc, r.report["exit"]), (143, {"code": 143, "signal": None}), r.err)
    r = t.ward("run", *GVISOR, "--", "no-such-program", cwd=ws)
    t.check(r.rc == 127 and "cannot start no-such-program" in r.err, r)
    out = os.path.join(ws, "out")
    with open(os.path.join(ws, "in")) as stdin, open(out, "w") as stdout:
        stdin.seek(6)
        os.lseek(stdin.fileno(), 6, os.SEEK_SET)
        stdout.write("before\n")
        stdout.flush()
        t.equal(t.ward("run", *GVISOR, "--", "sh", "-c", "cat; echo error >&2; echo end", cwd=ws,
                       stdin=stdin, stdout=stdout, stderr=stdout).rc, 0)
    t.equal(t.read(out), "before\nsecond\nerror\nend\n", "one file for all")
    script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    p = t.ward_start("run", *GVISOR, "--", "sh", "-c", script, cwd=ws)
    t.equal(p.stdout.readline(), b"ready\n")
    p.send_signal(signal.SIGTERM)
    r = t.finish_ward(p)
    t.equal((r.rc, r.out), (5, "caught\n"), r.err)


# no shell with a trap: bash itself forgets an interrupt that comes just when a command of its loop
# has ended by itself
INTERRUPTED = r"""
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print(os.get_terminal_size(), "ready", flush=True)
signal.sigwait({signal.SIGINT})
print("INTERRUPTED", flush=True)
os._exit(7)
"""


def test_terminal(t):
    """A terminal inside: its size, and ctrl-C for the program in the foreground."""
    usable(t)
    ws = t.workspace({"wait.py": INTERRUPTED})
    r = t.ward_tty("run", *GVISOR, "--", "python3", "wait.py", cwd=ws, input=b"\x03",
                   after=b"ready", size=(33, 99))
    t.check(r.rc == 7 and "columns=99, lines=33" in r.out and "INTERRUPTED" in r.out, r)


@needs("unsanitized")
def test_network_is_the_gateways(t):
    """curl and git speak through the gateway; a name that is not listed, an address and UDP do
    not."""
    usable(t)
    world = World(t)
    ws = t.workspace()
    script = ("curl -s --max-time 10 --cacert ca.pem https://web.test/ -o got; echo web $? $(head "
              "-c 20 got | wc -c); "
              "curl -s --max-time 10 https://evil.test/; echo evil $?; curl -s --max-time 10 "
              "http://192.0.2.53:53/; echo address $?; "
              "python3 -c \"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
              "s.connect(('8.8.8.8', 53)); s.send(b'x'); s.recv(1)\" 2>&1 | tail -1")
    t.write(ws, {"ca.pem": open(os.path.join(world.certificates, "ca.pem")).read()})
    r = world.ward("run", *GVISOR, "-p", policy(t, ["web.test"]), "--", "sh", "-c", script, cwd=ws,
                   report=True, timeout=60)
    lines = r.out.splitlines()
    t.equal((r.rc, lines[:3]), (0, ["web 0 20", "evil 6", "address 7"]), r.out + r.err)
    t.contains(lines[3], "Connection refused", "UDP")
    t.check(any("evil.test" in json.dumps(d) for d in r.report["denials"]), r.report["denials"])


def left_of_execs(t, run):
    """The runner's own files of commands beside the first."""
    with t.root():
        pid = min(processes(t, supervisor(t, run), 2)["/.ward/ward-gvisor run"])
        directory = f"/proc/{pid}/root/.ward/gvisor"
        return [n for n in os.listdir(directory)
                if n.startswith("exec.")] + os.listdir(directory + "/start")


def test_left_running(t):
    """A sandbox left running: commands beside its own, what is killed outside ends inside, review
    keeps changes aside."""
    usable(t)
    ws = t.workspace({"a": "old\n"})
    run = box(t, "--review", *GVISOR, "--", "sleep", "1000", cwd=ws)
    r = t.ward("exec", "-i", run, "--", "sh", "-c", "cat; echo new > a; uname -r; exit 3",
               input="in\n")
    t.equal((r.rc, r.out), (3, "in\n4.4.0\n"), r.err)
    for what in ("client", "runner"):
        p = t.ward_start("exec", run, "--", "sh", "-c", "sleep 888 & echo begun; sleep 888")
        t.equal(p.stdout.readline(), b"begun\n")
        t.wait_until(lambda: t.ward("exec", run, "--", "pgrep", "-fx", "sleep 888").rc == 0, 20,
                     "pgrep does not find it")
        if what == "client":
            p.kill()
        else:
            with t.root():
                os.kill(min(processes(t, supervisor(t, run), 2)["/.ward/ward-gvisor exec"]),
                        signal.SIGKILL)
        p.wait()
        t.wait_until(lambda: t.ward("exec", run, "--", "pgrep", "-fx", "sleep 888").rc == 1, 20,
                     f"a command outlived its {what}")
        t.wait_until(lambda: not left_of_execs(t, run), 20,
                     f"files of a command without its {what}")
    t.equal(t.ward("stop", run).rc, 0)
    t.equal(t.read(ws, "a"), "old\n", "the workspace under review")
    t.equal(t.ward("diff", run, cwd=ws).out, "M  a\n", "the review")
    t.equal(t.ward("discard", run, cwd=ws).rc, 0)
    clean(t)


FORGE = r"""
import os, sys, time
io = "/.ward/io"
def find():
    yield from (os.path.join(io, name) for name in os.listdir(io))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for fd in range(3, 9):
            yield "/proc/%s/fd/%d" % (pid, fd)
def touch(path):
    try:
        if path.startswith("/proc") and not os.readlink(path).startswith(io):
            return
        if sys.argv[1] == "remove":
            os.unlink(path)
        elif sys.argv[1] == "write":
            os.write(fd := os.open(path, os.O_WRONLY), b"be9")
            os.close(fd)
        elif sys.argv[1] == "empty":
            os.truncate(path, 0)
        elif sys.argv[1] == "pipe":
            os.unlink(path)
            os.mkfifo(path)
    except OSError:
        pass
for name in ("run", "run.told"):
    try:
        open(os.path.join(io, name), "w").write("be9")
    except OSError:
        pass
if sys.argv[1] == "fill":
    try:
        for i in range(10000):
            open(os.path.join(io, "x%d" % i), "w").write("x" * 65536)
    except OSError:
        pass
print("ready", flush=True)
end = time.time() + float(sys.argv[2])
while time.time() < end:
    if sys.argv[1] == "fill":
        time.sleep(0.1)
    else:
        for path in find():
            touch(path)
sys.exit(5)
"""


@by_turns
@needs("unsanitized")
@timeout(180)
def test_what_is_told_cannot_be_forged(t):
    """A command that removes, writes, empties, replaces or fills what it finds in /.ward/io: its
    own end and those of others beside it are told as they were, and nothing waits."""
    usable(t)
    ws = t.workspace({"forge.py": FORGE})
    for how in ("remove", "write", "empty", "pipe", "fill"):
        r = t.ward("run", *GVISOR, "--", "python3", "forge.py", how, "0.3", cwd=ws, report=True)
        t.equal((r.rc, r.report["exit"]), (5, {"code": 5, "signal": None}), f"{how}: {r.err}")
        run = box(t, *GVISOR, "--", "sh", "-c", f"python3 forge.py {how} 1000 > out", cwd=ws)
        t.wait_until(lambda: os.path.exists(os.path.join(ws, "out"))
                     and t.read(ws, "out") == "ready\n", 20, "it does not begin")
        for script, rc in (("exit 3", 3), ("exit 0", 0), ("kill -9 $$", 137), ("exit 128", 128)):
            begin = time.monotonic()
            r = t.ward("exec", run, "--", "sh", "-c", f"echo in; {script}", input="")
            took = time.monotonic() - begin
            t.equal((r.rc, r.out), (rc, "in\n"), f"{how}: {script}: {r.err}")
            t.check(took < 15, f"{how}: {script}: {took} s")
        t.equal(t.ward("stop", run).rc, 0)
        os.unlink(os.path.join(ws, "out"))
    r = t.ward("run", *GVISOR, "--", "sh", "-c", "touch /.ward/start/x; df -k /.ward/io | tail -1",
               cwd=ws)
    t.check("Read-only file system" in r.err and r.out.split()[1:2] == ["1024"], r)
    clean(t)


def test_runtime_and_notes(t):
    """WARD_RUNSC is named where it is wrong; plan and report say what gVisor does not hold to."""
    usable(t)
    ws = t.workspace()
    for value in ("./runsc", "/nonexistent/runsc"):
        r = t.ward("run", *GVISOR, "--", "true", cwd=ws, env={"WARD_RUNSC": value})
        t.check(r.rc == 125 and "WARD_RUNSC" in r.err and value in r.err, r)
    r = t.ward("run", *GVISOR, "--set", "process.syscalls=strict", "--", "true", cwd=ws,
               report=True)
    t.equal(r.rc, 0, r.err)
    for word in ("process.syscalls: strict is not in force", "masked proc: "):
        t.check(any(word in n for n in r.report["notes"]), r.report["notes"])
    r = t.ward("run", *GVISOR, "--", "true", cwd=ws, report=True)
    t.check(not any("process.syscalls" in n for n in r.report["notes"]), r.report["notes"])


@needs("unsanitized")
def test_small_limits(t):
    """What is too little for gVisor itself is refused with place, reason and remedy before anything
    starts; the least is enough, a tight memory limit does not disturb its start, and one file does
    not pass the disk limit."""
    usable(t)
    ws = t.workspace()
    rows = (("resources.memory_limit", "16Mi", "32Mi", "--memory 32Mi"),
            ("resources.pids_limit", "63", "64", "--pids 64"),
            ("resources.open_files", "319", "320", "open_files=320"))
    for field, little, enough, remedy in rows:
        r = t.ward("run", *GVISOR, "--set", f"{field}={little}", "--", "true", cwd=ws)
        t.check(r.rc == 125 and f"{field}: " in r.err and "gvisor" in r.err and remedy in r.err
                and "goroutine" not in r.err, r)
        r = t.ward("run", *GVISOR, "--set", f"{field}={enough}", "--", "sh", "-c",
                   "ls / > /dev/null; echo fine", cwd=ws)
        t.equal((r.rc, r.out), (0, "fine\n"), f"{field}={enough}: {r.err}")
    for _ in range(6):
        r = t.ward("run", *GVISOR, "--memory", "96M", "--", "sh", "-c",
                   "ls / > /dev/null; echo fine", cwd=ws)
        t.equal((r.rc, r.out), (0, "fine\n"), r.err)
    r = t.ward("run", *GVISOR, "--memory", "96M", "--", "python3", "-c",
               "b = bytearray(300 << 20); import time; time.sleep(30)", cwd=ws)
    t.check(r.rc == 137 and "more memory than allowed" in r.err, r)
    r = t.ward("run", *GVISOR, "--disk", "16M", "--", "fallocate", "-l", "200M", "big", cwd=ws)
    t.check(r.rc != 0, r)
    t.check(os.stat(os.path.join(ws, "big")).st_blocks * 512 < 64 << 20,
            "one call passed the limit")


THREADS = r"""
import ctypes, os, sys, threading, time
if "nested" in sys.argv:
    # a user namespace of gVisor's, where limits of processes do not bind
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
threading.stack_size(65536)
started = 0
try:
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
print("started", started, flush=True)
time.sleep(1)
os._exit(0)
"""


@by_turns
@needs("unsanitized")
def test_threads_of_the_command_count(t):
    """The limit of processes is for the command's threads, which are none of the host's; reaching
    it is reported, and who gets round it is stopped."""
    usable(t)
    ws = t.workspace({"threads.py": THREADS})
    r = t.ward("run", *GVISOR, "--pids", "128", "--", "python3", "threads.py", "4000", cwd=ws,
               report=True)
    t.check(r.rc == 0 and 100 < int(r.out.split()[1]) < 128, r)
    t.check(r.report["limits"]["pids"]["hit"] and "limit reached" in r.err, r)
    r = t.ward("run", *GVISOR, "--pids", "128", "--", "python3", "threads.py", "4000", "nested",
               cwd=ws, report=True)
    t.check(r.rc == 137 and r.report["limits"]["pids"]["hit"] and "4000" not in r.out, r)
    # the most that is allowed beside the program's first thread and ward's own
    for count in (100, 126):
        r = t.ward("run", *GVISOR, "--pids", "128", "--", "python3", "threads.py", str(count),
                   cwd=ws, report=True)
        t.check(r.rc == 0 and r.out == f"started {count}\n"
                and not r.report["limits"]["pids"]["hit"], r)


HOGS = """
import os, time
for i in range(12):
    if os.fork() == 0:
        block = b"x" * (64 << 20)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
"""


@needs("unsanitized")
def test_peak_of_memory(t):
    """Where the watch holds the memory limit, what ended the run is reported with a peak near the
    limit: no page counts twice."""
    usable(t)
    r = t.ward("run", *GVISOR, "--memory", "256Mi", "--", "python3", "-c", HOGS, cwd=t.workspace(),
               report=True, wrap=bare(t))
    t.check(r.rc == 137 and r.report["limits"]["memory"]["hit"]
            and "more memory than allowed" in r.err, r)
    t.check(200 << 20 < r.report["memory_peak_bytes"] < 450 << 20,
            f"a peak of {r.report['memory_peak_bytes'] >> 20} MiB at a limit of 256")


@needs("unsanitized")
def test_stats_are_the_sandboxs_own(t):
    """What others write on the same file system is not the sandbox's, and its processes are the
    command's."""
    usable(t)
    ws, beside = t.workspace(), t.workspace()
    for engine in ((), GVISOR):
        run = box(t, *engine, "--", "sh", "-c",
                  "head -c 30M /dev/zero > mine; sleep 100 & sleep 100 & sleep 100", cwd=ws)
        with open(os.path.join(beside, "others"), "wb") as f:
            f.write(bytes(80 << 20))
            f.flush()
            os.fsync(f.fileno())

        def numbers():
            return json.loads(t.ward("stats", "--json", run).out)["sandboxes"][0]
        t.wait_until(lambda: 30 << 20 <= numbers()["disk_bytes"] < 40 << 20, 20,
                     f"{engine}: {numbers()}")
        t.wait_until(lambda: 4 <= numbers()["pids"] <= 8, 20, f"{engine}: {numbers()}")
        os.unlink(os.path.join(beside, "others"))
        t.ward("rm", "-f", run)
        os.unlink(os.path.join(ws, "mine"))


# each open hands a descriptor from the gofer to the kernel
OPEN = r"""
import time
print("ready", flush=True)
end = time.monotonic() + 4
while time.monotonic() < end:
    for i in range(20):
        open("f%d" % i, "a").close()
print("fine")
"""


@needs("unsanitized")
def test_few_descriptors_of_its_own(t):
    """The limit that ward was started with is for everything inside as well: it is named, where
    gVisor's kernel would end with a stack of Go's."""
    usable(t)
    ws = t.workspace()
    r = t.ward("run", *GVISOR, "--", "echo", "started", cwd=ws, wrap=("prlimit", "--nofile=256"))
    t.check(r.rc == 125 and "ulimit -Hn" in r.err and "remedy" in r.err and not r.out, r)
    r = t.ward("run", *GVISOR, "--", "echo", "started", cwd=ws, wrap=("prlimit", "--nofile=320"))
    t.equal((r.rc, r.out), (0, "started\n"), r.err)


@by_turns
@needs("unsanitized")
def test_disk_limit(t):
    """One write of a command, or of one beside it, does not pass the disk limit; many files end the
    run; what others write on the same file system does not, whatever gVisor's processes hand each
    other meanwhile."""
    usable(t)
    ws = t.workspace()
    write = ("dd", "if=/dev/zero", "of=big", "bs=60M", "count=1")
    for beside in (False, True):
        if beside:
            run = box(t, *GVISOR, "--disk", "16M", "--", "sleep", "1000", cwd=ws)
            r = t.ward("exec", run, "--", *write)
            t.ward("rm", "-f", run)
        else:
            r = t.ward("run", *GVISOR, "--disk", "16M", "--", *write, cwd=ws)
        t.check(r.rc != 0, r)
        size = os.stat(os.path.join(ws, "big")).st_size
        t.check(0 < size <= 18 << 20,
                f"one write passed the limit, or did nothing: {size} bytes, {r}")
        os.unlink(os.path.join(ws, "big"))
    r = t.ward("run", *GVISOR, "--disk", "16M", "--", "sh", "-c",
               "for i in $(seq 30); do head -c 2M /dev/zero > f$i; sleep 0.05; done; sleep 30",
               cwd=ws)
    t.check(r.rc == 137 and "disk" in r.err, r)
    beside = t.workspace()
    p = t.ward_start("run", *GVISOR, "--disk", "16M", "--", "python3", "open.py",
                     cwd=t.workspace({"open.py": OPEN}))
    t.equal(p.stdout.readline(), b"ready\n")
    with open(os.path.join(beside, "others"), "wb") as f:
        for _ in range(6):
            f.write(os.urandom(10 << 20))
            f.flush()
            os.fsync(f.fileno())
    r = t.finish_ward(p)
    os.unlink(os.path.join(beside, "others"))
    t.equal((r.rc, r.out), (0, "fine\n"), r.err)


def processes(t, pid, words=1):
    """Name, as so many words -> pids of everything beneath a process."""
    found, beneath = {}, {pid}
    rows = []
    with t.root():
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    rows.append((int(name), int(f.read().rsplit(b")", 1)[1].split()[1])))
            except OSError:
                pass
        for _ in range(9):
            beneath |= {child for child, parent in rows if parent in beneath}
        for child in beneath:
            try:
                with open(f"/proc/{child}/cmdline", "rb") as f:
                    found.setdefault(b" ".join(f.read().split(b"\0")[:words]).decode(),
                                     []).append(child)
            except OSError:
                pass
    return found


def kill(t, pid, name, later=0):
    """Whether there was such a process beneath that one."""
    with t.root():
        for victim in processes(t, pid).get(name, [])[:1]:
            time.sleep(later)
            try:
                os.kill(victim, signal.SIGKILL)
                return True
            except ProcessLookupError:
                pass
    return False


@needs("unsanitized")
def test_another_version(t):
    """A runsc that ward does not know starts gVisor by itself: a command, signals, commands beside
    it, their ends."""
    usable(t)
    env, ws = other_version(t), t.workspace()
    r = t.ward("run", *GVISOR, "--", "sh", "-c", "uname -r; touch /.ward/start/x; exit 3", cwd=ws,
               env=env)
    t.equal((r.rc, r.out), (3, "4.4.0\n"), r.err)
    t.contains(r.err, "Read-only file system")
    r = t.ward("run", *GVISOR, "--", "uname", "-r", cwd=ws, env=other_version(t, "20240729"))
    t.equal((r.rc, r.out), (0, "4.4.0\n"), f"a script around a version that ward knows: {r.err}")
    run = box(t, *GVISOR, "--", "sleep", "1000", cwd=ws, env=env)
    for script, rc in (("exit 4", 4), ("kill -9 $$", 137)):
        r = t.ward("exec", "-i", run, "--", "sh", "-c", f"cat; {script}", input="in\n")
        t.equal((r.rc, r.out), (rc, "in\n"), r.err)
    t.check("/usr/bin/runsc" in processes(t, supervisor(t, run)), "it was not started by runsc")
    t.equal(t.ward("stop", run).rc, 0)
    clean(t)


@needs("unsanitized")
@timeout(120)
def test_any_of_its_processes_killed(t):
    """kill -9 of gVisor's kernel, its gofer and the runner (and runsc, where that starts them),
    while the command runs and while it starts: the run ends and says so, nothing stays."""
    usable(t)
    ws = t.workspace()
    for victim in ("runsc-sandbox", "runsc-gofer", "/.ward/ward-gvisor", "/usr/bin/runsc"):
        env = other_version(t) if victim == "/usr/bin/runsc" else None
        for wait_for_command in (True, False):
            p = t.ward_start("run", *GVISOR, "--", "sh", "-c", "echo ready; exec sleep 1000",
                             cwd=ws, env=env)
            if wait_for_command:
                t.equal(p.stdout.readline(), b"ready\n")
            else:
                time.sleep(random.random() / 5)
            t.wait_until(lambda: kill(t, p.pid, victim), 20, f"there is no {victim}")
            r = t.finish_ward(p)
            t.check(r.rc in (137, 125), f"{victim}: {r}")
            t.check(victim == "/.ward/ward-gvisor" or "gvisor: " in r.err,
                    f"{victim}: nothing was said: {r}")


@needs("unsanitized")
@slow
@timeout(400)
def test_gofer_killed_while_it_starts(t):
    """The gofer killed at random moments of the start, sixty times: gVisor's kernel may wait for it
    without end, the run does not."""
    usable(t)
    ws = t.workspace()
    for i in range(60):
        p = t.ward_start("run", *GVISOR, "--", "sh", "-c", "echo ready; exec sleep 1000", cwd=ws)
        t.wait_until(lambda: kill(t, p.pid, "runsc-gofer", random.random() / 8), 20,
                     "there is no gofer")
        began = time.monotonic()
        r = t.finish_ward(p)
        t.check(r.rc in (137, 125) and "gvisor: " in r.err, f"{i}: {r}")
        t.check(time.monotonic() - began < 20, f"{i}: it took {time.monotonic() - began:.1f} s")
    clean(t)


def test_what_the_policy_gives_in_ward(t):
    """Its programs and the certificates that it trusts are inside gVisor as they are outside."""
    usable(t)
    tools, ws = t.fresh_dir("tools"), t.workspace()
    t.write(tools, {"mytool": "#!/bin/sh\necho it runs\n"})
    os.chmod(os.path.join(tools, "mytool"), 0o755)
    env = {"PATH": tools + ":" + os.environ["PATH"]}
    r = t.ward("run", *GVISOR, "--add", "filesystem.programs=mytool", "--", "mytool", cwd=ws,
               env=env)
    t.equal((r.rc, r.out), (0, "it runs\n"), r.err)
    rule = "network.egress_allowlist=[{host: a.test, methods: [GET]}]"
    r = t.ward("run", *GVISOR, "--set", "network.mode=restricted", "--set", rule, "--", "sh", "-c",
               "test -s $NODE_EXTRA_CA_CERTS && test -s $DENO_CERT && echo x > /.ward/trust/y",
               cwd=ws)
    t.check(r.rc == 2 and "ead-only" in r.err, r)


def test_what_it_refuses_is_said(t):
    """gVisor's kernel refuses names and connections by itself: what the command says of them leads
    on, and where it says nothing ward says what it does not see."""
    usable(t)
    ws = t.workspace()
    r = t.ward("run", *GVISOR, "--", "curl", "-sS", "https://a.invalid/", cwd=ws, report=True)
    t.contains(r.err, "remedy: --allow a.invalid (policy: ")
    t.equal([d["option"] for d in r.report["denials"]], ["--allow a.invalid"], r.report)
    t.check(any("gVisor's kernel refuses" in n for n in r.report["notes"]), r.report["notes"])
    found = json.loads(t.ward("explain", "--json", cwd=ws).out)
    t.equal([d["option"] for d in found["denials"]], ["--allow a.invalid"], found)
    t.contains(found["unseen"], "gVisor's kernel refuses")
    r = t.ward("run", *GVISOR, "--", "getent", "hosts", "a.invalid", cwd=ws)
    t.check(r.rc and "--isolation native" in r.err, r.err)
    t.contains(t.ward("explain", cwd=ws).out, "note: ward did not see what gVisor's kernel")
    for command, rc in (("exit 1", 1), ("exit 0", 0)):
        r = t.ward("run", *GVISOR, "--", "sh", "-c", command, cwd=ws)
        t.equal((r.rc, r.err), (rc, ""))
    r = t.ward("run", *GVISOR, "--quiet", "--", "sh", "-c", "exit 3", cwd=ws)
    t.equal((r.rc, r.err), (3, ""))
    t.write(ws, {"build": "#!/bin/sh\n"})
    r = t.ward("run", *GVISOR, "--", "./build", cwd=ws)
    t.contains(r.err, "chmod +x ./build")


def test_an_agent_that_cannot_be_reached_is_refused(t):
    usable(t)
    ws = t.workspace()
    t.write(t.home, {".ssh/known_hosts": "a.test ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPZ5\n"})
    r = t.ward("run", *GVISOR, "--ssh", "git@a.test", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "cannot connect to the agent" in r.err, r)
    t.contains(r.err, "isolation: native or oci")
