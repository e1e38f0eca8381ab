"""ward checkpoint and ward run --restore: what runs behind gVisor is kept at one moment, and goes
on from there in other sandboxes under the same policy. What cannot be kept, or must not go on, is
refused; whoever is killed meanwhile, nothing is left and the sandbox goes on."""
import contextlib
import fcntl
import hashlib
import json
import os
import random
import signal
import struct
import time

from harness import needs, timeout
from harness.boxes import box, clean, listed, supervisor
from harness.vm import DIR, DIR_END, END, LINK, file_record, record
from run.test_gvisor import GVISOR, other_version, processes, usable

COUNTER = r"""
import mmap, os, signal, socket, sys, time
n, mine = 0, open("/tmp/MARKERPRIVATE", "w+")
shared = open("/dev/shm/MARKERSHARED",
              "w+"); shared.truncate(4096); shared = mmap.mmap(shared.fileno(),
                                                               4096); shared[:4] = b"memo"
mine.write("private"); mine.flush()
os.makedirs("/home/agent/deep/er")
open("/home/agent/deep/er/closed", "w").write("home"); os.chmod("/home/agent/deep/er/closed", 0)
os.symlink("/tmp/MARKERPRIVATE", "/home/agent/link")
listener = socket.create_server(("127.0.0.1", 4444))
client = socket.create_connection(("127.0.0.1", 4444))
server = listener.accept()[0]
signal.signal(signal.SIGUSR1, lambda *a: print("signal", flush=True))
def look():
    client.sendall(b"loop"); mine.seek(0)
    return [mine.read(), server.recv(4).decode(), os.path.getsize("/home/agent/deep/er/closed"),
            os.readlink("/home/agent/link"), oct(os.stat("/tmp").st_mode), shared[:4].decode(),
            open("/dev/shm/MARKERSHARED").read(4)]
while True:
    n += 1
    print(n, *look(), flush=True)
    for name in ("end", "end-" + os.environ.get("WHO", "")):
        if os.path.exists(name):
            sys.exit(7)
    time.sleep(0.05)
"""
LINE = ["private", "loop", "4", "/tmp/MARKERPRIVATE", "0o41777", "memo", "memo"]

WRITER = r"""
import os, time
n = 0
while True:
    n += 1
    with open("numbers", "a") as f:
        f.write("%d\n" % n)
    time.sleep(0.002)
"""


def numbers(text):
    """What the counter has counted."""
    return [int(line.split()[0]) for line in text.splitlines() if line[:1].isdigit()]


def counting(t, run, least=2):
    """Until it has counted so far."""
    t.wait_until(lambda: (numbers(t.ward("logs", run).out) or [0])[-1] >= least, 20,
                 "it does not count")


def kept(t):
    """What the store holds: files and what ward says of them."""
    directory = os.path.join(t.environment()["WARD_STATE_DIR"], "checkpoints")
    files = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    return files, {c["name"]: c
                   for c in json.loads(t.ward("checkpoint", "ls", "--json").out)["checkpoints"]}


@contextlib.contextmanager
def full_disk(t):
    """The store on a file system that is too small."""
    directory = os.path.join(t.environment()["WARD_STATE_DIR"], "checkpoints")
    t.run("mount", "-t", "tmpfs", "-o",
          f"size=1m,mode=0700,uid={t.person.pw_uid},gid={t.person.pw_gid}", "ward-test", directory,
          root=True, check=True)
    try:
        yield
    finally:
        t.run("umount", directory, root=True, check=True)


def journal(t, run):
    """What the journal has about checkpoints of a sandbox."""
    events = [json.loads(line) for line in t.ward("audit", "show", run, "--json").out.splitlines()]
    return [e["action"] for e in events if e["kind"] == "state.change"
            and e["change"] == "checkpoint" and e["object"] == run]


def drop(t):
    """Ends what runs, removes what is kept: nothing is left."""
    names = list(kept(t)[1])
    t.equal(t.ward("checkpoint", "rm", *names).rc if names else 0, 0)
    t.equal(kept(t), ([], {}), "the store")
    clean(t)


