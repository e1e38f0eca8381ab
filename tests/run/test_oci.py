"""isolation: oci: runc or crun makes the container, and everything else is as with native: files,
ids, calls, limits, network, review, terminals; for root and for ordinary users."""
import json
import os
import shutil
import signal
import time

from harness import images, needs, only_root, screen, timeout
from harness.boxes import box, clean
from harness.images import docker, imported, link, put, tar
from harness.world import OTHER, TRY, World, denial, policy, trusted_world

OCI = ("--isolation", "oci")
RUNTIMES = [name for name in ("runc", "crun") if shutil.which(name, path="/usr/sbin:/usr/bin")]


def with_runtime(name):
    return (*OCI, "--set", f"oci.runtime={name}")


def owned(t, files=None):
    """A workspace of an ordinary user: as root, one that needs no mapped mounts."""
    ws = t.workspace(files)
    if t.as_user == "root":
        for top, dirs, names in os.walk(ws):
            for path in [top] + [os.path.join(top, n) for n in dirs + names]:
                os.chown(path, 12345, 12345)
    return ws


def sh(t, ws, script, *options, rc=0, **more):
    """Runs a shell script in a container."""
    r = t.ward("run", *OCI, *options, "--", "sh", "-c", script, cwd=ws, **more)
    t.equal(r.rc, rc, f"{script}: {r.err}")
    return r


