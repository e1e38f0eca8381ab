"""The Landlock level: user namespaces are taken away, and what is left must hold, or be refused,
and say so."""
import json
import os
import signal
import time

from harness import needs, only_root
from harness.engines import WITHOUT_NAMESPACES

ACCEPT = ["--set", "require.isolation=landlock", "--set", "require.limits=none"]


def ward(t, ws, *args, accept=ACCEPT, **options):
    """ward run on a host without user namespaces; .report is the report."""
    report = os.path.join(t.fresh_dir("report"), "r.json")
    r = t.run(t.compile(WITHOUT_NAMESPACES), t.ward_path, "run", "--report", report, "-w", ws,
              *accept, *args, cwd=ws, **options)
    text = t.read(report)
    r.report = json.loads(text) if text else None
    return r


def shell(t, ws, script, *options):
    return ward(t, ws, *options, "--", "/bin/sh", "-c", script)


def test_refused_unless_accepted(t):
    r = ward(t, t.workspace(), "--", "/bin/true", accept=[])
    t.equal(r.rc, 125)
    t.contains(r.err, "require: {isolation: landlock, limits: none}")
    t.check("refused" in r.report, "the report is a refusal")


@needs("landlock")
def test_the_least_of_open_files(t):
    """Limits come last: Landlock's rules and seccomp's listener are descriptors, too."""
    r = shell(t, t.workspace(), "ulimit -n; ls . > /dev/null && echo FINE", "--set",
              "resources.open_files=16")
    t.equal((r.rc, r.out), (0, "16\nFINE\n"), r.err)


@needs("landlock")
def test_work_goes_on(t):
    ws = t.workspace({"a": "x\n"})
    r = shell(t, ws, "cat a; mkdir -p d/e && mv a d/e/b && ln -s d/e/b l && cat l; chmod 750 d; "
              "touch -d @1000 d/e/b;"
                     " echo t > $TMPDIR/t && cat $HOME/t; exit 7")
    t.equal((r.rc, r.out), (7, "x\nx\nt\n"), r.err)
    t.equal(os.stat(os.path.join(ws, "d")).st_mode & 0o7777, 0o750)
    t.equal(int(os.stat(os.path.join(ws, "d/e/b")).st_mtime), 1000)
    t.equal(os.stat(os.path.join(ws, "d/e/b")).st_uid, os.stat(ws).st_uid, "the owner")


@needs("landlock")
def test_files_outside(t):
    ws, outside = t.workspace(), t.fresh_dir("outside")
    t.write(outside, {"secret": "secret\n"})
    before = os.stat(os.path.join(outside, "secret"))
    r = shell(t, ws,
              f"""cat {outside}/secret; ls {outside}; ln {outside}/secret l; ln -s {outside}/secret s; cat s
        echo x > s; echo x > {outside}/new; rm {outside}/secret; mv {outside}/secret .; truncate -s 0 {outside}/secret
        chmod 600 {outside}/secret; chmod 600 s; touch {outside}/secret; touch s; cat /etc/shadow; ls -A""")
    t.equal(r.out, "s\n")
    after = os.stat(os.path.join(outside, "secret"))
    t.equal((after.st_mode, after.st_mtime_ns, after.st_ctime_ns),
            (before.st_mode, before.st_mtime_ns, before.st_ctime_ns))
    t.equal(sorted(os.listdir(outside)), ["secret"])
    t.contains(str(r.report["denials"]), "system call")


@needs("landlock")
def test_read_only_workspace(t):
    ws = t.workspace({"a": "x"})
    r = shell(t, ws, "cat a; echo y > a; echo y > b; chmod 600 a; touch a; rm a", "--set",
              "filesystem.mode=read_only")
    t.equal(r.out, "x")
    t.equal(t.read(ws, "a"), "x")
    t.equal(os.listdir(ws), ["a"])


@needs("landlock")
def test_network_and_sockets(t):
    script = """import socket
for family, kind in ((2, 1), (2, 2), (10, 1), (1, 1), (1, 2), (16, 3), (40, 1)):
    try:
        socket.socket(family, kind)
        print("socket", family, kind)
    except OSError:
        pass
a, b = socket.socketpair()
a.send(b"pair"); print(b.recv(4).decode())"""
    r = ward(t, t.workspace(), "--", "/usr/bin/python3", "-c", script)
    t.equal((r.rc, r.out), (0, "pair\n"), r.err)


@needs("landlock")
def test_other_processes(t):
    victim = t.background(time.sleep, 60)
    r = shell(t, t.workspace(),
              f"""kill -0 {victim} && echo reached; kill -9 {victim} && echo killed; kill -9 -1
        kill -0 {os.getpid()} && echo reached; cat /proc/{victim}/cmdline; prlimit --pid {victim} --cpu=1:1 && echo limited
        renice -n 19 -p {victim} && echo reniced; echo end""")
    t.equal(r.out, "end\n")
    t.equal(os.waitpid(victim, os.WNOHANG)[0], 0, "the victim lives")