def files_of(t, name):
    """The record and the image of one."""
    directory = os.path.join(t.environment()["WARD_STATE_DIR"], "checkpoints")
    path = os.path.join(directory, name + ".record")
    image = next(line.split()[1] for line in open(path, "rb").read().split(b"\n")
                 if line.startswith(b"image "))
    return path, os.path.join(directory, image.decode())


@needs("unsanitized")
@timeout(120)
def test_goes_on(t):
    """A counter, its private files, its home and its connection go on: in the sandbox itself, and
    twice from its checkpoint, as sandboxes of their own with exec, pause, signals, exit codes,
    report and events."""
    usable(t)
    ws = t.workspace({"count.py": COUNTER})
    run = box(t, *GVISOR, "--name", "first", "--", "python3", "count.py", cwd=ws)
    counting(t, run, 3)
    r = t.ward("checkpoint", "first", "one", "--json")
    t.equal(r.rc, 0, r.err)
    told = json.loads(r.out)
    t.equal((told["name"], told["box"], told["stopped"]), ("one", run, False))
    files, known = kept(t)
    t.equal((len(files), list(known), known["one"]["command"], known["one"]["damage"],
             known["one"]["bytes"]), (2, ["one"], ["python3", "count.py"], None, told["bytes"]))
    for name in files:
        path = os.path.join(t.environment()["WARD_STATE_DIR"], "checkpoints", name)
        t.equal(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700, "the directory")
        t.check(os.stat(path).st_mode & 0o777 in ((0o600,) if t.as_user == "user"
                                                  else (0o600, 0o444)),
                (name, oct(os.stat(path).st_mode)))
    at = numbers(t.ward("logs", run).out)[-1]
    counting(t, run, at + 3)
    second = box(t, *GVISOR, "--name", "second", "--restore", "one", cwd=t.directory)
    t.check(second != run, "the id")
    counting(t, second, at + 3)
    lines = t.ward("logs", second).out.splitlines()
    t.check(3 <= int(lines[0].split()[0]) <= at + 1 and lines[0].split()[1:] == LINE, lines[:2])
    t.equal(numbers("\n".join(lines)),
            list(range(int(lines[0].split()[0]), int(lines[-1].split()[0]) + 1)),
            "no number is missing")
    r = t.ward("exec", second, "--", "sh", "-c", "cat /tmp/MARKERPRIVATE; exit 4")
    t.equal((r.rc, r.out), (4, "private"), r.err)
    t.equal(t.ward("kill", "--signal", "USR1", second).rc, 0)
    t.wait_until(lambda: "signal\n" in t.ward("logs", second).out, 20, "no signal comes")
    t.equal(t.ward("pause", second).rc, 0)
    still = numbers(t.ward("logs", second).out)[-1]
    time.sleep(0.3)
    t.equal(numbers(t.ward("logs", second).out)[-1], still, "it is paused")
    r = t.ward("checkpoint", second, "two")
    t.check(r.rc == 125 and "paused" in r.err and "ward resume" in r.err, r)
    t.equal(t.ward("resume", second).rc, 0)
    counting(t, second, still + 2)
    r = t.ward("checkpoint", second, "two")	# of one that came from a checkpoint
    t.equal(r.rc, 0, r.err)
    t.write(ws, {"end": ""})
    for name in ("one", "two"):
        r = t.ward("run", *GVISOR, "--restore", name, cwd=ws, report=True)
        t.equal((r.rc, r.report["exit"]["code"], r.report["engine"], len(numbers(r.out))),
                (7, 7, "gvisor", 1), r.err + r.out)
    r = t.ward("wait", run, second)
    t.equal(r.out.split(), ["7", "7"], r.err)
    events = [json.loads(line) for line in t.ward("audit", "show", second,
                                                  "--json").out.splitlines()]
    t.check(any(e["kind"] == "state.change" and e["change"] == "restore" and e["object"] == "one"
                for e in events), events[:4])
    events = [json.loads(line) for line in t.ward("audit", "show", run, "--json").out.splitlines()]
    t.check([e for e in events if e["kind"] == "api.call" and e["object"] == "checkpoint"], events)
    t.equal((journal(t, run), journal(t, second)), (["allow"], ["allow"]), "what the journals say")
    r = t.ward("checkpoint", "rm", "one", "two", "nothere")
    t.check(r.rc == 125 and "no checkpoint nothere" in r.err, r)
    t.equal(kept(t), ([], {}), "after rm")
    clean(t)


