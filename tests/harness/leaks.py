"""Nothing is left behind: looked for after every test, and a failure of that test.

Processes: the test's process is a child subreaper, so whatever outlives its parent is a descendant
of the test, whoever made it and in whatever namespace it lives. Mounts: a line of the host's mount
table that names the test's directory. Control groups: a directory "ward-*" that was not there
before and has no process; those of sandboxes that run beside this test have some. Where root runs
the tests they have control groups of their own (own_cgroups), below which ward makes its, so that
other users of the machine are not taken for leaks. Files: what is still in the state and runtime
directories.
"""
import os
import signal
import time

from . import users

GRACE_S = 4.0
# What may stay in the state directory after a run: what the user asked ward to keep, which runsc
# there is, and the sandboxes' /etc.
KEPT = ("trust", "trusted", "written", "quarantine", "lock", "caches", "homes", "images", "wasm",
        "gvisor-runtime", "vm", "now", "agents", "mcp-servers")


def _parents():
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                fields = f.read().rsplit(b")", 1)[1].split()
            table[int(name)] = (int(fields[1]), fields[0].decode())
        except (OSError, IndexError):
            pass
    return table


def descendants(root):
    """Every live process below root."""
    table = _parents()
    found, level = set(), {root}
    while level:
        level = {pid for pid, (parent, _) in table.items() if parent in level and pid not in found}
        found |= level
    return {pid for pid in found if table[pid][1] not in "ZX"}


def describe(pid):
    """A process in words."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            command = f.read().replace(b"\0", b" ").decode(errors="replace")[:120]
        with open(f"/proc/{pid}/comm") as f:
            return f"{pid} ({f.read().strip()}) {command}"
    except OSError:
        return str(pid)


def reap():
    """Collects the dead children that were handed to this process."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


OWN = []	# control groups of this run of the tests


def _remove_groups(path):
    for top, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(top)
        except OSError:
            pass


def _remove_stale(directory):
    """Groups of runs of the tests that were killed."""
    for name in os.listdir(directory):
        number = name.removeprefix("tests-")
        if number != name and number.isdigit() and not os.path.exists(f"/proc/{number}"):
            _remove_groups(os.path.join(directory, name))


def own_cgroups():
    """Moves this process into control groups of its own, one per hierarchy of version 1. Undone by
    leave_cgroups()."""
    with open("/proc/self/cgroup") as f:
        lines = [line.strip().split(":", 2) for line in f]
    for _, controllers, path in lines:
        name = controllers.removeprefix("name=")
        if name not in ("memory", "cpu", "cpuacct", "pids", "freezer", "cpu,cpuacct"):
            continue
        group = f"/sys/fs/cgroup/{name}{path.rstrip('/')}/tests-{os.getpid()}"
        try:
            _remove_stale(os.path.dirname(group))
            os.mkdir(group)
            OWN.append(group)
            with open(group + "/cgroup.procs", "w") as f:
                f.write("0")
        except OSError:
            pass


def leave_cgroups():
    """Goes back to where own_cgroups() came from. Returns what cannot be removed."""
    messages = []
    for group in OWN:
        try:
            with open(os.path.dirname(group) + "/cgroup.procs", "w") as f:
                f.write("0")
            os.rmdir(group)
        except OSError as error:
            messages.append(f"{group}: {error}")
    return messages


def cgroups():
    """Every control group of ward's that can come from these tests: path -> (inode, owner)."""
    found = {}
    for root in OWN or ["/sys/fs/cgroup"]:
        for top, dirs, _ in os.walk(root):
            for name in dirs:
                if name.startswith("ward-"):
                    path = os.path.join(top, name)
                    try:
                        status = os.stat(path)
                        found[path] = (status.st_ino, status.st_uid)
                    except OSError:
                        pass
    return found


def _populated(path):
    for top, _, files in os.walk(path):
        for name in ("cgroup.procs", "tasks"):
            if name not in files:
                continue
            try:
                with open(os.path.join(top, name)) as f:
                    if f.read(1):
                        return True
            except OSError:
                pass
    return False


def _leaked_processes(pid):
    deadline = time.monotonic() + GRACE_S
    while True:
        reap()
        left = descendants(pid)
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    messages = [f"process left behind: {describe(p)}" for p in sorted(left)]
    for p in left:
        try:
            os.kill(p, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return messages


def _is_open(path):
    """Whether somebody has the directory open: the supervisor of a run that another test started,
    as long as that is setting up."""
    for number in os.listdir("/proc"):
        try:
            names = os.listdir(f"/proc/{number}/fd") if number.isdigit() else ()
            if any(os.readlink(f"/proc/{number}/fd/{name}") == path for name in names):
                return True
        except OSError:
            pass
    return False


def _leaked_cgroups(before, uid):
    def suspects():
        found = cgroups()
        return {p for p, (inode, owner) in found.items()
                if before.get(p) != found[p] and owner == uid and not _populated(p)}
    left = suspects()
    deadline = time.monotonic() + GRACE_S
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left &= suspects()
    left = {path for path in left if not _is_open(path)}
    for path in left:
        _remove_groups(path)
    return [f"cgroup left behind: {p}" for p in sorted(left)]


def _leaked_mounts(directory):
    with open("/proc/self/mountinfo") as f:
        return [f"mount left behind: {line.strip()}" for line in f if directory in line]


def is_free_record(path):
    """Whether it is a file for the record of a run that nobody uses; few of them stay."""
    top, name = os.path.split(path)
    return (os.path.basename(top) == "live" and os.path.basename(os.path.dirname(top)) != "audit"
            and name in "01234567"
            and os.path.getsize(path) == 0)


def _leaked_state(directories):
    messages = []
    for directory in directories:
        for top, dirs, files in os.walk(directory):
            dirs[:] = [d for d in dirs if d not in KEPT]
            # journals are kept; those of runs that go on (live) are not
            if os.path.basename(top) == "audit":
                dirs[:] = [d for d in dirs if d != "runs"]
                files = [name for name in files
                         if not name.startswith(("index.", "key", "sealed", "retention"))]
            # what waits for its user is kept; what is half made or half removed is not
            if os.path.basename(top) == "review":
                dirs[:] = [d for d in dirs if d.startswith(".")]
                messages += [f"directory left behind: {os.path.join(top, d)}" for d in dirs]
            # the private git directories of a review that waits are a part of it
            if top == os.path.join(directory, "git"):
                dirs[:] = [d for d in dirs
                           if not os.path.isdir(os.path.join(directory, "review", d))]
            if os.path.basename(top) == "kept-etc":	# what is half made is not kept
                messages += [f"left behind: {os.path.join(top, name)}" for name in dirs + files
                             if name.startswith("make-")]
                dirs[:] = []
            messages += [f"file left behind: {os.path.join(top, name)}" for name in files
                         if not name.startswith(KEPT)
                         and not is_free_record(os.path.join(top, name))]
    return messages


def find(directory, state_dirs, cgroups_before, pid, uid):
    """All that the test of user uid in directory left; the processes and control groups among it
    are ended."""
    messages = _leaked_processes(pid)
    messages += _leaked_cgroups(cgroups_before, uid)
    messages += _leaked_mounts(directory)
    messages += _leaked_state(state_dirs)
    return messages


def snapshot():
    """What is there before a test."""
    return cgroups()


def with_rights(function, *args):
    """Calls function with root's rights where there are any."""
    if users.IS_ROOT:
        with users.as_root():
            return function(*args)
    return function(*args)
