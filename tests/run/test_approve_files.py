"""Approvals of files: an open of a host file outside of the view waits, and is answered with a
sealed copy of the very file that was shown."""
import json
import os

from harness.boxes import clean
from run.test_approve import asked, events, questions
from run.test_approve_requests import approve

READ = r"""
import os, sys
for path in sys.argv[1:]:
    try:
        with open(path) as f:
            print(f.read().strip(), flush=True)
    except OSError as error:
        print(type(error).__name__, error.errno, flush=True)
"""


def start(t, asks, seconds=60, mode="ask", files=None, **filesystem):
    """A detached idle sandbox without a network; returns (id, workspace)."""
    ws = t.workspace({"read.py": READ, **(files or {})})
    t.defer(clean, t)
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1, "filesystem": {"ask": asks, **filesystem},
                            "approvals": {"mode": mode, "timeout_seconds": seconds}}))
    r = t.ward("run", "-d", "-p", path, cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def data(t, **files):
    """A directory of the host's that no sandbox sees."""
    d = t.fresh_dir("data")
    t.write(d, files)
    return os.path.realpath(d)


def read(t, box, ws, *paths, program="read.py"):
    return t.popen(t.ward_argv("exec", box, "/usr/bin/python3", program, *paths), cwd=ws)


def got(t, process):
    out, _ = process.communicate(timeout=60)
    return (out if isinstance(out, str) else out.decode()).splitlines()


def test_once_and_no(t):
    """Files of a directory one by one: held, given once, refused; what is not in the list is not
    there."""
    d, other = data(t, a="first", b="second"), data(t, c="third")
    box, ws = start(t, [d])
    a, b = os.path.join(d, "a"), os.path.join(d, "b")
    process = read(t, box, ws, a, a, b, os.path.join(other, "c"), os.path.join(d, "none"), d)
    q = asked(t)[0]
    t.equal((q["kind"], q["subject"], q["rule"]), ("file", f"read {a}", "filesystem.ask"), q)
    t.check("5 bytes" in q["details"], f"its size: {q}")
    t.equal(t.ward("approve", q["id"], "--always").rc, 125, "there is no rule for that")
    approve(t, q, "--once")
    q2 = asked(t)[0]
    t.check(q2["id"] != q["id"], "once is once")
    approve(t, q2, "--once")
    approve(t, asked(t)[0], "--deny")
    t.equal(got(t, process), ["first", "first", "PermissionError 13", "FileNotFoundError 2",
                              "FileNotFoundError 2", "PermissionError 13"],
            "what came of it: of directories there is no descriptor")
    t.equal([(e["question"], e["action"]) for e in events(t, box, "approval.answer")],
            [("file", "approve"), ("file", "approve"), ("file", "deny")], "on record")


def test_scopes(t):
    """For the run: the same path, whatever is there then; another path asks again. A relative path
    and one with dots are the same file."""
    d = data(t, a="first", b="second")
    box, ws = start(t, [d])
    a = os.path.join(d, "a")
    process = read(t, box, ws, a)
    approve(t, asked(t)[0], "--run")
    t.equal(got(t, process), ["first"], "given")
    t.write(d, {"a": "changed"})
    t.equal(got(t, read(t, box, ws, a, d + "/./x/../a", os.path.relpath(a, ws))),
            ["changed"] * 3, "and so on")
    process = read(t, box, ws, os.path.join(d, "b"))
    approve(t, asked(t)[0], "--deny")
    t.equal(got(t, process), ["PermissionError 13"], "another one")


RACE = r"""
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
good, evil = (os.fsencode(p) for p in sys.argv[1:3])
text = ctypes.create_string_buffer(max(len(good), len(evil)) + 1)
text.value = good
stop = False
def rewrite():
    while not stop:
        text.value = evil
        text.value = good
thread = threading.Thread(target=rewrite)
thread.start()
for _ in range(int(sys.argv[3])):
    fd = libc.open(text, os.O_RDONLY)
    print(os.read(fd, 100).decode() if fd >= 0 else ctypes.get_errno(), flush=True)
stop = True
thread.join()
"""


def test_paths_that_are_rewritten(t):
    """A thread that rewrites the path while the open waits gets what was shown, and never the
    other."""
    d = data(t, good="good", evil="evil")
    box, ws = start(t, [d], files={"race.py": RACE})
    turns = 20
    process = t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "race.py",
                                  os.path.join(d, "good"), os.path.join(d, "evil"), str(turns)),
                      cwd=ws)
    shown = []
    seen = set()
    while process.poll() is None and len(shown) < turns:
        fresh = [q for q in questions(t) if q["id"] not in seen]
        for q in fresh:
            seen.add(q["id"])
            evil = q["subject"].endswith("/evil")
            shown.append("13" if evil else "good" if q["subject"].endswith("/good") else "?")
            approve(t, q, "--deny" if evil else "--once")
    lines = got(t, process)
    # a path that was torn in the middle of being rewritten is no file at all, and asks nothing
    t.equal([line for line in lines if line != "2"], shown, "what was shown was given")
    t.check("good" in shown, f"some were: {shown}")
    t.check("evil" not in lines, "never the other one")


