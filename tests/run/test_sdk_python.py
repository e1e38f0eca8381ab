"""sdk/python: the package ward-sandbox as pip makes it. One program drives sandboxes of this
machine (libward) and of a server (ward serve) through the same interface."""
import json
import os
import shutil

from harness import by_turns, libward, timeout
from harness.serve import Server, fetch_once
from run.test_serve_v1 import ASKING, add_key

NATIVE_ONLY = "what it calls runs sanitized in test_libward.py and test_serve.py"

# what holds in both places
BOTH = r"""
import sys, threading, time
import ward_sandbox as ward

client = ward.connect()
assert client.remote == (sys.argv[1] == "remote")
with client.create(env={"FRUIT": "pear"}) as box:
    r = box.run("echo $FRUIT; echo bad >&2; exit 3")
    assert (r.code, r.stdout, r.stderr) == (3, "pear\n", "bad\n"), r
    assert box.run(["printf", "%s|", "two words", ""]).stdout == "two words||"
    r = box.run("cat; echo $A; pwd", input=b"x" * 700000, env={"A": "1"}, cwd="/tmp")
    assert r.stdout == "x" * 700000 + "1\n/tmp\n", len(r.stdout)
    assert box.run("kill -9 $$").code == 137 and box.run("kill -TERM $$").code == 143
    try:
        box.run("echo some; exit 7", check=True)
        raise SystemExit("no error")
    except ward.CommandFailed as e:
        assert e.result.code == 7 and e.result.stdout == "some\n"
    began = time.monotonic()
    try:
        box.run("echo partly; sleep 100", timeout=0.5)
        raise SystemExit("no error")
    except ward.TimedOut as e:
        assert e.stdout == b"partly\n" and time.monotonic() - began < 20, e.stdout
    seen = []
    box.run("for i in 1 2 3; do echo $i; done", on_output=seen.append)
    assert "".join(p.text for p in seen) == "1\n2\n3\n"

    # a process, its input and output as they come
    with box.start(["cat"], stdin=True) as p:
        p.write("typed\n")
        stream = iter(p)
        assert next(stream) == ward.Output("stdout", b"typed\n")
        try:
            p.wait(0.05)
            raise SystemExit("no error")
        except ward.TimedOut:
            pass
        p.write("more")
        p.close_stdin()
        assert p.wait() == ward.Result(0, b"more") and p.code == 0
    with box.start(["sleep", "100"]) as p:
        p.signal("TERM")
        assert p.wait(20).code == 143
    # libward sets the size once the command runs
    with box.start("until stty size | grep '30 90'; do :; done; exit 4", terminal=(30, 90)) as p:
        done = p.wait(20)
        assert "30 90" in done.stdout and done.code == 4, done

    # files
    f = box.files
    f.write("a/b c.txt", "one\n")
    f.write("a/b c.txt", b"two\0\xff")
    assert f.read("a/b c.txt") == b"two\0\xff"
    f.write("-n", "dashed")
    assert f.read_text("-n") == "dashed"
    f.write("a/empty", b"")
    assert f.read("a/empty") == b""
    assert sorted(e.name for e in f.list("a")) == ["b c.txt", "empty"]
    assert {e.kind for e in f.list("a/..", depth=2)} == {"file", "directory"}
    entry = f.stat("a/b c.txt")
    assert (entry.kind, entry.size, entry.mode & 0o600) == ("file", 5, 0o600), entry
    assert abs(entry.modified - time.time()) < 100
    assert [f.make_dir("x/y"), f.make_dir("x/y")] == [True, False]
    f.rename("a/empty", "x/full")
    assert f.exists("x/full") and not f.exists("a/empty")
    f.remove("a")
    f.remove("a")
    assert not f.exists("a")
    for wrong, kind in ((lambda: f.read("nope"), ward.NotFound),
                        (lambda: f.read("x"), ward.InvalidArgument),
                        (lambda: f.list("nope"), ward.NotFound),
                        (lambda: f.read("x/full", limit=-1), ward.InvalidArgument),
                        (lambda: f.rename("nope", "b"), ward.NotFound)):
        try:
            wrong()
        except kind:
            continue
        if kind is not ward.InvalidArgument:
            raise SystemExit(f"no {kind}")
    assert f.read("/etc/hostname") is not None
    try:
        f.write("/etc/passwd", "root::0:0::/:/bin/sh\n")
        raise SystemExit("written")
    except ward.WardError as e:
        assert e.reason

    box.pause()
    box.resume()
    assert box.run("echo back").stdout == "back\n"
    usage = box.usage()
    assert usage.memory_bytes >= 0 and usage.disk_bytes >= 0
    assert box.info().state == "running"
    assert box.id in [i.id for i in client.list()]
    assert client.open(box.id).run("echo other").stdout == "other\n"

    # snapshots and forks
    f.write("kept.txt", "first")
    f.write("/tmp/also", "second")
    kept = box.snapshot("mine")
    f.write("kept.txt", "later")
    assert [s.id for s in client.snapshots()] == [kept.id]
    with client.create(snapshot=kept) as other:
        assert other.files.read_text("kept.txt") == "first"
        assert other.files.read_text("/tmp/also") == "second"
    assert [client.delete_snapshot(kept), client.delete_snapshot(kept)] == [True, False]
    one, two = box.fork(2)
    one.files.write("kept.txt", "own")
    assert (two.files.read_text("kept.txt"), f.read_text("kept.txt")) == ("later", "later")
    for b in (one, two):
        assert b.kill() is True
        b.close()
    assert client.snapshots() == []

    # many threads
    codes = []
    threads = [threading.Thread(target=lambda n=n: codes.append(box.run(f"exit {n}").code))
               for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(codes) == list(range(8)), codes
    assert box.kill() is True and box.kill() is False
for wrong in (lambda: client.create("no-such-template"),
              lambda: client.open("nosuchsandbox00000000"), lambda: box.run("true")):
    try:
        wrong()
        raise SystemExit("no error")
    except ward.WardError as e:
        assert e.reason and (e.remedy or e.code == 404), (e, e.code)
print("all fine")
"""