@needs("unsanitized")
def test_ends_at_the_moment(t):
    """With --stop nothing that is not in the checkpoint happens: the last number that was written
    and the first after the restore follow each other. The same from an idle sandbox."""
    usable(t)
    ws = t.workspace({"write.py": WRITER})
    run = box(t, *GVISOR, "--", "python3", "write.py", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "numbers"))
                 and t.read(ws, "numbers").count("\n") > 30, 20, "it does not write")
    r = t.ward("checkpoint", "--stop", run, "moment")
    t.equal(r.rc, 0, r.err)
    t.check(not listed(t, "-a")[run]["alive"] if "alive" in listed(t, "-a")[run]
            else listed(t, "-a")[run]["state"] != "running", listed(t, "-a")[run])
    t.equal(journal(t, run), ["allow"], "with --stop")
    before = t.read(ws, "numbers").split()
    again = box(t, *GVISOR, "--restore", "moment", cwd=ws)
    t.wait_until(lambda: t.read(ws, "numbers").count("\n") > len(before) + 30, 20,
                 "it does not go on")
    t.equal(t.ward("kill", again).rc, 0)
    after = t.read(ws, "numbers").split()
    t.equal(after[:-1], [str(i + 1) for i in range(len(after) - 1)], "every number once")
    idle = box(t, *GVISOR, cwd=ws)
    t.equal(t.ward("exec", idle, "--", "sh", "-c",
                   "echo MARKERIDLE > /tmp/x; mkdir -m 1777 /tmp/sticky; head -c 3000000 "
                   "/dev/urandom > /tmp/y; sha256sum < /tmp/y > /home/agent/sum").rc, 0)
    t.equal(t.ward("checkpoint", "--stop", idle, "idle").rc, 0)
    r = t.ward("run", *GVISOR, "--restore", "idle", cwd=ws)
    t.check(r.rc == 125 and "add -d" in r.err, r)
    idle = box(t, *GVISOR, "--restore", "idle", cwd=ws)
    r = t.ward("exec", idle, "--", "sh", "-c",
               "cat /tmp/x; stat -c %a /tmp/sticky; sha256sum < /tmp/y | cmp - /home/agent/sum")
    t.equal((r.rc, r.out), (0, "MARKERIDLE\n1777\n"), r.err)
    drop(t)


GUARDED = r"""
import os, time
def tries(action):
    try:
        return repr(action())
    except OSError as error:
        return error.strerror
open("before", "w").write("x")
while not os.path.exists("go"):
    time.sleep(0.02)
print(tries(lambda: open("secret.key").read()), tries(lambda: open("late.key").read()),
      tries(lambda: open(".git/config", "a")), tries(lambda: open(".git/hooks/pre-commit", "w")),
      tries(lambda: os.rename("before", ".git/config")),
      tries(lambda: open("/usr/bin/MARKERGVISOR", "w")), tries(lambda: os.listdir("/.ward/gvisor")),
      tries(lambda: open("/.ward/image", "rb")), sep="\n", flush=True)
b = bytearray(600 << 20)
time.sleep(60)
"""


@needs("unsanitized")
def test_guards_hold(t):
    """After a restore what is hidden (a file that came later, too) and protected stays so, nothing
    of ward's own is in view, and the memory limit holds."""
    usable(t)
    ws = t.git_repo({"secret.key": "MARKERSECRET", "look.py": GUARDED})
    options = (*GVISOR, "--memory", "300M", "--set", "filesystem.hide=['*.key']")
    run = box(t, *options, "--", "python3", "look.py", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "before")), 20, "it does not begin")
    r = t.ward("checkpoint", "--stop", run, "guards")
    t.equal(r.rc, 0, r.err)
    t.write(ws, {"late.key": "MARKERLATE", "go": ""})
    r = t.ward("run", *options, "--restore", "guards", cwd=ws)
    lines = r.out.splitlines()
    t.check("MARKER" not in r.out and len(lines) == 8, r.out + r.err)
    for line in lines[2:6]:
        t.check(line in ("Permission denied", "Read-only file system", "Device or resource busy",
                         "Invalid cross-device link"), (line, lines))
    t.equal(lines[6:], ["No such file or directory"] * 2, "ward's own")
    t.check(r.rc == 137 and "memory" in r.err, r)
    t.check("MARKERGVISOR" not in t.read(ws, ".git/config"), "the repository")
    drop(t)