def leftovers(run):
    """Control groups of that run."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, d) for d in dirs if d == "ward-" + run]
    return found


def test_it_runs_as_native_does(t):
    files = {"a": "A\n", ".env": "HIDDEN-SECRET\n", ".git/hooks/pre-commit": "#!/bin/sh\n",
             ".git/config": "[core]\n"}
    for make in (t.workspace, lambda f: owned(t, f)):
        ws = make(files)
        r = sh(t, ws, "cat a; id -u; cat .env; echo x > .git/hooks/pre-commit; echo n > new; pwd; "
               "echo $HOME; hostname; umask; stat -c %u new", "--set", 'filesystem.hide=[".env"]',
               report=True)
        t.equal(r.out.split(), ["A", "1000", ws, "/home/agent", "ward", "0022", "1000"], r.err)
        t.equal((t.read(ws, "new"), t.read(ws, ".git/hooks/pre-commit")), ("n\n", "#!/bin/sh\n"))
        t.equal(os.stat(os.path.join(ws, "new")).st_uid, os.stat(ws).st_uid, "owner on the host")
        t.equal(r.report["engine"], "oci")
    for code in (0, 7, 125):
        sh(t, ws, f"exit {code}", rc=code)
    t.equal(t.ward("run", *OCI, "--", "no-such-program-here", cwd=ws).rc, 127)
    sh(t, ws, "kill -9 $$", rc=137)
    t.equal(t.ward("run", *OCI, "--", "cat", cwd=ws, input="through a pipe\n").out,
            "through a pipe\n")
    t.equal(leftovers(r.report["run"]), [], "control groups")
    t.equal(t.ward("run", *OCI, "--env", "RAW=\udcfe\"{", "--", "sh", "-c",
                   "printf '%s' \"$RAW\" \"$1\"", "sh", "\udcff\n\\u0000\"", cwd=ws).out_bytes,
            b"\xfe\"{\xff\n\\u0000\"", "bytes that are no text")
    r = t.ward("run", *OCI, "--", "python3", "-c", "x = bytearray(60 << 20)", cwd=ws, report=True)
    t.check(60 << 20 < r.report["memory_peak_bytes"] < 200 << 20 and r.report["cpu_ms"] > 0,
            r.report)


def test_every_runtime(t):
    """The one that is named is used, and each gives the same."""
    ws = t.workspace()
    t.check(RUNTIMES, "no runtime is installed")
    for name in RUNTIMES:
        r = t.ward("run", *with_runtime(name), "--", "sh", "-c",
                   "id -u; ls -l /dev/null /dev/pts /dev/shm > /dev/null && cat /proc/self/status; "
                   "cat /proc/kallsyms; cat /proc/self/mountinfo | grep -c ' /proc/sys '", cwd=ws,
                   report=True)
        t.equal((r.rc, r.out.split()[0], r.out.split()[-1]), (0, "1000", "1"), f"{name}: {r.err}")
        t.check("CapBnd:\t0000000000000000" in r.out and "NoNewPrivs:\t1" in r.out
                and "Seccomp:\t2" in r.out, f"{name}: {r.out}")
    r = t.ward("run", *OCI, "--set", "oci.runtime=runsc", "--", "true", cwd=ws)
    t.check(r.rc != 0 and "oci.runtime" in r.err and "crun" in r.err, r)


def test_it_holds_files_and_calls(t):
    ws = t.workspace()
    outside = t.fresh_dir("outside")
    r = sh(t, ws, f"ls {outside} /root /var/lib /sys /mnt/config.json 2>&1; touch /etc/x /usr/x "
           "/.ward/x 2>&1; cat /proc/kallsyms /proc/self/status; echo 1 > "
           "/proc/sys/kernel/hostname; unshare -r true; mount -t tmpfs x /tmp; umount .; exit 1",
           rc=1, report=True)
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
                 "Seccomp:\t2"):
        t.contains(r.out, line)
    t.check(r.out.count("Read-only file system") == 3 and r.out.count("No such file") == 5, r.out)
    denied = json.dumps(r.report["denials"])
    t.check("unshare" in denied and "mount" in denied, f"denials are told: {denied}")
    t.check("not permitted" in sh(t, ws, "cp /bin/true t; chmod 4755 t", rc=1).err, "set-uid bits")
    t.contains(sh(t, ws, "ls /proc", "--set", "process.syscalls=strict").out, "self")
    t.check("cpuinfo" not in sh(t, ws, "ls /proc", "--set", "process.syscalls=strict").out,
            "strict: processes only")


def test_the_runtime_cannot_be_seen(t):
    """Nothing of what is around the container is in it: processes, descriptors, the bundle, the
    host's network."""
    r = sh(t, t.workspace(), "ls /proc | grep -c '^[0-9]'; ls /proc/self/fd | wc -l; ls -l "
           "/proc/self/fd; tr '\\0' ' ' < /proc/1/cmdline; ls /mnt /srv /.ward; ls /sys/class/net; "
           "ip -o link | wc -l")
    words = r.out.split()
    t.check(int(words[0]) <= 4, f"processes: {r.out}")
    t.check("state" not in r.out and "config.json" not in r.out and "memfd" not in r.out
            and "socket" not in r.out, r.out)
    t.equal(words[-1], "1", "interfaces")
    r = sh(t, t.workspace(),
           "ls /proc/1/fd; echo 500 > /proc/1/oom_score_adj; cat /proc/1/maps; exit 1", rc=1)
    t.equal((r.out, r.err.count("ermission denied")), ("", 3), f"pid 1 is the agent's: {r.err}")


def test_devices_stay_as_they_are(t):
    """They are bound as they are: an owner could change their modes for everybody."""
    before = [os.stat(p) for p in ("/dev/null", "/dev/zero", "/dev/full")]
    r = sh(t, t.workspace(), "chmod 666 /dev/null; chmod 666 /dev/zero; touch -d 2001-01-01 "
           "/dev/full; chmod 666 /proc/keys; echo ok > /dev/null; head -c 4 /dev/zero | wc "
           "-c; exit 1", rc=1)
    t.equal((sum(r.err.count(w) for w in ("not permitted", "Permission denied", "Read-only")),
             r.out.strip()), (4, "4"), r.err)
    for was, path in zip(before, ("/dev/null", "/dev/zero", "/dev/full")):
        now = os.stat(path)
        t.equal((now.st_mode, now.st_uid, now.st_gid, now.st_mtime_ns),
                (was.st_mode, was.st_uid, was.st_gid, was.st_mtime_ns), path)