ASYNC = r"""
import asyncio
import ward_sandbox as ward

async def main():
    async with ward.aconnect() as client:
        boxes = await asyncio.gather(*(client.create() for _ in range(3)))
        done = await asyncio.gather(*(b.run(f"echo {n}") for n, b in enumerate(boxes)))
        assert [d.stdout for d in done] == ["0\n", "1\n", "2\n"]
        box = boxes[0]
        async with box:
            await box.files.write("a", "1")
            assert await box.files.read_text("a") == "1"
            async with await box.start("echo a; sleep 0.1; echo b") as p:
                assert "".join([piece.text async for piece in p]) == "a\nb\n" and p.code == 0
            task = asyncio.create_task(box.run("touch began; sleep 1000"))
            while not await box.files.exists("began"):
                pass
            task.cancel()
            try:
                await task
                raise SystemExit("not cancelled")
            except asyncio.CancelledError:
                pass
            while "sleep" in (await box.run("cat /proc/[0-9]*/comm")).stdout:
                pass
        for b in boxes[1:]:
            await b.kill()
            await b.close()
    print("all fine")
asyncio.run(main())
"""

REMOTE = r"""
import os, subprocess, sys, threading
import ward_sandbox as ward

client = ward.connect()
with client.create(metadata={"team": "red"}, timeout=50) as box:
    stream = iter(client.events(box.id))
    box.set_timeout(40)
    assert 0 < box.info().ends - box.info().started < 60
    assert box.info().metadata == {"team": "red"}
    box.pause()
    assert next(stream).kind == "sandbox_paused"
    try:
        box.run("true")
        raise SystemExit("no error")
    except ward.SandboxGone as e:
        assert "resume()" in e.remedy
    box.resume()
    # what runs while the sandbox ends
    problem = []
    def work():
        try:
            box.run("sleep 1000")
        except ward.SandboxGone as e:
            problem.append(e)
    thread = threading.Thread(target=work)
    thread.start()
    while "sleep" not in box.run("cat /proc/[0-9]*/comm").stdout:
        pass
    box.kill()
    thread.join(20)
    assert problem
    assert [next(stream).kind for _ in range(3)][-1] == "sandbox_gone"
made = client.create_token("viewer", 60, name="seen")
assert made.secret and made.id in [t.id for t in client.tokens()]
viewer = ward.connect(os.environ["WARD_HOST"], made.secret)
try:
    viewer.create()
    raise SystemExit("no error")
except ward.Forbidden as e:
    assert "role" in e.reason and e.remedy
assert client.revoke_token(made) and not client.revoke_token(made)
try:
    viewer.list()
    raise SystemExit("no error")
except ward.Unauthorized as e:
    assert "WARD_TOKEN" in e.remedy
for url in ("http://192.0.2.1:3000", "ftp://localhost", "https://a/b", "localhost:3000"):
    try:
        ward.connect(url, "k")
        raise SystemExit(url)
    except ward.InvalidArgument as e:
        assert e.remedy
try:
    ward.connect("http://127.0.0.1:1", "k").list()
    raise SystemExit("no error")
except ward.Unreachable as e:
    assert e.remedy

# a question, answered by the program
secret = sys.argv[1]
approver = ward.connect(os.environ["WARD_HOST"], os.environ["APPROVER"])
with client.create("asking") as box:
    asked = []
    def answer():
        while not approver.questions(box.id):
            pass
        q, = approver.questions(box.id)
        asked.append(q)
        approver.answer(q, "once")
    thread = threading.Thread(target=answer)
    thread.start()
    assert box.run(["cat", secret]).stdout == "the plan\n"
    thread.join(20)
    assert asked[0].kind == "file" and asked[0].sandbox == box.id
    thread = threading.Thread(target=lambda: box.decide(lambda q: ("time", 60), 20))
    thread.start()
    assert box.run(["cat", secret]).stdout == "the plan\n"
    thread.join(20)
print("all fine")
"""