SEMAPHORE = r"""
import multiprocessing, os, time
lock, n = multiprocessing.Lock(), 0
while True:
    with lock:
        n += 1
        print(n, flush=True)
    if os.path.exists("end"):
        raise SystemExit(7)
    time.sleep(0.05)
"""


@needs("unsanitized")
def test_deleted_shared_memory(t):
    """A semaphore is a mapped file in /dev/shm without a name: it is refused with the remedy, which
    is then seen to do."""
    usable(t)
    ws = t.workspace({"lock.py": SEMAPHORE})
    run = box(t, *GVISOR, "--", "python3", "lock.py", cwd=ws)
    counting(t, run)
    r = t.ward("checkpoint", run, "lock")
    t.check(r.rc == 125 and "deleted" in r.err and "resources.inode_limit=none" in r.err, r)
    remedy = ("--set", "resources.inode_limit=none")
    run = box(t, *GVISOR, *remedy, "--", "python3", "lock.py", cwd=ws)
    counting(t, run)
    r = t.ward("checkpoint", run, "lock", "--stop")
    t.equal(r.rc, 0, r.err)
    t.write(ws, {"end": ""})
    r = t.ward("run", *GVISOR, *remedy, "--restore", "lock", cwd=ws)
    t.check(r.rc == 7 and numbers(r.out)[0] > 1, r)
    drop(t)