def test_files_that_are_exchanged(t):
    """Another file, or a link, put in the place of the one that was shown."""
    d = data(t, a="shown", secret="secret")
    box, ws = start(t, [os.path.join(d, "a")])
    process = read(t, box, ws, os.path.join(d, "a"))
    q = asked(t)[0]
    os.rename(os.path.join(d, "a"), os.path.join(d, "moved"))
    os.symlink(os.path.join(d, "secret"), os.path.join(d, "a"))
    approve(t, q, "--once")
    t.equal(got(t, process), ["shown"], "the file that was shown")
    t.equal(got(t, read(t, box, ws, os.path.join(d, "a"))), ["PermissionError 13"],
            "a link is not followed")
    t.equal(questions(t), [], "nor asked about")


HARM = r"""
import os, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDONLY)
def attempt(name, f):
    try:
        f()
        print(name, "done", flush=True)
    except OSError as error:
        print(name, error.errno, flush=True)
own = f"/proc/self/fd/{fd}"
attempt("write", lambda: os.write(fd, b"x"))
attempt("reopen", lambda: os.write(os.open(own, os.O_RDWR), b"x"))
attempt("truncate", lambda: os.truncate(own, 0))
attempt("open-write", lambda: os.open(path, os.O_RDWR))
attempt("directory", lambda: os.open(os.path.dirname(path), os.O_RDONLY))
try:
    os.fchmod(fd, 0o600)
except OSError:
    pass
print(os.read(fd, 100).decode().strip())
"""


def test_what_is_given_is_a_copy(t):
    """Nothing that a program does with it changes the host's file, its mode or what others get."""
    d = data(t, a="the host's")
    a = os.path.join(d, "a")
    os.chmod(a, 0o644)
    before = os.stat(a)
    box, ws = start(t, [d], files={"harm.py": HARM})
    process = read(t, box, ws, a, program="harm.py")
    approve(t, asked(t)[0], "--run")
    lines = got(t, process)
    t.check(all(not line.endswith(" done") for line in lines), f"nothing was done: {lines}")
    t.equal(lines[-1], "the host's", "what was read")
    after = os.stat(a)
    t.equal((after.st_mode, after.st_mtime_ns, after.st_ctime_ns, t.read(a)),
            (before.st_mode, before.st_mtime_ns, before.st_ctime_ns, "the host's"), "untouched")
    t.equal(got(t, read(t, box, ws, a)), ["the host's"], "the next one gets the same")


def test_no_person(t):
    """No answer in time, a mode that asks nobody, a program that is killed while it waits."""
    d = data(t, a="first")
    a = os.path.join(d, "a")
    box, ws = start(t, [d], seconds=1)
    t.equal(got(t, read(t, box, ws, a)), ["PermissionError 13"], "too late")
    box, ws = start(t, [d], mode="deny")
    t.equal(got(t, read(t, box, ws, a)), ["FileNotFoundError 2"], "nobody is asked")
    box, ws = start(t, [d])
    process = t.popen(t.ward_argv("exec", box, "/bin/sh", "-c",
                                  f"python3 read.py {a} & while [ ! -e go ]; do sleep 0.1; done; "
                                  "kill -9 $!"), cwd=ws)
    asked(t)
    t.write(ws, {"go": ""})
    process.communicate(timeout=30)
    t.wait_until(lambda: not questions(t), 10, "the question goes with the program")
    process = read(t, box, ws, a)
    asked(t)
    t.equal(t.ward("kill", box).rc, 0, "killed")
    t.equal(questions(t), [], "nothing waits")


def test_limits(t):
    """A file that is too large is refused at once, and on record."""
    d = data(t, a="x")
    with open(os.path.join(d, "large"), "wb") as f:
        f.truncate(64 * 1024 * 1024 + 1)
    box, ws = start(t, [d])
    t.equal(got(t, read(t, box, ws, os.path.join(d, "large"))), ["OSError 27"], "too large")
    os.mkfifo(os.path.join(d, "pipe"))
    t.equal(got(t, read(t, box, ws, os.path.join(d, "pipe"))), ["PermissionError 13"], "no file")
    t.equal(questions(t), [], "nobody was asked")


def test_policy(t):
    """What is refused: paths that the sandbox sees, that are not there; where it cannot hold."""
    d = data(t, a="x")
    ws = t.workspace({"file": "x"})
    for document, words in (
            ({"filesystem": {"ask": [os.path.join(ws, "file")]}}, "no question is asked"),
            ({"filesystem": {"ask": ["/usr/bin"]}}, "no question is asked"),
            ({"filesystem": {"ask": ["/"]}}, "the whole file system"),
            ({"filesystem": {"ask": [os.path.join(d, "none")]}}, "No such file"),
            ({"filesystem": {"ask": [d], "host_mounts": [d]}}, "no question is asked"),
            ({"filesystem": {"ask": [d]}, "process": {"commands": {"allow": ["true"]}}},
             "could be executed")):
        p = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        t.write(os.path.dirname(p), {"ward.yaml": json.dumps({
            "version": 1, **document, "approvals": {"mode": "ask"}})})
        r = t.ward("plan", "-p", p, "--", "true", cwd=ws)
        t.equal(r.rc, 125, f"{document}: {r.out}")
        t.contains(r.err, words, str(document))
    t.write(d, {"p.yaml": json.dumps({"version": 1, "filesystem": {"ask": [d]},
                                      "approvals": {"mode": "ask"}})})
    r = t.ward("plan", "-p", os.path.join(d, "p.yaml"), "--", "true", cwd=ws)
    t.contains(" ".join(r.out.split()), "a person is asked before a file is read",
               f"plan ({r.err})")