def sleepers(mark):
    """Processes that sleep for that many seconds."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == f"sleep\0{mark}\0".encode():
                    found.append(int(pid))
        except OSError:
            pass
    return found


@needs("landlock")
def test_daemons_end_with_the_command(t):
    mark = 20000 + os.getpid()
    r = shell(t, t.workspace(), f"setsid sleep {mark} & (setsid sh -c 'trap \"\" TERM; sleep "
              f"{mark}' &); sleep 0.3; exit 3")
    t.equal(r.rc, 3)
    t.equal(sleepers(mark), [])


@needs("landlock")
def test_deadline(t):
    mark = 3020000 + os.getpid()
    r = shell(t, t.workspace(), f"setsid sleep {mark} & trap '' TERM; sleep {mark}",
              "--timeout", "0.5")
    t.equal(r.rc, 124)
    t.equal(sleepers(mark), [])


@needs("landlock")
def test_killed_supervisor(t):
    """No process stays, and no file: the guardian or the next run finishes it."""
    mark, ws = 6020000 + os.getpid(), t.workspace()
    process = t.popen([t.compile(WITHOUT_NAMESPACES), t.ward_path, "run", "-w", ws, *ACCEPT, "--",
                       "/bin/sh", "-c",
                       "echo $TMPDIR > tmp; mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a; setsid sleep "
                       f"{mark} & sleep {mark}"], cwd=ws)
    t.wait_until(lambda: len(sleepers(mark)) == 2, 10, "the sandbox runs")
    process.send_signal(signal.SIGKILL)
    process.wait()
    t.wait_until(lambda: not sleepers(mark), 5, "the sandbox's processes end")
    tmp = t.read(ws, "tmp").strip()
    t.check(tmp.startswith("/tmp/ward-"), tmp)
    ward(t, ws, "--", "/bin/true")
    t.wait_until(lambda: not os.path.exists(tmp), 5, "its temporary directory goes")


@needs("landlock")
def test_wishes_are_refused(t):
    """What the Landlock level does not have is refused where the policy asks for it, never
    ignored."""
    for files, options, word in (
            ({}, ["--set", "filesystem.hide=[.env]"], "filesystem.hide"),
            ({}, ["--set", "filesystem.protect=[x]"], "filesystem.protect"),
            ({}, ["--set", "process.nesting=true"], "process.nesting"),
            ({".aiignore": ".env\n", ".env": "secret"}, [], ".aiignore"),
            ({"sub/.aiignore": ".env\n", "sub/.env": "secret"}, [], ".aiignore")):
        r = ward(t, t.workspace(files), *options, "--", "/bin/echo", "ran")
        t.equal((r.rc, r.out), (125, ""), word)
        t.contains(r.err, word)
        t.contains(r.err, "remedy")
    ws = t.workspace({"sub/a": "x"})
    r = ward(t, ws, "--ro", os.path.join(ws, "sub"), "--", "/bin/echo", "ran")
    t.equal((r.rc, r.out), (125, ""), r.err)


@needs("landlock")
def test_no_terminal_inside(t):
    """There is no devpts of its own: pipes, what goes to the operator's terminal is filtered, and
    -t is refused."""
    ws = t.workspace()
    r = ward(t, ws, "-t", "--", "/bin/echo", "ran")
    t.equal((r.rc, r.out), (125, ""))
    t.contains(r.err, "-t: there are no terminals inside")
    t.contains(r.err, "remedy")
    report = os.path.join(t.fresh_dir("report"), "r.json")
    r = t.tty(t.compile(WITHOUT_NAMESPACES), t.ward_path, "run", "--report", report, *ACCEPT, "--",
              "/bin/sh", "-c",
              r"test -t 0 || test -t 1 || echo pip''es; read x; echo got $x; printf "
              r"'\033[6n\033[31mred\033[?25l'", cwd=ws, input=b"typed\n")
    for part in ("pipes", "got typed", "\x1b[31mred", "\x1b[?25h"):
        t.contains(r.out, part)
    t.check("\x1b[6n" not in r.out, "a query reached the terminal")
    t.equal(r.modes_after, r.modes_before, "modes")
    t.contains(str(json.loads(t.read(report))["notes"]), "no terminal inside")


@needs("landlock")
def test_report_tells(t):
    r = ward(t, t.workspace(), "--", "/bin/true")
    layers = r.report["layers"]
    t.equal([name for name, layer in layers.items() if layer["in_force"] and name != "cgroup"],
            ["rlimits", "no capabilities", "no_new_privs", "landlock", "seccomp"])
    t.contains(str(r.report["notes"]), "not available at this level")


@only_root
@needs("landlock")
def test_root_becomes_the_owner(t):
    ws = t.workspace()
    os.chown(ws, 12345, 12345)
    os.chmod(os.path.dirname(ws), 0o755)
    r = shell(t, ws, "id -u; id -G; grep -c . /etc/shadow; echo x > a; chmod 700 a")
    t.equal(r.out, "12345\n12345\n", r.err)
    t.equal((os.stat(os.path.join(ws, "a")).st_uid, os.stat(os.path.join(ws, "a")).st_mode & 0o777),
            (12345, 0o700))


@needs("landlock")
def test_detached(t):
    """Detached sandboxes on this level: the same verbs, without terminals."""
    from harness import boxes
    ws = t.workspace({"f": "inside\n"})
    t.defer(boxes.clean, t)
    program = t.compile(WITHOUT_NAMESPACES)

    def call(*args, **options):
        return t.run(program, t.ward_path, *args, cwd=ws, **options)
    r = call("run", "-d", "--name", "low", *ACCEPT, "-w", ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    r = call("exec", "-i", "low", "sh", "-c", "cat f -; exit 3", input="typed\n")
    t.equal((r.rc, r.out), (3, "inside\ntyped\n"), "exec")
    r = call("exec", "low", "sh", "-c", f"cat {t.home}/../state/boxes/*/info; cat /proc/1/environ; "
             "kill -9 -1; echo still here")
    t.check("ward-box" not in r.out, "the state is out of reach")
    r = call("exec", "-t", "low", "true")
    t.equal(r.rc, 125, "a terminal")
    t.contains(r.err, "no terminals inside without namespaces", "a terminal")
    t.write(t.directory, {"out/x": "copied\n"})
    t.equal(call("cp", f"{t.directory}/out/x", f"low:{ws}/y").rc, 0, "cp in")
    t.equal(t.read(ws, "y"), "copied\n", "cp in")
    t.equal(call("cp", f"low:{ws}/f", f"{t.directory}/out/z").rc, 0, "cp out")
    t.equal(t.read(t.directory, "out/z"), "inside\n", "cp out")
    p = t.popen([program, t.ward_path, "exec", "low", "sh", "-c", "touch ready; sleep 100"], cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 20, "it did not start")
    t.equal(call("kill", "low").rc, 0, "kill")
    t.check(t.finish(p, ["exec"]).rc != 0, "what ran there has ended")
    t.equal(call("rm", "low").rc, 0, "rm")


@needs("landlock")
def test_refusals_lead_on(t):
    """What Landlock refuses is a failed call and no absent file: the option is said all the same,
    and none that this level does not have."""
    ws, other = t.workspace(), t.fresh_dir("other")
    t.write(other, {"data": "1\n", "bin/mytool": "#!/bin/sh\necho it runs\n"})
    os.chmod(os.path.join(other, "bin/mytool"), 0o755)
    os.chmod(other, 0o755)
    tool = os.path.join(other, "bin/mytool")
    r = shell(t, ws, f"read x < {other}/data")
    t.contains(r.err, f"remedy: --ro {other}/data (policy: ")
    t.equal(shell(t, ws, f"read x < {other}/data", "--ro", f"{other}/data").rc, 0)
    r = shell(t, ws, f"echo x > {other}/new")
    t.contains(r.err, f"remedy: --rw {other} (policy: ")
    r = shell(t, ws, "echo x > /etc/motd")
    t.check("--ro /etc/motd" not in r.err and "--rw DIR" in r.err, r.err)
    r = shell(t, ws, "echo x > new", "--set", "filesystem.mode=read_only")
    t.contains(r.err, "--set filesystem.mode=read_write")
    r = ward(t, ws, "--", tool)
    t.check(r.rc == 126 and f"remedy: --ro {tool}" in r.err, r.err)
    env = {"PATH": os.path.dirname(tool) + ":" + os.environ["PATH"]}
    r = ward(t, ws, "--", "mytool", env=env)
    option = r.err.split("remedy: ")[1].splitlines()[0].split()
    t.equal(option[:2], ["--ro", tool], r.err)
    r = ward(t, ws, *option, "--", "mytool", env=env)
    t.equal((r.rc, r.out), (0, "it runs\n"), r.err)


@needs("landlock")
def test_git_works(t):
    """The host's /etc/gitconfig cannot be read there, which is an error to git."""
    ws = t.workspace({"a": "x\n"})
    r = shell(t, ws, "git init -q . && git add a && git -c user.name=x -c user.email=x@y commit "
              "-qm m && git log --oneline | wc -l")
    t.equal((r.rc, r.out.strip()), (0, "1"), r.err)