@timeout(90)
def test_it_holds_limits(t):
    ws = t.workspace()
    for name in RUNTIMES:
        option = with_runtime(name)
        r = t.ward("run", *option, "--timeout", "0.5", "--", "sleep", "30", cwd=ws, report=True)
        t.equal((r.rc, r.report["limits"]["timeout"]["hit"]), (124, True), r.err)
        r = t.ward("run", *option, "--memory", "64Mi", "--", "python3", "-c",
                   "x = bytearray(300 << 20)", cwd=ws, report=True)
        t.check(r.rc == 137 and r.report["limits"]["memory"]["hit"] or r.rc == 1
                and "MemoryError" in r.err, r)
        r = t.ward("run", *option, "--pids", "12", "--", "python3", "-c",
                   "import os, time\nn = 0\ntry:\n    while n < 100:\n        n += 1\n"
                   "        if not os.fork(): time.sleep(5); os._exit(0)\nexcept OSError: pass\n"
                   "print(n)", cwd=ws, report=True)
        t.check(r.rc in (0, 137) and (not r.out.strip() or int(r.out) < 20), r)
        t.check(r.report["memory_peak_bytes"] < 200 << 20, r.report["memory_peak_bytes"])
        t.equal(leftovers(r.report["run"]), [], "control groups")


def attempt(t, box_id, *lines):
    r = t.ward("exec", box_id, "/usr/bin/python3", "try.py", *lines, timeout=60)
    t.equal(r.rc, 0, f"exec ({r.err})")
    return [json.loads(line)[1] if line.startswith("[") else line for line in r.out.splitlines()]


@timeout(120)
def test_network(t):
    """The gateway decides, with either runtime: names of the list are reached, the rest is refused
    and told."""
    world = World(t)
    for name in RUNTIMES:
        ws = t.workspace({"try.py": TRY})
        r = world.ward("run", *with_runtime(name), "-p", policy(t), "--", "/usr/bin/python3",
                       "try.py", "db.test 5432", f"{OTHER} 7", "evil.test 443", "web.test 25",
                       "8.8.8.8 53 udp", cwd=ws, report=True)
        t.equal(r.rc, 0, r.err)
        t.equal(r.out.count("got hello"), 2, r.out)
        t.check("EAI_NONAME" in r.out and r.out.count("ECONNREFUSED") == 2, r.out)
        t.equal(denial(t, r.report, "name evil.test")["remedy"],
                'network.egress_allowlist: ["evil.test"]', "remedy")
        t.equal(r.report["network"]["connections"], 2, "connections")
    t.check(not any("evil" in line for line in world.log()),
            f"something of a denied name went out: {world.log()}")
    r = world.ward("run", *OCI, "-p", policy(t), "--", "sh", "-c",
                   "ip link set lo down; ip addr add 10.9.9.9/24 dev lo; nft list ruleset; ip "
                   "route add 1.2.3.4/32 dev lo", cwd=t.workspace())
    t.check(r.rc != 0 and r.err.count("Operation not permitted") == 3,
            f"the network is not the container's: {r}")


def test_network_inspected(t):
    """Requests are looked into, and programs trust the gateway's certificate."""
    world = trusted_world(t)
    r = world.ward("run", *OCI, "-p", policy(t, [{"host": "web.test", "methods": ["GET"]}]), "--",
                   "/usr/bin/curl", "-sS", "https://web.test/plain?x=1", cwd=t.workspace(),
                   report=True)
    t.equal((r.rc, r.out), (0, "hello from web.test\n"), r.err)
    t.contains(world.log(), "http web.test /plain?x=1", "what the server saw")


