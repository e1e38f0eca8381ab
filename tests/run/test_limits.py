"""Limits: who holds them, what ends at them, and who must not suffer from them. Root has cgroups,
the ordinary user has the watch; `bare` takes the cgroups away from root too."""
import os
import time

from harness import by_turns, native_only, timeout, users
from harness.bare import bare


def limit(result, name):
    return result.report["limits"][name]


def stopped_by(t, r, name):
    """The run was ended by that limit, and says so everywhere."""
    t.equal(r.rc, 137, "exit code")
    t.check(limit(r, name)["hit"], f"the {name} limit is not reported as hit")
    t.contains(r.err, "stopped", "what ward says")


def not_stopped(t, r):
    t.equal(r.rc, 0, "exit code")
    for name, value in r.report["limits"].items():
        t.check(not value["hit"], f"the {name} limit is reported as hit")


def python(program):
    return ("/usr/bin/python3", "-c", program)


MANY_HOGS = """
import os, time
for i in range(6):
    if os.fork() == 0:
        block = bytearray(40 << 20)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
"""

SHARED_HOG = """
import mmap, time
block = mmap.mmap(-1, 256 << 20)
for i in range(0, 256 << 20, 4096):
    block[i] = 1
time.sleep(20)
"""

ZEROES = """
import ctypes, mmap, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
size = 192 << 30
at = libc.mmap(None, size, 1, 0x4022, -1, 0)	# read, private anonymous noreserve
libc.madvise(at, size, 15)			# no huge pages
for i in range(0, size, 2 << 20):
    ctypes.c_char.from_address(at + i).value
time.sleep(20)
"""


def test_memory_of_many_processes(t):
    r = t.ward("run", "--memory", "128Mi", "--", *python(MANY_HOGS), cwd=t.workspace(), report=True)
    stopped_by(t, r, "memory")
    t.check(r.seconds < 15, "it went on")
    t.check(r.report["memory_peak_bytes"] > 100 << 20, "the peak is not reported")


def test_shared_memory_counts(t):
    r = t.ward("run", "--memory", "128Mi", "--", *python(SHARED_HOG), cwd=t.workspace(),
               report=True)
    stopped_by(t, r, "memory")


def test_page_tables_count(t):
    r = t.ward("run", "--memory", "128Mi", "--", *python(ZEROES), cwd=t.workspace(), report=True)
    stopped_by(t, r, "memory")


def test_tmpfs_counts_as_memory(t):
    """Private mounts of limited size: together with the processes no more than the memory limit, in
    either order."""
    program = ("for d in /tmp /dev/shm /home/agent; do head -c 100M /dev/zero > $d/big; done; "
               "sleep 20")
    r = t.ward("run", "--memory", "128Mi", "--", "/bin/sh", "-c", program, cwd=t.workspace(),
               report=True)
    stopped_by(t, r, "memory")


def test_one_process_is_told(t):
    """As far as the kernel can tell it: an allocation that fails is better than a kill."""
    program = ("b = bytearray(64 << 20)\ntry:\n    c = bytearray(512 << 20)\nexcept MemoryError:\n"
               "    print('told')")
    r = t.ward("run", "--memory", "256Mi", "--", *python(program), cwd=t.workspace(), report=True)
    if limit(r, "memory")["held_by"] == "watch":
        t.equal((r.rc, r.out), (0, "told\n"), "what the program saw")
    else:
        stopped_by(t, r, "memory")