@needs("unsanitized")
@timeout(120)
def test_what_is_refused(t):
    """Names, other engines, a network, a terminal, a review, a command beside, an open file that
    was deleted; another policy, engine, mount, workspace or runsc for a restore: each with its
    reason, and what runs goes on."""
    usable(t)
    ws = t.workspace({"count.py": COUNTER, "deleted.py": "import os, time\nf = open('gone', 'w'); "
                      "os.unlink('gone'); print(1, flush=True)\nwhile 1: time.sleep(1)\n"})
    run = box(t, *GVISOR, "--memory", "256M", "--", "python3", "count.py", cwd=ws)
    counting(t, run)
    for words, rc, why in (((run,), 2, "missing name for the checkpoint"),
                           ((run, "../x"), 125, "not a valid name"),
                           ((run, "ls"), 125, "not a valid name"),
                           ((run, "x" * 64), 125, "not a valid name"),
                           (("nobody", "x"), 125, "no sandbox"),
                           (("ls", "x"), 2, "takes no name"),
                           ((run, "x", "-q"), 2, "only works with ls"),
                           (("rm",), 2, "needs the name"),
                           (("rm", "../../x"), 125, "not a valid name"),
                           ((run, "a", "b"), 2, "too many")):
        r = t.ward("checkpoint", *words)
        t.check(r.rc == rc and why in r.err, (words, r))
    for options, why in ((("--", "sleep", "99"), "isolation: native does not support checkpoints"),
                         ((*GVISOR, "--allow", "nowhere.test", "--", "sleep", "99"), "network"),
                         ((*GVISOR, "--review", "--", "sleep", "99"), "review"),
                         ((*GVISOR, "-t", "--", "sleep", "99"), "terminal")):
        other = box(t, *options, cwd=ws)
        r = t.ward("checkpoint", other, "other")
        t.check(r.rc == 125 and why in r.err and "remedy: " in r.err, (options, r))
        t.ward("kill", other)
    other = box(t, *GVISOR, "--", "python3", "deleted.py", cwd=ws)
    counting(t, other, 1)
    r = t.ward("checkpoint", other, "other")
    t.check(r.rc == 125 and "deleted" in r.err and "goroutine" not in r.err, r)
    r = t.ward("exec", other, "--", "echo", "lives")
    t.equal((r.rc, r.out), (0, "lives\n"), r.err)
    p = t.ward_start("exec", run, "--", "sh", "-c", "echo begun; sleep 99")
    t.equal(p.stdout.readline(), b"begun\n")
    r = t.ward("checkpoint", run, "busy")
    t.check(r.rc == 125 and "ward exec" in r.err, r)
    p.terminate()
    p.wait()
    t.equal(t.ward("exec", run, "--", "sh", "-c", "sleep 555 & echo left").out, "left\n")
    r = t.ward("checkpoint", run, "left")
    t.check(r.rc == 125 and "sleep" in r.err and "left behind" in r.err, r)
    t.equal(t.ward("exec", run, "--", "pkill", "-x", "sleep").rc, 0)
    t.equal(t.ward("exec", run, "--", "python3", "-c",
                   "import os\nos.chdir('/tmp')\nfor i in range(201): os.mkdir('deep'); "
                   "os.chdir('deep')").rc, 0)
    r = t.ward("checkpoint", run, "deep")
    t.check(r.rc == 125 and "/tmp/deep/deep/" in r.err and "too long" in r.err, r)
    t.equal(t.ward("exec", run, "--", "rm", "-r", "/tmp/deep").rc, 0)
    with full_disk(t):
        r = t.ward("checkpoint", run, "full")
        t.check(r.rc == 125 and "No space left" in r.err and "WARD_STATE_DIR" in r.err, r)
        t.equal(kept(t), ([], {}), "a full disk")
    at = numbers(t.ward("logs", run).out)[-1]
    counting(t, run, at + 2)
    t.equal(kept(t), ([], {}), "a refusal left something")
    t.wait_until(lambda: t.ward("checkpoint", run, "one").rc == 0, 10,
                 "no checkpoint after the command's end")
    r = t.ward("checkpoint", run, "one")
    t.check(r.rc == 125 and "already" in r.err, r)
    more = t.fresh_dir()
    same = (*GVISOR, "--memory", "256M")
    for options, why in (((*GVISOR, "--memory", "512M"), "resources.memory_limit"),
                         ((*GVISOR, "--memory", "128M"), "resources.memory_limit"),
                         ((*same, "--ro", more), "host_mounts"),
                         (("--memory", "256M"), "isolation was gvisor"),
                         ((*same, "-w", more), "workspace"),
                         ((*same, "--set", "filesystem.hide=[x]"), "filesystem.hide"),
                         ((*same, "--allow", "nowhere.test"), "network"), ((*same, "-t"), "-t")):
        r = t.ward("run", *options, "--restore", "one", cwd=ws)
        t.check(r.rc == 125 and why in r.err and r.out == "", (options, r))
    r = t.ward("run", *same, "--restore", "one", cwd=ws, env=other_version(t))
    t.check(r.rc == 125 and "runsc was 20240729" in r.err, r)
    for words, why in ((("--restore", "one", "--", "true"), "unexpected argument"),
                       (("--restore", "nothere"), "no checkpoint nothere"),
                       (("--restore", "../one"), "not a valid name")):
        r = t.ward("run", *same, *words, cwd=ws)
        t.check(r.rc == 125 and why in r.err, (words, r))
    t.equal(t.ward("exec", run, "--", "true").rc, 0, "it goes on")
    drop(t)