LOCAL = r"""
import sys, threading
import ward_sandbox as ward

secret, workspace = sys.argv[1:]
client = ward.connect()
how = dict(workspace=workspace, fields={"filesystem.ask": [secret], "approvals.mode": "ask",
                                        "resources.pids_limit": 64}, widen=True)
with client.create(**how) as box:
    counted = []
    thread = threading.Thread(target=lambda: counted.append(box.decide(
        lambda q: "once" if q.kind == "file" else "deny", 20)))
    thread.start()
    assert box.run(["cat", secret + "/plan.txt"]).stdout == "the plan\n"
    thread.join(20)
    assert counted == [1], counted
    assert box.run("pwd").stdout.strip() == box.run("pwd; touch made").stdout.strip()
    for wrong in (lambda: box.set_timeout(5), lambda: client.questions(),
                  lambda: client.create(metadata={"a": "b"})):
        try:
            wrong()
            raise SystemExit("no error")
        except ward.Unsupported as e:
            assert e.remedy
try:
    client.create(fields={"resources.pids_limi": 9})
    raise SystemExit("no error")
except ward.InvalidArgument as e:
    assert "pids_limit" in e.remedy, e
try:
    client.create(fields={"network.mode": "open"}, policy="/nonexistent")
    raise SystemExit("no error")
except ward.WardError as e:
    assert e.reason
box = client.create(workspace=workspace, detached=True, name="kept")
box.close()
with client.open("kept") as box:
    assert box.run("ls").stdout == "made\n"
assert client.create(timeout=0.2).run("sleep 50").code != 0
print("all fine")
"""


def package(t):
    """The package as pip installs it, made once."""
    source = os.path.join(libward.TOP, "sdk/python")

    def prepare(work):
        copy = os.path.join(work, "source")
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        return ["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-warn-script-location",
                "--target", work, copy]
    return fetch_once(t, "ward-sandbox-pip", prepare)


def drive(t, text, env, *words, path=None):
    r = t.run("/usr/bin/python3", "-c", text, *words, timeout=100,
              env={"PYTHONPATH": path or package(t), "PYTHONDONTWRITEBYTECODE": "1", **env})
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))


def remote(s):
    return {"WARD_HOST": f"http://127.0.0.1:{s.port}", "WARD_TOKEN": s.key}


def local(t):
    return {"LIBWARD": libward.library(t), "HOME": t.fresh_dir("home")}


def test_sdk_python_package(t):
    """It has its types, its version and nothing else."""
    path = package(t)
    names = sorted(n for n in os.listdir(path) if n != "source")
    t.equal(names, ["ward_sandbox", "ward_sandbox-0.1.0.dist-info"])
    t.check(os.path.exists(os.path.join(path, "ward_sandbox/py.typed")), "py.typed")


@by_turns
@timeout(120)
def test_sdk_python_remote(t):
    s = Server(t)
    drive(t, BOTH, remote(s), "remote")
    drive(t, ASYNC, remote(s))


@by_turns
@timeout(120)
def test_sdk_python_local(t):
    drive(t, BOTH, local(t), "local")
    drive(t, ASYNC, local(t))
    t.equal(json.loads(t.ward("ps", "-a", "--json").out), {"sandboxes": []})


def secret_file(t):
    secret = t.fresh_dir("secret")
    t.write(secret, {"plan.txt": "the plan\n"})
    os.chmod(secret, 0o755)
    return secret


@by_turns
@timeout(120)
def test_sdk_python_server_only(t):
    """Events, tokens, questions, and errors of a server."""
    secret, templates = secret_file(t), t.fresh_dir("templates")
    t.write(templates, {"asking.yaml": ASKING % secret})
    s = Server(t, "--templates", templates)
    drive(t, REMOTE, {**remote(s), "APPROVER": add_key(t, s, "dev", "--role", "approver")},
          f"{secret}/plan.txt")


@by_turns
@timeout(120)
def test_sdk_python_machine_only(t):
    """Questions, workspaces and detached sandboxes of this machine."""
    drive(t, LOCAL, local(t), secret_file(t), t.workspace())
    t.ward("rm", "--all", "--force")


def test_sdk_python_token_file(t):
    """A key in a file that others can read is refused; one that only its owner can is used."""
    s = Server(t)
    home = t.fresh_dir("config")
    os.makedirs(os.path.join(home, "ward"))
    path = os.path.join(home, "ward/token")
    program = ("import ward_sandbox as ward\n"
               "try:\n    print(ward.connect().list())\n"
               "except ward.Unauthorized as e:\n    print(e.remedy)\n")
    for mode, wanted in ((None, "chmod 600"), (0o644, "chmod 600"), (0o600, "[]\n")):
        if mode is not None:
            t.write(home, {"ward/token": s.key + "\n"})
            os.chmod(path, mode)
        r = t.run("/usr/bin/python3", "-c", program,
                  env={"PYTHONPATH": os.path.join(libward.TOP, "sdk/python/src"),
                       "PYTHONDONTWRITEBYTECODE": "1", "XDG_CONFIG_HOME": home,
                       "WARD_HOST": f"http://127.0.0.1:{s.port}"})
        t.contains(r.out, wanted, str(mode))