def test_forked_family_shares(t):
    """Ten processes that share 64 MiB are no 640 MiB."""
    program = """
import os, time
block = bytearray(64 << 20)
pids = [os.fork() or time.sleep(1) or os._exit(0) for i in range(10)]
for pid in pids:
    os.waitpid(pid, 0)
"""
    r = t.ward("run", "--memory", "256Mi", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


THREADS = """
import threading, time
threading.stack_size(1 << 17)
for i in range(%d):
    threading.Thread(target=time.sleep, args=(3.8,)).start()
"""


@by_turns
def test_threads_share_epoll_sets(t):
    """A hundred threads have one table of descriptors: 4 MB of entries are no 400."""
    program = """
import os, select
events = [os.eventfd(0) for i in range(500)]
sets = [select.epoll() for i in range(40)]
for s in sets:
    for e in events:
        s.register(e, select.EPOLLIN)
""" + THREADS % 100
    r = t.ward("run", "--memory", "64M", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


@by_turns
def test_threads_share_a_ruleset(t):
    """One empty set of Landlock's rules is one, however many threads have it."""
    program = """
import ctypes
ctypes.CDLL(None).syscall(444, (ctypes.c_uint64 * 2)(1, 0), ctypes.c_size_t(16), 0)
""" + THREADS % 140
    r = t.ward("run", "--memory", "512M", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


@by_turns
def test_threads_share_descriptors(t):
    """Many threads and many descriptors make a close look long, unless it sees that they have one
    table; nobody stands still for it."""
    program = """
import os, time
events = [os.eventfd(0) for i in range(4000)]
""" + THREADS % 700 + """
last, longest = time.monotonic(), 0
end = last + 3.5
while last < end:
    time.sleep(0.005)
    now = time.monotonic()
    last, longest = now, max(longest, now - last)
print('longest', longest)
"""
    r = t.ward("run", "--memory", "200M", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)
    t.check(float(r.out.split()[1]) < 1, f"it stood still: {r.out}")


@by_turns
def test_inherited_locks_count_once(t):
    """One open file with 10,000 locks, which 100 programs have inherited: 2 MB."""
    program = """
import fcntl, struct, subprocess
f = open('lock', 'w+')
for i in range(10000, 0, -1):
    fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 2 * i, 1, 0))	# F_OFD_SETLK
for p in [subprocess.Popen(['sleep', '3.8'], pass_fds=[f.fileno()]) for i in range(100)]:
    p.wait()
"""
    r = t.ward("run", "--memory", "100M", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


def test_idle_sockets_are_fine(t):
    """What they could hold is not what they hold."""
    program = """
import socket, time
pairs = [socket.socketpair() for i in range(700)]
for a, b in pairs:
    a.send(b'x' * 1000)
server = socket.create_server(('127.0.0.1', 0))
clients = [socket.create_connection(server.getsockname()) for i in range(50)]
time.sleep(1)
"""
    r = t.ward("run", "--memory", "256Mi", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


def test_sockets_in_sockets(t):
    """Full sockets that nobody has open: they lie in the queue of another one."""
    program = """
import array, socket, time
a, b = socket.socketpair()
for i in range(600):
    x, y = socket.socketpair()
    x.setblocking(False)
    try:
        while True:
            x.send(b'x' * 65536)
    except BlockingIOError:
        pass
    a.sendmsg([b'x'],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [x.fileno(), y.fileno()]))])
    x.close()
    y.close()
time.sleep(20)
"""
    r = t.ward("run", "--memory", "64Mi", "--", *python(program), cwd=t.workspace(), report=True)
    stopped_by(t, r, "memory")


def test_full_pipes_count(t):
    program = """
import os, time
def fill():
    for i in range(2000):
        r, w = os.pipe()
        os.set_blocking(w, False)
        try:
            while True:
                os.write(w, b'x' * 4096)
        except BlockingIOError:
            pass
for i in range(12):
    if os.fork() == 0:
        try:
            fill()
        finally:
            time.sleep(20)
            os._exit(0)
time.sleep(20)
"""
    r = t.ward("run", "--memory", "128Mi", "--", *python(program), cwd=t.workspace(), report=True)
    stopped_by(t, r, "memory")


def test_pipes_of_a_shell_are_fine(t):
    """Many small processes with pipes and full tables are no crime."""
    program = "for i in $(seq 40); do (sleep 1 | sleep 1 | sleep 1) & done; wait"
    r = t.ward("run", "--memory", "128Mi", "--", "/bin/sh", "-c", program, cwd=t.workspace(),
               report=True)
    not_stopped(t, r)


FORK_BOMB = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"


def test_fork_bomb(t):
    r = t.ward("run", "--pids", "32", "--", *python(FORK_BOMB), cwd=t.workspace(), report=True,
               timeout=40)
    stopped_by(t, r, "pids")


@by_turns
def test_shell_bomb(t):
    """bash waits between its tries."""
    r = t.ward("run", "--pids", "32", "--", "/bin/bash", "-c",
               "bomb() { bomb | bomb & }; bomb; sleep 50", cwd=t.workspace(),
               report=True, timeout=40)
    stopped_by(t, r, "pids")


def test_thread_bomb(t):
    program = """
import threading, time
threading.stack_size(1 << 17)
while True:
    try:
        threading.Thread(target=time.sleep, args=(60,)).start()
    except RuntimeError:
        pass
"""
    r = t.ward("run", "--pids", "32", "--", *python(program), cwd=t.workspace(), report=True,
               timeout=40)
    stopped_by(t, r, "pids")


def test_few_refused_forks_do_not_end_it(t):
    program = """
import os, time
made = refused = 0
for i in range(40):
    try:
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
        made += 1
    except BlockingIOError:
        refused += 1
time.sleep(0.3)
print(made + refused, refused > 0, made <= 31)
"""
    r = t.ward("run", "--pids", "32", "--", *python(program), cwd=t.workspace(), report=True)
    t.equal((r.rc, r.out), (0, "40 True True\n"), "what the program saw")
    t.check(limit(r, "pids")["hit"], "the limit is not reported as hit")


ALL_ALLOWED = """
import os, sys, threading, time
for i in range(int(sys.argv[1])):
    try:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError:
        print("refused", flush=True)
        break
time.sleep(float(sys.argv[2]))
print(len(os.listdir("/proc/self/task")), flush=True)
os._exit(0)
"""


@by_turns
@native_only("it waits for longer than a fork bomb may last; escape res_fork_bomb has the count")
@timeout(60)
def test_all_that_is_allowed_is_no_hit(t):
    """Exactly as many as allowed, for longer than a fork bomb may last, are no offence; one more
    is, and ends nothing by itself where the kernel refuses it. ward-init is one of them."""
    for wrap in {(), bare(t)}:
        for more, seconds, hit in ((0, 7, False), (5, 3, True)):
            r = t.ward("run", "--pids", "32", "--", *python(ALL_ALLOWED), str(30 + more),
                       str(seconds), cwd=t.workspace(), report=True, wrap=wrap, timeout=40)
            held = limit(r, "pids")["held_by"]
            t.equal(limit(r, "pids")["hit"], hit, f"{more} too many, held by {held}: {r}")
            if not hit:
                t.equal((r.rc, r.out, r.err), (0, "31\n", ""), f"held by {held}")
            elif held != "watch":	# which has only the end
                t.check(r.rc == 0 and r.out in ("refused\n31\n", "refused\n32\n"), r)


def test_a_few_processes_are_enough(t):
    """What builds the sandbox beside the first process does not count when there is no room for
    it."""
    for _ in range(20):
        r = t.ward("run", "--pids", "2", "--", "/bin/true", cwd=t.workspace(), report=True)
        t.equal(r.rc, 0, f"a run with two processes: {r.err}")
        t.equal(r.err, "", "a run with two processes")


BURN = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end:\n    pass"


def test_cpu(t):
    r = t.ward("run", "--cpus", "0.1", "--", *python(BURN), cwd=t.workspace(), report=True)
    t.equal(r.rc, 0, "exit code")
    t.check(r.report["cpu_ms"] < 600,
            f"{r.report['cpu_ms']} ms of processor time in {r.seconds:.1f} s")
    t.check(limit(r, "cpu")["held_by"] != "none", "nothing holds the limit")


def test_disk_by_one_file(t):
    where = t.workspace()
    r = t.ward("run", "--disk", "16Mi", "--", "/bin/sh", "-c",
               "head -c 100M /dev/zero > big; sleep 20", cwd=where, report=True)
    stopped_by(t, r, "disk")
    t.check(os.path.getsize(os.path.join(where, "big")) < 20 << 20,
            "more was written than the limit allows")


def test_disk_by_many_files(t):
    program = ("import time\nfor i in range(100000):\n    open(f'f{i}', 'w').write('x' * 65536)\n"
               "time.sleep(20)")
    where = t.workspace()
    r = t.ward("run", "--disk", "16Mi", "--", *python(program), cwd=where, report=True)
    stopped_by(t, r, "disk")


def test_disk_by_allocation(t):
    """fallocate writes nothing, and no process counts it."""
    program = ("import os, time\nfor i in range(64):\n    os.posix_fallocate(os.open(f'f{i}', "
               "os.O_CREAT | os.O_RDWR), 0, 4 << 20)\ntime.sleep(20)")
    r = t.ward("run", "--disk", "64Mi", "--", *python(program), cwd=t.workspace(), report=True)
    stopped_by(t, r, "disk")


def alone_on_disk(t):
    """A workspace on a file system of its own, and the prefix that shows it: what hides from every
    look is known only by the free space, which others change by what they remove meanwhile. Without
    root: the common one."""
    where = t.workspace()
    if not users.IS_ROOT:
        return where, ()
    owner = f"uid={t.person.pw_uid},gid={t.person.pw_gid},mode=0700,size=256m"
    return where, ("unshare", "--mount", "sh", "-c",
                   f'mount -t tmpfs -o {owner} none {where} && exec "$@"', "sh")


def test_disk_hidden_in_a_socket(t):
    """A file without a name whose only descriptor is in a message that nobody reads."""
    program = """
import array, os, socket, time
a, b = socket.socketpair()
for i in range(8):
    fd = os.open('.', os.O_TMPFILE | os.O_RDWR)
    os.posix_fallocate(fd, 0, 8 << 20)
    a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
    os.close(fd)
time.sleep(20)
"""
    where, wrap = alone_on_disk(t)
    r = t.ward("run", "-w", where, "--disk", "32Mi", "--", *python(program), report=True, wrap=wrap)
    stopped_by(t, r, "disk")


def test_disk_behind_a_closed_door(t):
    """In a directory that its owner may not enter."""
    program = """
import os, time
os.mkdir('d')
os.chdir('d')
for i in range(8):
    os.posix_fallocate(os.open(f'f{i}', os.O_CREAT | os.O_RDWR), 0, 8 << 20)
os.closerange(3, 100)
os.chmod('.', 0)
time.sleep(20)
"""
    where = t.workspace()
    t.defer(lambda: os.chmod(os.path.join(where, "d"), 0o700))
    r = t.ward("run", "--disk", "32Mi", "--", *python(program), cwd=where, report=True)
    stopped_by(t, r, "disk")


def test_inodes(t):
    program = "import time\nfor i in range(100000):\n    open(f'f{i}', 'w').close()\ntime.sleep(20)"
    where = t.workspace()
    r = t.ward("run", "--set", "resources.inode_limit=500", "--", *python(program), cwd=where,
               report=True)
    stopped_by(t, r, "inodes")


def test_written_and_removed_is_fine(t):
    """The limit is on what lies there, not on what passed through."""
    program = "for i in $(seq 20); do head -c 8M /dev/zero > f; rm f; done; sleep 0.3"
    r = t.ward("run", "--disk", "32Mi", "--", "/bin/sh", "-c", program, cwd=t.workspace(),
               report=True)
    not_stopped(t, r)


def fill_elsewhere(directory):
    for i in range(24):
        with open(os.path.join(directory, f"f{i}"), "wb") as f:
            f.write(bytes(4 << 20))
        time.sleep(0.05)


@by_turns
def test_others_fill_the_disk(t):
    """Somebody outside fills the same file system: the sandbox goes on, also with memory files,
    which are on no disk (there are none where the watch holds memory)."""
    elsewhere = t.fresh_dir()
    t.background(fill_elsewhere, elsewhere)
    program = ("import os, time\ntry:\n    for _ in range(3): os.write(os.memfd_create('memory'), "
               "bytes(12 << 20))\nexcept OSError as e:\n    assert e.errno == 38\n"
               "for i in range(30):\n    open('mine', 'a').write('x' * 65536)\n    time.sleep(0.1)")
    r = t.ward("run", "--disk", "16Mi", "--", *python(program), cwd=t.workspace(), report=True)
    not_stopped(t, r)


def test_output_flood(t):
    r = t.ward("run", "--set", "resources.output_limit=1Mi", "--", "/bin/sh", "-c", "yes",
               cwd=t.workspace(), report=True)
    t.equal(r.rc, 137, "exit code")
    t.check(limit(r, "output")["hit"], "not reported")
    t.equal(len(r.out_bytes), 1 << 20, "bytes that were passed on")
    t.check(len(r.out_bytes) < 4 << 20, f"{len(r.out_bytes)} bytes came out")


def test_time(t):
    r = t.ward("run", "--timeout", "0.5", "--", "/bin/sleep", "30", cwd=t.workspace(), report=True)
    t.equal(r.rc, 124, "exit code")
    t.check(limit(r, "timeout")["hit"], "not reported")
    t.check(r.seconds < 5, "it went on")


def test_open_files(t):
    program = ("import os\nn = 0\ntry:\n    while True:\n        os.dup(0)\n        n += 1\n"
               "except OSError:\n    print(n < 64)")
    r = t.ward("run", "--set", "resources.open_files=64", "--", *python(program), cwd=t.workspace(),
               report=True)
    t.equal((r.rc, r.out), (0, "True\n"), "what the program saw")


def test_the_least_of_open_files(t):
    """As few as the policy can say, with many mounts, a network and more descriptors inherited than
    the sandbox may have: building it takes none of its own."""
    ws = t.workspace()
    for i in range(50):
        os.mkdir(os.path.join(ws, f"m{i}"))
    few = ("--set", "resources.open_files=16")
    mounts = [word for i in range(50) for word in ("--ro", f"{ws}/m{i}:/srv/m{i}")]
    limits = ("--", "/bin/sh", "-c", "ulimit -n; ulimit -Hn; ls / > /dev/null && echo FINE")
    r = t.ward("run", *few, *limits, cwd=ws,
               wrap=["/bin/bash", "-c",
                     'for i in {1..80}; do exec {fd}< /dev/null; done; exec "$@"', "sh"])
    t.equal((r.rc, r.out), (0, "16\n16\nFINE\n"), r.err)
    r = t.ward("run", *few, *mounts, "--allow", "web.test", "--hints", *limits, cwd=ws)
    t.equal((r.rc, r.out), (0, "16\n16\nFINE\n"), r.err)
    r = t.ward("run", "--review", "-t", *few, *limits, cwd=ws)
    t.equal((r.rc, r.out.split()), (0, ["16", "16", "FINE"]), r.err)
    box = t.ward("run", "-d", *few, cwd=ws).out.strip()
    t.defer(t.ward, "rm", "-f", box)
    r = t.ward("exec", box, *limits)
    t.equal((r.rc, r.out), (0, "16\n16\nFINE\n"), r.err)
    r = t.ward("run", "--set", "resources.open_files=15", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "resources.open_files: expected a whole number, from 16 to 1048576"
            in r.err, r.err)


def test_result_names_the_holders(t):
    r = t.ward("run", "--cpus", "1", "--", "/bin/true", cwd=t.workspace(), report=True)
    not_stopped(t, r)
    held = {name: value["held_by"] for name, value in r.report["limits"].items()}
    t.equal(held["disk"], "watch", "disk")
    t.equal(held["open_files"], "rlimit", "open files")
    if held["memory"].startswith("cgroup"):
        t.equal({held["memory"], held["pids"], held["cpu"]}, {held["memory"]}, "memory, pids, cpu")
    else:
        t.equal((held["memory"], held["cpu"]), ("watch", "watch"), "memory, cpu")
        t.check(held["pids"] in ("rlimit", "watch"), "pids")


@by_turns
def test_without_cgroups(t):
    """Root in a container that shows no cgroup: every limit is held all the same."""
    rows = (("memory", ("--memory", "128Mi"), MANY_HOGS), ("pids", ("--pids", "32"), FORK_BOMB))
    for name, options, program in rows:
        r = t.ward("run", *options, "--", *python(program), cwd=t.workspace(), report=True,
                   wrap=bare(t), timeout=40)
        t.check(not limit(r, name)["held_by"].startswith("cgroup"), "there is a cgroup")
        stopped_by(t, r, name)
    r = t.ward("run", "--cpus", "0.1", "--", *python(BURN), cwd=t.workspace(), report=True,
               wrap=bare(t))
    t.equal((r.rc, limit(r, "cpu")["held_by"]), (0, "watch"), "exit code and holder")
    t.check(r.report["cpu_ms"] < 600,
            f"{r.report['cpu_ms']} ms of processor time in {r.seconds:.1f} s")


def test_required_cgroup_is_refused(t):
    r = t.ward("run", "--set", "require.limits=cgroup", "--", "/bin/true", cwd=t.workspace(),
               wrap=bare(t))
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "require.limits", "the refusal")
    t.contains(r.err, "remedy", "the refusal")


def test_limits_off(t):
    off = [x for name in ("memory_limit", "pids_limit", "disk_limit", "inode_limit", "open_files")
           for x in ("--set", f"resources.{name}=none")]
    r = t.ward("run", *off, "--", "/bin/true", cwd=t.workspace(), report=True)
    not_stopped(t, r)
    for name, value in r.report["limits"].items():
        t.equal((name, value["value"], value["held_by"]), (name, None, "none"), "limit")


def test_no_cgroup_is_left(t):
    """After the end, however it came, no directory of the run remains (the harness looks too)."""
    for program in ("exit 0", "kill -9 $$", "sleep 60 & exit 3"):
        r = t.ward("run", "--memory", "64Mi", "--pids", "16", "--cpus", "1", "--", "/bin/sh", "-c",
                   program,
                   cwd=t.workspace(), report=True)
        run = r.report["run"]
        found = [path for path, dirs, files in os.walk("/sys/fs/cgroup")
                 if run in os.path.basename(path)]
        t.equal(found, [], "directories")