def rewrite(path, change):
    """Changes the bytes of a file, whatever its mode."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(change(data))
    os.chmod(path, 0o444)


@needs("unsanitized")
@timeout(150)
def test_damaged(t):
    """An image that is cut, changed, or gone, and a record that is no record or of another version,
    are told, and no image goes for it; one that a taken-over kernel could have written, with a
    digest that fits, fails inside with 125 and nothing else."""
    usable(t)
    ws = t.workspace({"count.py": COUNTER, "end": ""})
    options = (*GVISOR, "--timeout", "15")
    run = box(t, *options, "--", "sleep", "999", cwd=ws)
    t.equal(t.ward("exec", run, "--", "touch", "/tmp/a").rc, 0)
    t.equal(t.ward("checkpoint", run, "good").rc, 0)
    record_file, image = files_of(t, "good")
    with open(record_file, "rb") as f, open(image, "rb") as g:
        text, data = f.read(), g.read()

    def flip(b):
        b[len(b) // 2] ^= 1
        return b

    for change, rc in ((lambda b: b[:-1], 1), (flip, 0), (lambda b: b"", 1)):
        rewrite(image, change)
        r = t.ward("checkpoint", "ls")
        t.check(r.rc == rc and ("damaged: its image was changed" in r.out) == (rc == 1),
                ("ls looks at the size alone", r))
        r = t.ward("run", *options, "--restore", "good", cwd=ws)
        t.check(r.rc == 125 and "damaged" in r.err and "rm good" in r.err, r)
        rewrite(image, lambda b: data)
    with open(record_file, "wb") as f:
        f.write(text.replace(b"checkpoint 1", b"checkpoint 2", 1))
    r = t.ward("checkpoint", "ls")
    t.check(r.rc == 1 and "damaged: cannot read its record" in r.out, r)
    t.equal(t.ward("checkpoint", "ls", "-q").out, "good\n")
    t.check(os.path.exists(image), "the image of a record that cannot be read")
    with open(record_file, "wb") as f:
        f.write(text)
    t.equal(t.ward("checkpoint", "ls").rc, 0, "as it was")
    rng = random.Random(7)
    tail = data[-16:]
    forged = [b"", b"x" * 100, data[: len(data) // 2] + tail, data[:-16] + b"\xff" * 8 + tail[8:],
              data[:-16] + (0).to_bytes(8, "little") + tail[8:],
              data[:-40] + rng.randbytes(24) + tail, rng.randbytes(300000) + tail]
    for _ in range(2):
        b = bytearray(data)
        for _ in range(200):
            b[rng.randrange(len(b) // 8)] = rng.randrange(256)
        forged.append(bytes(b))
    trees = int.from_bytes(tail[:8], "little")
    own = record(DIR, "", mode=0o755) + record(LINK, "out", len(ws),
                                               more=ws.encode()) + file_record("out/MARKERPLANTED",
                                                                               b"x") + record(
                                                                                   DIR_END, "",
                                                                                   mode=0o755) + record(END, "")
    # of the second tree
    own += record(DIR, "", mode=0o755) + record(DIR_END, "", mode=0o755) + record(END, "")
    own = struct.pack("<I", len(own)) + own + bytes(4)
    # a file through a link
    forged.append(data[:-16 - trees] + own + struct.pack("<Q", len(own)) + tail[8:])
    for i, b in enumerate(forged):
        rewrite(image, lambda old, new=b: new)
        with open(record_file, "wb") as f:
            lines = text.split(b"\n")
            f.write(b"\n".join(b"sha256 " + hashlib.sha256(b).hexdigest().encode()
                               if line.startswith(b"sha256 ") else b"bytes %d" % len(b)
                               if line.startswith(b"bytes ") else line for line in lines))
        r = t.ward("run", *options, "--restore", "good", cwd=ws, timeout=40)
        t.check(r.rc in (124, 125, 137) and r.out == "" and "gvisor: " in r.err, (i, r))
    t.contains(r.err, "private files of the checkpoint", "a file through a link")
    t.check(not os.path.exists(os.path.join(ws, "MARKERPLANTED")), "a link was followed")
    with open(record_file, "wb") as f:
        f.write(b"ward checkpoint 1\nimage ../../x\n")
    r = t.ward("run", *options, "--restore", "good", cwd=ws)
    t.check(r.rc == 125 and "record" in r.err, r)
    t.equal(t.ward("checkpoint", "ls").rc, 1, "a record that is none")
    t.equal(t.ward("checkpoint", "rm", "good").rc, 0)
    t.equal(kept(t), ([], {}), "after rm")
    clean(t)


@needs("unsanitized")
@timeout(150)
def test_nothing_left_by_kills(t):
    """The client, what makes the checkpoint inside, gVisor's kernel, the runner or the supervisor
    is killed at some moment: there is a whole checkpoint or none, no file beside, and the sandbox,
    if its kernel lives, goes on."""
    usable(t)
    ws = t.workspace({"count.py": COUNTER})
    rng = random.Random(11)
    names = {"inside": "/.ward/ward-gvisor checkpoint", "kernel": "runsc-sandbox boot",
             "runner": "/.ward/ward-gvisor run"}
    for who in ("client", "inside", "box") if t.as_user == "root" else ("client", "kernel",
                                                                        "runner"):
        run = box(t, *GVISOR, "--", "python3", "-c",
                  "b = bytearray(40 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1 + i % 255\n"
                  "exec(open('count.py').read())", cwd=ws)
        counting(t, run)
        p = t.ward_start("checkpoint", run, "one")
        if who == "client":
            time.sleep(rng.uniform(0, 0.15))
            p.kill()
        else:
            top = supervisor(t, run)
            deadline = time.monotonic() + 10
            while p.poll() is None and time.monotonic() < deadline:
                found = processes(t, top, 2)
                if names["inside"] in found:	# it has begun
                    victim = top if who == "box" else min(
                        next((pids for name, pids in found.items()
                              if name.startswith(names[who].split()[0])
                              and (who == "kernel" or name == names[who])), [0]))
                    with t.root():
                        os.kill(victim, signal.SIGKILL)
                    break
        p.wait()
        files, known = kept(t)
        t.equal((len(files), [c["damage"] for c in known.values()]),
                (2 * len(known), [None] * len(known)), f"{who}: {files}")
        if who in ("kernel", "runner", "box"):
            t.wait_until(lambda: listed(t, "-a")[run]["state"] not in ("running", "ending"), 20,
                         f"a sandbox without its {who}")
        else:
            at = numbers(t.ward("logs", run).out)[-1]
            counting(t, run, at + 3)
            if not known:
                t.wait_until(lambda: t.ward("checkpoint", run, "one").rc == 0, 10,
                             f"{who}: no checkpoint afterwards")
            t.equal(t.ward("checkpoint", "rm", "one").rc, 0)
        t.ward("rm", "-f", run)
        t.ward("checkpoint", "rm", "one")
    t.equal(kept(t), ([], {}), "at the end")
    clean(t)


@needs("unsanitized")
def test_two_at_once(t):
    """Two that take one name: one is kept, and the journals say so. rm takes an image that somebody
    has locked. A kernel that stands still keeps nobody from the sandbox once the client is gone."""
    usable(t)
    ws = t.workspace()
    runs = [box(t, *GVISOR, "--", "sleep", "999", cwd=ws) for _ in range(2)]
    makers = [t.ward_start("checkpoint", run, "same") for run in runs]
    codes = [p.wait() for p in makers]
    t.equal(sorted(codes), [0, 125])
    for run, code in zip(runs, codes):
        t.wait_until(lambda who=run: t.ward("exec", who, "--", "true").rc == 0, 10,
                     "it does not go on")
        t.check(journal(t, run) == ["allow"] if code == 0 else "allow" not in journal(t, run),
                (code, journal(t, run)))
    with open(files_of(t, "same")[1], "rb") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        t.equal(t.ward("checkpoint", "rm", "same").rc, 0)
        t.equal(kept(t), ([], {}), "a locked image")
    top = supervisor(t, runs[0])
    kernel = min(next(pids for name, pids in processes(t, top, 2).items()
                      if name.startswith("runsc-sandbox")))
    with t.root():
        os.kill(kernel, signal.SIGSTOP)
    p = t.ward_start("checkpoint", runs[0], "stuck")
    t.wait_until(lambda: "/.ward/ward-gvisor checkpoint" in processes(t, top, 2), 10,
                 "it does not begin")
    r = t.ward("exec", runs[0], "--", "true")
    t.check(r.rc == 125 and "is under way" in r.err and "remedy: " in r.err, r)
    p.kill()
    p.wait()
    t.wait_until(lambda: "/.ward/ward-gvisor checkpoint" not in processes(t, top, 2), 10,
                 "it stays")
    with t.root():
        os.kill(kernel, signal.SIGCONT)
    r = t.ward("exec", runs[0], "--", "echo", "lives")
    t.equal((r.rc, r.out), (0, "lives\n"), r.err)
    t.equal(kept(t), ([], {}), "of one that was stuck")
    clean(t)
