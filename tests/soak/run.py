#!/usr/bin/python3
"""make soak: many runs and many detached sandboxes in a row must leave nothing behind; prints a table of what was counted.

In: the build directory (WARD_BUILD, or build/), RUNS (2000) and CYCLES (500). As root everything is done twice, as root and
as the ordinary user of the tests. The counts: processes that descend from this one, mounts, control groups, namespaces that
any process or mount holds, files in ward's directories and in the workspace, unix sockets, shared memory, and the descriptors
of a ward-box and its ward-init that serve as many execs. Counts of what other users of the machine do (mounts, control
groups, namespaces) are taken only of what can be ward's. Exit 1 when something grew.
"""
import argparse
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from harness import leaks, users  # noqa: E402

SETTLE_S = 15		# namespaces and control groups are freed by the kernel a moment later
NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


class Scene:
    """Directories of one person, and ward run as that person."""

    def __init__(self, who, ward, base):
        self.who, self.person = who, users.entry(who)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"soak-{who}-", dir=base))
        self.ward_path = ward
        for name in ("state", "runtime", "home", "ws", "tmp"):
            (self.directory / name).mkdir(mode=0o700)
            os.chown(self.directory / name, self.person.pw_uid, self.person.pw_gid)
        os.chown(self.directory, self.person.pw_uid, self.person.pw_gid)

    def ward(self, *words, check=True):
        """Runs ward; its output. A failure ends the soak."""
        done = subprocess.run([self.ward_path, *words], cwd=self.directory / "ws", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, preexec_fn=lambda: users.drop(self.person), timeout=60, env={
                                  "PATH": "/usr/bin:/bin", "HOME": str(self.directory / "home"),
                                  "WARD_STATE_DIR": str(self.directory / "state"), "TMPDIR": str(self.directory / "tmp"),
                                  "WARD_RUNTIME_DIR": str(self.directory / "runtime")})
        if check and done.returncode:
            sys.exit(f"ward {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def count(self):
        """What is there now: name -> number."""
        leaks.reap()
        below = leaks.descendants(os.getpid())
        return {
            "processes": len(below),
            "namespaces": len(namespaces(below)),
            "mounts": mounts(str(self.directory)),
            "control groups": len(leaks.cgroups()),
            "files of ward's": files(self.directory / "state") + files(self.directory / "runtime"),
            "files in the workspace": files(self.directory / "ws"),
            "temporary files": files(self.directory / "tmp"),
            "unix sockets": unix_sockets(str(self.directory)),
            "shared memory": shared_memory(self.person.pw_uid),
        }


def namespaces(pids):
    """Namespaces of those processes that are not this process's own."""
    found = set()
    for pid in pids:
        for name in NAMESPACES:
            try:
                link = os.readlink(f"/proc/{pid}/ns/{name}")
                if link != os.readlink(f"/proc/self/ns/{name}"):
                    found.add(link)
            except OSError:
                pass
    return found


def mounts(directory):
    """Mounts that name the directory, and namespaces that are held by a mount."""
    with open("/proc/self/mountinfo") as f:
        return sum(directory in line or " - nsfs " in line for line in f)


def files(directory):
    return sum(len(names) + len(dirs) for _, dirs, names in os.walk(directory))


def unix_sockets(directory):
    with open("/proc/net/unix") as f:
        return sum(directory in line or "@ward" in line for line in f)


def shared_memory(uid):
    with open("/proc/sysvipc/shm") as f:
        return sum(line.split()[7] == str(uid) for line in f.readlines()[1:])


def kernel_net_namespaces():
    """How many network namespaces the kernel has in all, or None where that cannot be read."""
    try:
        with open("/proc/slabinfo") as f:
            for line in f:
                if line.startswith("net_namespace "):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def settle(scene, before):
    """Counts until nothing is more than before, or the time is up."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        after = scene.count()
        if all(after[k] <= before[k] for k in before) or time.monotonic() > deadline:
            return after
        time.sleep(0.2)


def progress(what, done, total):
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{what}: {done} of {total}", end=end, file=sys.stderr, flush=True)


def repeat(what, total, function):
    began = time.monotonic()
    for i in range(total):
        function(i)
        progress(what, i + 1, total)
    return time.monotonic() - began


def descriptors(pids):
    total = 0
    for pid in pids:
        try:
            total += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            pass
    return total


def table(title, seconds, before, after):
    """Prints one; returns whether nothing grew."""
    print(f"\n{title} ({seconds:.1f} s)\n  {'what':<28}{'before':>8}{'after':>8}")
    for name in before:
        verdict = "" if after[name] <= before[name] else "   LEAKED"
        print(f"  {name:<28}{before[name]:>8}{after[name]:>8}{verdict}")
    return all(after[name] <= before[name] for name in before)


def soak_runs(scene, total):
    def one(i):
        scene.ward("run", "--", "/bin/sh", "-c", "sleep 60 & setsid sleep 60 & echo x > /tmp/x" if i % 10 == 0 else ":")
    one(0)	# the state directory is made once
    before, spaces = scene.count(), kernel_net_namespaces()
    seconds = repeat(f"{scene.who}: runs", total, one)
    after = settle(scene, before)
    fine = table(f"{scene.who}: {total} runs", seconds, before, after)
    if spaces is not None:
        print(f"  {'net namespaces (kernel)':<28}{spaces:>8}{kernel_net_namespaces():>8}   for information: others make some too")
    return fine


def soak_cycles(scene, total):
    """Detached: create, exec, kill, remove."""
    def one(i):
        name = scene.ward("run", "-d", "--name", f"soak{i}", "--", "/bin/sleep", "600")
        scene.ward("exec", f"soak{i}", "/bin/true")
        scene.ward("kill", f"soak{i}")
        scene.ward("wait", f"soak{i}", check=False)
        scene.ward("rm", f"soak{i}")
        assert name
    one(0)
    before = scene.count()
    seconds = repeat(f"{scene.who}: detached sandboxes", total, one)
    return table(f"{scene.who}: {total} detached sandboxes: create, exec, kill, remove", seconds, before,
                 settle(scene, before))


def soak_execs(scene, total):
    """One sandbox that serves many execs: its supervisor and its first process keep no descriptor and no child."""
    clean = scene.count()
    scene.ward("run", "-d", "--name", "long", "--", "/bin/sleep", "6000")
    scene.ward("exec", "long", "/bin/true")

    def count():
        return {**scene.count(), "descriptors of its processes": descriptors(leaks.descendants(os.getpid()))}
    before = count()
    seconds = repeat(f"{scene.who}: execs", total, lambda i: scene.ward("exec", "long", "/bin/true"))
    deadline = time.monotonic() + SETTLE_S
    after = count()
    while any(after[k] > before[k] for k in before) and time.monotonic() < deadline:
        time.sleep(0.2)
        after = count()
    fine = table(f"{scene.who}: {total} execs in one sandbox", seconds, before, after)
    scene.ward("kill", "long")
    scene.ward("wait", "long", check=False)
    scene.ward("rm", "long")
    return table(f"{scene.who}: and after its end", 0, clean, settle(scene, clean)) and fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", 2000)))
    parser.add_argument("--cycles", type=int, default=int(os.environ.get("CYCLES", 500)))
    parser.add_argument("--only", choices=("root", "user"), help="as one of them only")
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get("WARD_BUILD", TOP / "build"))
    ctypes.CDLL(None).prctl(users.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if users.IS_ROOT:
        users.ensure()
        leaks.own_cgroups()
    who = [args.only] if args.only else ["root", "user"] if users.IS_ROOT else ["user"]
    fine = True
    base = tempfile.mkdtemp(prefix="ward-soak-", dir="/var/tmp")
    try:
        os.chmod(base, 0o755)
        ward = shutil.copy(build / "src/cli/ward", base)
        for name in who:
            scene = Scene(name, ward, base)
            for function, total in ((soak_runs, args.runs), (soak_cycles, args.cycles), (soak_execs, args.cycles)):
                if total:
                    fine = function(scene, total) and fine
    finally:
        shutil.rmtree(base, ignore_errors=True)
        if users.IS_ROOT:
            leaks.leave_cgroups()
    print("\nnothing was left behind" if fine else "\nsomething was left behind")
    return 0 if fine else 1


sys.exit(main())