@timeout(90)
def test_network_rules_change(t):
    """ward net allow and deny reach a container that runs."""
    world = World(t)
    t.defer(clean, t)
    r = world.ward("run", "-d", *OCI, "-p", policy(t, ["db.test:5432"]),
                   cwd=t.workspace({"try.py": TRY}))
    t.equal(r.rc, 0, r.err)
    name = r.out.strip()
    t.check("hello" in str(attempt(t, name, "db.test 5432"))
            and "hello" not in str(attempt(t, name, f"{OTHER} 7")), "before")
    t.equal(t.ward("net", "allow", name, f"{OTHER}:7").rc, 0, "allow")
    t.contains(str(attempt(t, name, f"{OTHER} 7")), "hello")
    t.equal(t.ward("net", "deny", name, "db.test:5432").rc, 0, "deny")
    t.check("hello" not in str(attempt(t, name, "db.test 5432")), "after")


def test_review(t):
    ws = t.workspace({"a": "old\n", "b": "B\n", ".env": "HIDDEN-SECRET\n"})
    r = sh(t, ws, "echo new > a; rm b; mkdir d; echo c > d/c; cat .env; true", "--review", "--set",
           'filesystem.hide=[".env"]')
    t.check("HIDDEN" not in r.out and t.read(ws, "a") == "old\n" and t.read(ws, "b") == "B\n", r)
    t.equal(t.ward("apply", cwd=ws).rc, 0)
    t.equal((t.read(ws, "a"), t.read(ws, "d/c"), os.path.exists(os.path.join(ws, "b"))),
            ("new\n", "c\n", False))


def test_terminal(t):
    """A terminal inside: its own name, its size, jobs."""
    with screen.Screen(t) as s:
        s.ward("run", *OCI, "--env", "PS1=in> ", "--", "bash", "--norc", "--noprofile")
        t.check("job control" not in s.wait(lambda x: x.endswith("in>"), "inner prompt"),
                "bash complains")
        s.line("tty; stty size")
        s.see("/dev/pts/0\n24 80")
        s.line("sleep 200")
        s.wait(lambda x: x.endswith("sleep 200"), "started")
        s.press("C-z", "Stopped")
        s.line("kill %1; fg; exit 7")
        s.see("exit 7,")


@needs("runc", "cgroups")
@timeout(90)
def test_left_running(t):
    """exec, copies, a terminal, pause and resume, with an image as the root."""
    outside = t.fresh_dir("outside")
    layer = tar(*images.busybox_root(), ("var/run", link(outside)))
    imported(t, put(t, "i.tar", docker([layer], wish={"Entrypoint": ["cat", "/etc/image-name"]})),
             "--name", "base")
    ws = t.workspace()
    for name in RUNTIMES:
        t.equal(t.ward("run", *with_runtime(name), "--image", "base", cwd=ws).out,
                "MADE-OF-BUSYBOX\n")
    name = box(t, *OCI, "--image", "base", cwd=ws)
    t.equal(t.ward("exec", name, "sh", "-c",
                   "cat /etc/image-name; id -u; touch /etc/x || echo closed").out.split(),
            ["MADE-OF-BUSYBOX", "1000", "closed"])
    t.contains(t.ward("exec", "-t", name, "sh", "-c", "tty").out, "/dev/pts/")
    t.equal(t.ward("cp", f"{name}:/etc/image-name", os.path.join(t.directory, "copied")).rc, 0)
    t.equal(t.ward("pause", name).rc, 0)
    t.equal(t.ward("resume", name).rc, 0)
    t.equal(t.ward("exec", name, "echo", "awake").out, "awake\n")
    t.equal(t.ward("stop", "--timeout", "0.2", name).rc, 0)
    t.equal((os.listdir(outside), leftovers(name)), ([], []), "left behind")


@needs("runc", "cgroups")
def test_a_guarded_file_that_is_replaced(t):
    """Somebody outside replaces a hidden file: it is covered again, in the container."""
    ws = t.workspace({".env": "HIDDEN-SECRET\n", "go": ""})
    process = t.ward_start("run", *OCI, "--set", 'filesystem.hide=[".env"]', "--", "sh", "-c",
                           "echo up; while [ ! -e ready ]; do sleep 0.05; done; cat .env; echo end",
                           cwd=ws)
    t.equal(process.stdout.readline(), b"up\n")
    new = os.path.join(ws, "new")
    with open(new, "w") as f:
        f.write("OTHER-HIDDEN-SECRET\n")
    os.chmod(new, 0o644)
    os.rename(new, os.path.join(ws, ".env"))
    time.sleep(0.5)
    with open(os.path.join(ws, "ready"), "w"):
        pass
    out, _ = process.communicate(timeout=30)
    t.check(b"HIDDEN" not in out and b"end" in out, out)


