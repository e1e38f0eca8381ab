"""A person with a workspace and ward's directories, for the commands that count or kill: make soak,
make fault."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from . import leaks, users

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
SETTLE_S = 15		# namespaces and control groups are freed by the kernel a moment later


class Scene:
    """Directories of one person, and ward run as that person."""

    def __init__(self, who, ward, base):
        self.who, self.person = who, users.entry(who)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{who}-", dir=base))
        self.ward_path = ward
        for name in ("state", "runtime", "home", "ws", "tmp"):
            (self.directory / name).mkdir(mode=0o700)
            os.chown(self.directory / name, self.person.pw_uid, self.person.pw_gid)
        os.chown(self.directory, self.person.pw_uid, self.person.pw_gid)

    def start(self, *words, **options):
        """Starts ward as that person."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([self.ward_path, *words], cwd=self.directory / "ws", text=True,
                                preexec_fn=lambda: users.drop(self.person), **options, env={
                                    "PATH": "/usr/bin:/bin", "HOME": str(self.directory / "home"),
                                    "WARD_STATE_DIR": str(self.directory / "state"),
                                    "TMPDIR": str(self.directory / "tmp"),
                                    "WARD_RUNTIME_DIR": str(self.directory / "runtime")})

    def call(self, *words, timeout=60):
        """Runs ward to its end: (exit code, output, errors)."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            sys.exit(f"ward {' '.join(words)} did not end within {timeout} s")
        return process.returncode, out, err

    def ward(self, *words, check=True):
        """Runs ward; its output. A failure ends the whole."""
        rc, out, err = self.call(*words)
        if check and rc:
            sys.exit(f"ward {' '.join(words)}: exit {rc}\n{out}{err}")
        return out.strip()

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

    def settle(self, before, count=None):
        """Counts until nothing is more than before, or the time is up."""
        count = count or self.count
        deadline = time.monotonic() + SETTLE_S
        while True:
            after = count()
            if all(after[k] <= before[k] for k in before) or time.monotonic() > deadline:
                return after
            time.sleep(0.1)


def namespaces(pids):
    """Namespaces of those processes that are not this process's own."""
    found = set()
    for pid in pids:
        for name in NAMESPACES:
            with contextlib.suppress(OSError):
                link = os.readlink(f"/proc/{pid}/ns/{name}")
                if link != os.readlink(f"/proc/self/ns/{name}"):
                    found.add(link)
    return found


def mounts(directory):
    """Mounts that name the directory, and namespaces that are held by a mount."""
    with open("/proc/self/mountinfo") as f:
        return sum(directory in line or " - nsfs " in line for line in f)


def files(directory):
    """Files and directories below directory, but for what is kept: the journals of runs that have
    ended, the sandboxes' /etc."""
    return sum(len([n for n in names if not leaks.is_free_record(os.path.join(top, n))])
               + len([n for n in dirs if n != "kept-etc"])
               for top, dirs, names in os.walk(directory)
               if "kept-etc" not in top.split("/") and os.path.basename(top) != "audit"
               and os.path.basename(os.path.dirname(top)) != "audit"
               or os.path.basename(top) == "live")


def unix_sockets(directory):
    """Sockets that are bound below directory or to a name of ward's."""
    with open("/proc/net/unix") as f:
        return sum(directory in line or "@ward" in line for line in f)


def shared_memory(uid):
    """System V segments of a user."""
    with open("/proc/sysvipc/shm") as f:
        return sum(line.split()[7] == str(uid) for line in f.readlines()[1:])


@contextlib.contextmanager
def scenes(build, only=None):
    """Gives a function that makes the scene of each person there is, in a directory that is removed
    at the end."""
    ctypes.CDLL(None).prctl(users.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if users.IS_ROOT:
        users.ensure()
        leaks.own_cgroups()
    base = tempfile.mkdtemp(prefix="ward-scene-", dir="/var/tmp")
    try:
        os.chmod(base, 0o755)
        ward = shutil.copy(pathlib.Path(build) / "src/cli/ward", base)
        people = [only] if only else ["root", "user"] if users.IS_ROOT else ["user"]
        yield [Scene(name, ward, base) for name in people]
    finally:
        shutil.rmtree(base, ignore_errors=True)
        if users.IS_ROOT:
            leaks.leave_cgroups()
