"""The emergency stop: ward kill --all and ward panic end everything, whatever state the supervisors
are in, and a panic refuses new runs until it is cleared."""
import json
import os
import signal
import stat
import time

from harness import needs, only_root
from harness.boxes import box, listed, look, supervisor
from harness.engines import WITHOUT_NAMESPACES

from run.test_landlock_only import ACCEPT

BUSY = ("for i in 1 2 3 4; do (while :; do :; done) & done; echo x > ready{}; "
        "while :; do echo x >> ticks; done")


def busy(t, ws, number, *args):
    """A detached sandbox of five busy processes that runs."""
    b = box(t, *args, "--", "sh", "-c", BUSY.format(number), cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready{number}"), 20, "it did not start")
    return b


def inside(t, pid):
    """The first process of the sandbox of that supervisor, and those below."""
    def children(p):
        try:
            return [int(c) for c in look(t, f"/proc/{p}/task/{p}/children").split()]
        except OSError:
            return []
    found = [c for c in children(pid) if "guardian" not in look(t, f"/proc/{c}/cmdline")]
    for p in found:
        found += children(p)
    return found


def alive(t, pids):
    """Which of the processes are there and no zombies."""
    result = []
    for p in pids:
        try:
            state = look(t, f"/proc/{p}/stat").rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            result.append(p)
    return result


def foreground(t, ws, name="fore"):
    """A run in the foreground; the process of ward."""
    p = t.ward_start("run", "--", "sh", "-c", f"echo x > {name}; while :; do :; done", cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/{name}"), 20, "it did not start")
    return p


def test_kill_all_ends_runs_in_the_foreground(t):
    ws = t.workspace()
    p = foreground(t, ws)
    b = busy(t, ws, 0)
    r = t.ward("kill", "--all", "--json")
    t.equal(r.rc, 0, f"kill --all ({r.err})")
    ended = {s["id"]: s for s in json.loads(r.out)["sandboxes"]}
    t.equal(len(ended), 2, "both are reported")
    t.equal(ended[b]["state"], "ended", "the detached one")
    t.equal(t.finish_ward(p).rc, 137, "the run in the foreground")
    t.equal(listed(t), {}, "ps")
    t.equal(os.path.exists(f"{ws}/ticks"), True, "it ran")


def test_kill_all_when_a_supervisor_is_stopped(t):
    """Its sandbox dies all the same, and its run is finished."""
    ws = t.workspace()
    b = busy(t, ws, 0)
    pid = supervisor(t, b)
    pids = inside(t, pid)
    t.equal(len(pids) >= 6, True, f"processes inside: {pids}")
    with t.root():
        os.kill(pid, signal.SIGSTOP)
    p = foreground(t, ws)
    with t.root():
        os.kill(p.pid, signal.SIGSTOP)
    r = t.ward("kill", "--all")
    t.equal(r.rc, 0, f"kill --all ({r.err})")
    t.equal(r.seconds < 8, True, f"it took {r.seconds} s")
    t.equal(alive(t, pids), [], "processes of the sandbox")
    t.equal([s["state"] for s in listed(t).values()], ["dead"], "ps: its supervisor was killed")
    t.equal(p.wait(10), -signal.SIGKILL, "the stopped ward was killed")
    t.equal(t.ward("recover").rc, 0, "nothing is left to finish")


def test_kill_all_of_paused_ones(t):
    ws = t.workspace()
    b = busy(t, ws, 0)
    pids = inside(t, supervisor(t, b))
    t.equal(t.ward("pause", b).rc, 0, "pause")
    t.equal(t.ward("kill", "--all").rc, 0, "kill --all")
    t.equal(alive(t, pids), [], "processes of the sandbox")
    t.equal(listed(t), {}, "ps")


def test_kill_all_of_none(t):
    r = t.ward("kill", "--all", "--json")
    t.equal((r.rc, json.loads(r.out)), (0, {"sandboxes": []}), "nothing runs")


def test_kill_all_of_a_fork_storm(t):
    """Processes that fork all the time do not escape while they are listed."""
    ws = t.workspace()
    b = box(t, "--pids", "200", "--", "sh", "-c",
            "echo x > ready; f() { while :; do (sleep 0.01) & done; }; f & f & f", cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 20, "it did not start")
    first = inside(t, supervisor(t, b))[:1]
    t.equal(t.ward("kill", "--all").rc, 0, "kill --all")
    t.equal(alive(t, first), [], "the first process, which ends after all others")
    t.equal(listed(t), {}, "ps")


@needs("landlock")
def test_kill_all_of_a_landlock_run(t):
    """Without namespaces there is no first process that ends all."""
    ws = t.workspace()
    p = t.popen([t.compile(WITHOUT_NAMESPACES), t.ward_path, "run", "-w", ws, *ACCEPT, "--",
                 "/bin/sh", "-c",
                 BUSY.format(0)], cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready0"), 20, "it did not start")
    pids = inside(t, p.pid)
    t.equal(len(pids) >= 5, True, f"processes: {pids}")
    t.equal(t.ward("kill", "--all").rc, 0, "kill --all")
    t.finish(p, ["ward", "run"], timeout=20)
    t.equal(alive(t, pids), [], "processes")


def unified():
    """Where cgroup v2 is mounted, None if it is not."""
    with open("/proc/self/mountinfo") as f:
        for line in f:
            if " - cgroup2 " in line:
                return line.split()[4]
    return None


@only_root
@needs("admin")
def test_kill_all_by_the_freezer_of_version_2(t):
    """With a record of such a sandbox; ward itself would use version 1 on a hybrid host."""
    t.check(unified(), "every host with systemd or a hybrid tree mounts cgroup v2")
    group = f"{unified()}/ward-20200101-000000-test{os.getpid()}"
    os.mkdir(group)
    t.defer(lambda: os.path.exists(group) and os.rmdir(group))
    ticks = os.path.join(t.fresh_dir(), "ticks")
    p = t.popen(["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec unshare --fork --pid "
                 f"--kill-child sh -c 'sleep 1000 & while :; do echo x >> {ticks}; done'"])
    t.wait_until(lambda: os.path.exists(ticks), 20, "it did not start")
    first = int(look(t, f"/proc/{p.pid}/task/{p.pid}/children").split()[0])
    start = look(t, f"/proc/{first}/stat").rsplit(")", 1)[1].split()[19]
    boot = look(t, "/proc/sys/kernel/random/boot_id").strip()
    others = look(t, f"{group}/cgroup.procs").split()
    t.equal(len(others) >= 3, True, f"in the cgroup: {others}")
    os.mkdir(f"{t.state_dir}/live", 0o700)
    trees = "root /nowhere\n" + "".join(f"base f{i}\n" for i in range(5000))
    lost = "".join(f"lost /nowhere\\nf{i}\n" for i in range(3000))
    t.write(t.state_dir, {"live/0": f"ward-run 1\nid 20200101-000000-aaaaaa\nworkspace /nowhere\n"
                          f"cgroup {group}\n{trees}complete\ninit {first} {start} {boot}\n"
                          f"{lost}"})
    r = t.ward("kill", "--all")
    t.equal(r.rc, 0, f"kill --all ({r.err})")
    t.equal(look(t, f"{group}/cgroup.freeze").strip(), "1", "it was frozen first")
    t.wait_until(lambda: not alive(t, [int(o) for o in others]), 10, "some live")
    t.equal(p.wait(10) != 0, True, "the process outside of the namespace is in the group, too")
    t.equal(t.ward("recover").rc, 0, "recover")


def test_kill_all_hits_no_other_process(t):
    """A record of a process that is dead, whose number another one has now."""
    p = t.popen(["sleep", "1000"])
    boot = look(t, "/proc/sys/kernel/random/boot_id").strip()
    os.makedirs(f"{t.state_dir}/live", 0o700)
    for slot, line in ((0, f"init {p.pid} 1 {boot}"), (1, f"process {p.pid} 1 {boot}"),
                       (2, f"init {p.pid} 1 another-boot")):
        t.write(t.state_dir, {f"live/{slot}": f"ward-run 1\nid 20200101-000000-aaaaa{slot}\n"
                              f"workspace /nowhere\ncgroup /sys/fs/cgroup\ncomplete\n{line}\n"})
    t.equal(t.ward("kill", "--all").rc, 0, "kill --all")
    t.equal(p.poll(), None, "the other process lives")
    t.equal(t.ward("recover").rc, 0, "recover")


def test_panic(t):
    ws = t.workspace()
    b = busy(t, ws, 0)
    p = foreground(t, ws)
    r = t.ward("panic")
    t.equal(r.rc, 0, f"panic ({r.err})")
    t.equal(r.out, "2 sandboxes killed; new runs are refused until ward panic --clear\n", "text")
    t.equal(t.finish_ward(p).rc, 137, "the run in the foreground")
    t.equal(listed(t, "-a")[b]["state"], "ended", "the detached one")
    for args in (("run", "--", "touch", "made"), ("run", "-d", "--", "touch", "made"),
                 ("run", "--set", "filesystem.mode=read_only", "--", "true")):
        r = t.ward(*args, cwd=ws)
        t.equal(r.rc, 125, f"{args} while in panic")
        t.contains(r.err, "ward panic is in force", "the reason")
        t.contains(r.err, "ward panic --clear", "the remedy")
    t.equal(os.path.exists(f"{ws}/made"), False, "nothing ran")
    t.equal(list(listed(t, "-a")), [b], "nothing is left of what was refused")
    r = t.ward("run", "--json", "--", "true", cwd=ws)
    t.contains(json.loads(r.err)["refused"]["why"], "ward panic is in force", "--json")
    r = t.ward("panic", "--json")
    t.equal(json.loads(r.out), {"panic": "set", "sandboxes": []}, "panic again")
    r = t.ward("panic", "--clear", "--json")
    t.equal((r.rc, json.loads(r.out)), (0, {"panic": "cleared", "sandboxes": []}), "--clear")
    t.equal(t.ward("panic", "--clear").out, "no panic was in force\n", "--clear again")
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 0, "a run after that")
    t.equal(stat.S_IMODE(os.stat(t.state_dir).st_mode), 0o700, "the mode of the state directory")


def test_panic_and_starts(t):
    """Runs that start at that moment are killed or refused; none goes on."""
    ws = t.workspace()
    started = [t.ward_start("run", "--", "sleep", "60", cwd=ws) for _ in range(12)]
    t.wait_until(lambda: any(os.listdir(os.path.join(t.state_dir, "live"))
                             for _ in [0] if os.path.isdir(os.path.join(t.state_dir, "live"))),
                 20, "none started")
    t.equal(t.ward("panic").rc, 0, "panic")
    codes = [t.finish_ward(p, timeout=20).rc for p in started]
    t.equal([c for c in codes if c not in (125, 137)], [], f"killed or refused: {codes}")
    t.equal(t.ward("panic", "--clear").rc, 0, "--clear")


def test_panic_ends_the_gateway_of_a_stopped_supervisor(t):
    """No connection goes on with a secret because a supervisor hangs."""
    ws = t.workspace()
    b = box(t, "--allow", "example.org", "--", "sh", "-c",
            "getent hosts example.org; echo x > ready0; sleep 100", cwd=ws)
    pid = supervisor(t, b)
    t.wait_until(lambda: gateways(t, pid), 20, "there is no gateway")
    found = gateways(t, pid)
    found += [int(c) for g in found for c in look(t, f"/proc/{g}/task/{g}/children").split()]
    with t.root():
        os.kill(pid, signal.SIGSTOP)
    t.equal(t.ward("panic").rc, 0, "panic")
    t.equal(alive(t, found), [], "the gateway")
    t.equal(t.ward("panic", "--clear").rc, 0, "--clear")


def gateways(t, pid):
    """The processes of a supervisor that serve its network."""
    children = [int(c) for c in look(t, f"/proc/{pid}/task/{pid}/children").split()]
    return [c for c in children if look(t, f"/proc/{c}/comm").startswith("ward-gateway")]


@needs("admin")
def test_panic_on_a_full_disk(t):
    """Nothing has to be written before everything is dead, and the mark needs no space."""
    ws = t.workspace()
    owner = f"uid={t.person.pw_uid},gid={t.person.pw_gid}"
    t.run("mount", "-t", "tmpfs", "-o", f"size=4m,mode=0700,{owner}", "ward-test", t.state_dir,
          root=True, check=True)
    t.defer(lambda: t.run("umount", "-l", t.state_dir, root=True))
    b = busy(t, ws, 0)
    pids = inside(t, supervisor(t, b))
    t.run("sh", "-c", f"cat /dev/zero > {t.state_dir}/fill; true")
    t.equal(os.statvfs(t.state_dir).f_bavail, 0, "the disk is full")
    r = t.ward("panic")
    t.equal(alive(t, pids), [], f"processes ({r.err})")
    t.equal(bool(os.stat(t.state_dir).st_mode & stat.S_ISVTX), True, "the mark is set")
    os.unlink(f"{t.state_dir}/fill")
    t.contains(t.ward("run", "--", "true", cwd=ws).err, "ward panic is in force", "a new run")


def test_dead_man(t):
    """As long as the file is touched nothing happens; then everything ends, and nothing starts."""
    ws, d = t.workspace(), t.fresh_dir("dead-man")
    t.write(d, {"file": ""})
    file = os.path.join(d, "file")
    for args in (("--dead-man", file), ("--after", "5m"), ("--dead-man", file, "--after", "x"),
                 ("--dead-man", file + "s", "--after", "5m"), ("--dead-man", d, "--after", "5m"),
                 ("--dead-man", file, "--after", "5m", "--clear")):
        t.check(t.ward("panic", *args).rc != 0, f"refused: {args}")
    b = busy(t, ws, 0)
    with t.root():
        os.utime(file, (0, 0))
    t.contains(t.ward("panic", "--dead-man", file, "--after", "5m").err, "was touched in the last")
    t.equal(listed(t)[b]["state"], "running", "nothing was stopped")
    with t.root():
        os.utime(file)
    waits = t.ward_start("panic", "--dead-man", file, "--after", "10m")
    time.sleep(1)
    t.equal(waits.poll(), None, "it waits")
    t.equal(listed(t)[b]["state"], "running", "somebody is there")
    os.remove(file)
    t.equal(t.finish_ward(waits).rc, 0, "panic")
    t.check(b not in listed(t), "it is dead")
    t.check("panic" in t.ward("run", "--", "true", cwd=ws).err, "new runs are refused")
    t.equal(t.ward("panic", "--clear").rc, 0)
    t.write(d, {"file": ""})
    r = t.ward("panic", "--dead-man", file, "--after", "1", timeout=60)
    t.equal(r.rc, 0, f"not touched in time ({r.err})")
    t.equal(t.ward("panic", "--clear").rc, 0)
