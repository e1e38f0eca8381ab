"""The gateway's processes: how few, how small, how locked up, and what happens when they are
gone."""
import errno
import os
import shutil
import signal

from harness import filters, timeout, users
from harness.world import World, attempts, denial, policy


def children(pid, comm=None):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            found += [int(word) for word in f.read().split()]
    return [p for p in found if comm is None or open(f"/proc/{p}/comm").read().strip() == comm]


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def is_gone(pid):
    """Dead, whether or not somebody has looked."""
    try:
        return status(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def start(t, world, script, **network):
    """Starts a run that prints "up" and then does what it is told by lines; returns (ward's
    process, pids of front and dial)."""
    ws = t.workspace({"inside.py": script})
    argv = [*world.wrap(ws), *users.setpriv(t.person), t.ward_path, "run", "-p",
            policy(t, **network), "--report",
            os.path.join(ws, "report.json"), "--", "/usr/bin/python3", "inside.py"]
    import subprocess
    process = t.popen(argv, root=True, stdin=subprocess.PIPE)
    t.equal(process.stdout.readline().strip(), b"up", "first line")
    front = children(process.pid, "ward-gateway")
    t.equal(len(front), 1, "gateways")
    dial = children(front[0], "ward-dial")
    t.equal(len(dial), 1, "dials")
    return process, front[0], dial[0], ws


TALK = """
import socket, sys
s = socket.create_connection(("db.test", 5432), 10)
s.sendall(b"x"); s.recv(1)
print("up", flush=True)
sys.stdin.readline()
try:
    s.sendall(b"y")
    print("old", s.recv(1))
except OSError as e:
    print("old", type(e).__name__)
try:
    socket.create_connection(("198.51.100.10", 7), 10)
    print("new connected")
except OSError as e:
    print("new", type(e).__name__)
try:
    print("name", socket.gethostbyname("web.test"))
except OSError as e:
    print("name", type(e).__name__)
"""


def killed(t, which):
    world = World(t)
    process, front, dial, ws = start(t, world, TALK)
    with t.root():
        os.kill(front if which == "front" else dial, signal.SIGKILL)
        t.wait_until(lambda: is_gone(front) and is_gone(dial), 5, "the other one lives on")
    process.stdin.write(b"\n")
    process.stdin.close()
    process.stdin = None
    r = t.finish(process, ["ward run"])
    t.equal(r.rc, 0, "exit code")
    lines = dict(line.split(" ", 1) for line in r.out.splitlines())
    t.check(lines["old"] in ("b''", "ConnectionResetError", "BrokenPipeError"),
            f"the open connection: {lines['old']}")
    t.equal(lines["new"], "ConnectionRefusedError", "a new connection")
    t.equal(lines["name"], "gaierror", "a name")
    t.contains(t.read(ws, "report.json"), "the gateway exited before the command", "report")


def test_front_killed(t):
    """front is killed: the sandbox has no network at once, and the run says so."""
    killed(t, "front")


def test_dial_killed(t):
    """dial is killed: front goes with it."""
    killed(t, "dial")


def test_ward_killed(t):
    """ward is killed: nothing of the gateway is left."""
    world = World(t)
    process, front, dial, _ = start(t, world, TALK)
    with t.root():
        os.kill(process.pid, signal.SIGKILL)
        t.wait_until(lambda: is_gone(front) and is_gone(dial), 5, "the gateway lives on")


def test_rights(t):
    """Two processes, no rights, little memory."""
    world = World(t)
    process, front, dial, _ = start(t, world, TALK)
    pss = 0
    with t.root():
        for pid in (front, dial):
            s = status(pid)
            t.equal((s["Seccomp"], s["NoNewPrivs"]), ("2", "1"), "filter and no_new_privs")
            for key in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                t.equal(int(s[key], 16), 0, key)
            t.check("0" not in s["Uid"].split(), f"user {s['Uid']}")
            with open(f"/proc/{pid}/smaps_rollup") as f:
                pss += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
            with open(f"/proc/{pid}/environ", "rb") as f:
                t.equal(f.read(), b"", "environment")
        held = [os.readlink(f"/proc/{dial}/fd/{fd}") for fd in os.listdir(f"/proc/{dial}/fd")]
        t.check(not any("ward-tests" in name for name in held), f"dial holds {held}")
        listening = [pid for pid in (process.pid, dial) for fd in os.listdir(f"/proc/{pid}/fd")
                     if os.path.exists(f"/proc/{pid}/fd/{fd}")
                     and "packet" in os.readlink(f"/proc/{pid}/fd/{fd}")]
        t.equal(listening, [], "others that hold the sandbox's sockets")
    t.check(pss < 4096 or "asan" in t.ward_path, f"{pss} KiB")
    process.stdin.close()
    process.stdin = None
    t.finish(process, ["ward run"])


def test_without_gateway(t):
    """Where ward-gateway is missing a network is refused before anything starts; without one all is
    as ever."""
    ws, place = t.workspace(), t.fresh_dir("place")
    ward = shutil.copy(t.ward_path, place)
    r = t.run(ward, "run", "-p", policy(t, ["web.test"]), "--", "/bin/echo", "started", cwd=ws)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "ward-gateway", "message")
    t.check("started" not in r.out, "it was started all the same")
    t.equal(t.run(ward, "run", "--", "/bin/echo", "started", cwd=ws).rc, 0, "without a network")


def test_without_nf_tables(t):
    """A kernel without nf_tables: a socket for each port, and the same answers."""
    world = World(t)
    wrap = filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES")
    names = ("db.test 5432", "198.51.100.10 7", "evil.test 443", "192.0.2.10 443",
             "192.0.2.10 2000", "8.8.8.8 53 udp",
             "private.test 5432")
    got, report = attempts(t, world, *names, wrap=wrap)
    t.equal([got[n] for n in names], ["got hello", "got hello", "EAI_NONAME", "ECONNRESET",
                                      "ECONNREFUSED", "ECONNREFUSED",
                                      "ECONNRESET"], "answers")
    t.contains(report["layers"]["net namespace"]["note"] or "", "no nf_tables", "note")
    denial(t, report, "connection to 192.0.2.10:2000")
    denial(t, report, "UDP to 8.8.8.8:53")


def test_allow_option(t):
    """--allow alone gives a network; on top of a file it widens."""
    world = World(t)
    ws = t.workspace()
    fetch = ("--", "/usr/bin/python3", "-c",
             "import socket; s = socket.create_connection(('db.test', 5432), 10); "
             "s.sendall(b'hi'); print(s.recv(9))")
    r = world.ward("run", "--allow", "db.test:5432", "--allow", "web.test", *fetch, cwd=ws)
    t.equal(r.out, "b'hi'\n", "answer")
    r = world.ward("run", "-p", policy(t, ["web.test"]), "--allow", "db.test:5432", *fetch, cwd=ws)
    t.equal(r.rc, 125, "on top of a file")
    t.contains(r.err, "--widen", "remedy")
    r = world.ward("run", "-p", policy(t, ["web.test"]), "--widen", "--allow", "db.test:5432",
                   *fetch, cwd=ws)
    t.equal(r.out, "b'hi'\n", "with --widen")
    r = t.ward("run", "--allow", "http://db.test", *fetch, cwd=ws)
    t.equal(r.rc, 125, "not a host")