@needs("runc", "cgroups")
@timeout(90)
def test_it_dies_with_ward(t):
    """kill -9 of ward at any moment: the container ends, and nothing of it stays."""
    ws = t.workspace()
    for wait in (0.01, 0.03, 0.05, 0.08, None):
        process = t.ward_start("run", *OCI, "--", "sh", "-c", "echo up; echo $$ > pid; sleep 1000",
                               cwd=ws)
        if wait is None:
            t.equal(process.stdout.readline(), b"up\n")
        time.sleep(wait or 0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 0,
            "a run cleans up after runs that had no guardian yet")
    # processes, mounts and control groups are looked for after every test


def tree_of(pid):
    """The processes below one, by name."""
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            below = [int(w) for w in f.read().split()]
    except OSError:
        return found
    for child in below:
        try:
            with open(f"/proc/{child}/cmdline", "rb") as f:
                found.append((child, f.read().split(b"\0")[0].decode()))
        except OSError:
            continue
        found += tree_of(child)
    return found


@timeout(120)
def test_it_survives_the_death_of_helpers(t):
    """kill -9 of the runtime, of what is around the container or of its first process: ward says
    so, and nothing stays."""
    ws = t.workspace()
    hit = 0
    for which in ("runc", "ward-outer", "ward-settle", "runc", "crun"):
        if which == "crun" and "crun" not in RUNTIMES:
            continue
        process = t.ward_start("run", *with_runtime("crun" if which == "crun" else "runc"), "--",
                               "sleep", "1000", cwd=ws)
        until = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < until:
            victims = [p for p, name in tree_of(process.pid)
                       if os.path.basename(name) == os.path.basename(which)]
            if victims:
                try:
                    os.kill(victims[0], signal.SIGKILL)
                    hit += 1
                except ProcessLookupError:
                    pass
                break
        if process.poll() is None and which in ("runc", "crun"):
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)  # the container may have been complete already
        _, err = process.communicate(timeout=30)
        t.check(process.returncode in (125, 137, 143), f"{which}: {process.returncode} {err}")
    t.check(hit >= 3, f"only {hit} were hit")


@needs("runc", "cgroups")
@only_root
def test_the_runtime_has_no_rights_of_roots(t):
    """As root too: the process around the container and the runtime have the agent's id on the
    host, nothing more."""
    process = t.ward_start("run", *OCI, "--", "sh", "-c", "echo up; sleep 1000", cwd=t.workspace())
    t.equal(process.stdout.readline(), b"up\n")
    outer = [p for p, name in tree_of(process.pid) if name == "ward-outer"]
    t.check(outer, "no ward-outer")
    with open(f"/proc/{outer[0]}/status") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    t.check("0" not in status["Uid"].split() and "0" not in status["Gid"].split(), status["Uid"])
    t.check(os.readlink(f"/proc/{outer[0]}/ns/user") != os.readlink("/proc/self/ns/user"),
            "user namespace")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


def test_what_it_cannot_is_refused(t):
    ws = t.workspace()
    for verb in ("run", "plan"):
        r = t.ward(verb, *OCI, "--set", "process.nesting=true", "--", "true", cwd=ws)
        t.check(r.rc == 125 and "nesting" in r.err and "oci engine" in r.err, r)
    plan = json.loads(t.ward("plan", "--json", *OCI, "--", "true", cwd=ws).out)
    t.equal((plan["engine"], [s["name"] for s in plan["stages"]][-1]), ("oci", "exec"))
