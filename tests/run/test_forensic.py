"""ward exec --forensic: looking at a sandbox that stands still, from outside and read-only."""
import os
import signal

from harness.boxes import box, listed

WORK = """
import os, socket, time
open("made", "w").write("made inside\\n")
s = socket.socket(socket.AF_UNIX)
s.bind("socket")
s.listen()
for i in range(10 ** 9):
    open("tick", "w").write(str(i))
    time.sleep(0.02)
"""
# what the view must not allow; each line is one way and what came of it
WAYS = r"""
import ctypes, os, socket, sys
def way(name, run):
    try:
        got = run()
    except OSError as error:
        got = type(error).__name__
    print(name, got, flush=True)
ws = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"
def mem():
    with open("/proc/1/mem", "r+b"):
        return "open"
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(ws + "/socket")
    return "connected"
way("write", lambda: open(ws + "/made", "a").write("x"))
way("new", lambda: open("/tmp/new", "w").write("x"))
way("unlink", lambda: os.unlink(ws + "/made"))
way("memory", mem)
way("socket", connect)
way("inet", lambda: socket.create_connection(("127.0.0.1", 1)))
way("kill", lambda: os.kill(2, 9))
way("remount", lambda: call(165, b"none", b"/", None, 32, None))
way("user", lambda: call(272, 0x10000000))
way("pid", lambda: os.getpid())
way("caps", lambda: [l.split()[1] for l in open("/proc/1/status") if l.startswith("CapEff")][0])
"""


def start(t, *args):
    ws = t.workspace({"work.py": WORK, "ways.py": WAYS})
    one = box(t, *args, "--", "/usr/bin/python3", "work.py", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "tick")), 20, "it did not begin")
    return one, ws


def look(t, one, *args, **more):
    return t.ward("exec", "--forensic", *args[:-1], one, *args[-1], **more)


def test_a_frozen_view(t):
    """The sandbox is frozen first and stays so; its files can be read, with its own view of the
    machine, and nothing can be written, reached, signalled or gained."""
    one, ws = start(t)
    r = look(t, one, "-C", ws, ["cat", "made"])
    t.equal((r.rc, r.out), (0, "made inside\n"), f"read ({r.err})")
    t.equal(listed(t)[one]["state"], "paused", "frozen")
    before = t.read(ws, "tick")
    r = look(t, one, "-C", ws, ["/usr/bin/python3", "ways.py", ws])
    rows = dict(line.split(" ", 1) for line in r.out.splitlines())
    t.equal(rows, {"write": "OSError", "new": "OSError", "unlink": "OSError",
                   "memory": rows.get("memory"), "socket": "PermissionError",
                   "inet": "PermissionError", "kill": "ProcessLookupError",
                   "remount": rows.get("remount"), "user": rows.get("user"), "pid": "1",
                   "caps": "0000000000000000"}, f"{r.err}")
    for way in ("memory", "remount", "user"):
        t.check(rows[way] not in ("open", "done"), f"{way}: {rows}")
    r = look(t, one, ["ls", "/root", "/home"])
    t.check("agent" in r.out and "work.py" not in r.out, f"the sandbox's view: {r.out} {r.err}")
    r = look(t, one, ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])
    t.contains(r.out, "work.py", "its processes are seen")
    t.equal(t.read(ws, "tick"), before, "it stood still all the time")
    t.equal(t.ward("resume", one).rc, 0, "and goes on")
    t.wait_until(lambda: t.read(ws, "tick") not in ("", before), 10, "it does not go on")


def test_ends(t):
    """Exit codes as a shell's, input that ends, variables; when ward ends, so does the command."""
    one, ws = start(t)
    t.equal(look(t, one, ["sh", "-c", "exit 7"]).rc, 7, "its own")
    t.equal(look(t, one, ["/nonexistent"]).rc, 127, "no such program")
    t.equal(look(t, one, ["/etc/passwd"]).rc, 126, "no program")
    t.equal(look(t, one, ["sh", "-c", "kill -9 $$; exec sh -c 'kill -TERM $$; exit 3'"]).rc, 3,
            "the first of its namespace")
    r = look(t, one, "-i", ["cat"], input="typed")
    t.equal((r.rc, r.out), (0, "typed"), f"input ({r.err})")
    r = look(t, one, "--env", "A=b", ["sh", "-c", "echo $A $HOME"])
    t.equal(r.out, "b /home/agent\n", "variables")
    t.equal(look(t, one, "-t", ["true"]).rc, 2, "no terminal")
    for how in (signal.SIGTERM, signal.SIGKILL):
        process = t.popen(t.ward_argv("exec", "--forensic", one, "sh", "-c",
                                      "echo on; exec sleep 7777"), cwd=ws)
        t.equal(process.stdout.readline().strip() in ("on", b"on"), True, "it runs")
        process.send_signal(how)
        process.wait(20)
        t.wait_until(lambda: not sleeping(), 10, f"it lives on after {how}")


def sleeping():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                found += [pid] if f.read() == b"sleep\x007777\0" else []
        except OSError:
            pass
    return found


def test_not_here(t):
    """A sandbox that has ended has no view."""
    one, _ = start(t)
    t.equal(t.ward("kill", one).rc, 0, "killed")
    t.check(look(t, one, ["true"]).rc == 125, "refused")
