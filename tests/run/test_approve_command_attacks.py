"""Attacks on guarded programs: on whoever receives what programs inside send, on the question that
a person sees, and on the ways around the question."""
import os
import time

from harness import by_turns
from harness.boxes import clean
from run.test_approve import asked, events, questions
from run.test_approve_commands import ALLOW, RACE, got, policy, run, start
from run.test_approve_requests import approve

# A TCP socket with unsent data, whose last close takes 40 seconds.
LINGER = RACE + r"""
kept = []
def lingering():
    l = socket.socket()
    l.bind(("127.0.0.1", 0))
    l.listen(1)
    s = socket.socket()
    s.connect(l.getsockname())
    kept.extend([l, l.accept()[0]])
    s.setblocking(False)
    try:
        while True:
            s.send(b"x" * 65536)
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 40))
    return s.detach()
def give(s, data, fds):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    for fd in set(fds) - {null, here}:
        os.close(fd)
def connected():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/.ward/guard/socket")
    return s
def request_of(*words):
    return (struct.pack("<IIii", 0x31636477, 1, len(words), 0) +
            b"".join(x.encode() + b"\0" for x in ("/usr/bin/" + words[0], *words)))
signal = struct.pack("<IIii", 0x31636477, 2, 10, 0)
here = os.open(".", os.O_PATH | os.O_DIRECTORY)
way = sys.argv[1]
s = connected()
if way == "malformed":
    give(s, b"x", [lingering()] * 4)
elif way == "many":
    give(s, request_of("cat", "a"), [lingering() for _ in range(9)] * 20)
elif way == "allowed":
    give(s, request_of("cat", "a"), [lingering(), null, null, here])
elif way == "denied":
    give(s, request_of("cat", "b", "secret"), [lingering(), null, null, here])
elif way == "waits":
    give(s, request_of("cat", "b"), [lingering(), null, null, here])
    time.sleep(0.5)
    s.close()
elif way == "signal":
    give(s, request_of("sleep", "30"), [null, null, null, here])
    s.recv(100)
    for _ in range(10):
        give(s, signal, [lingering()])
elif way == "queued":
    for _ in range(5):
        try:
            give(s, b"x", [lingering()])
        except OSError:
            break
    s.close()
elif way == "nested":
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    give(a, b"x", [lingering()])
    give(s, b"x", [b.detach(), null, null, here])
elif way == "flood":
    for _ in range(300):
        try:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            s.connect("/.ward/guard/socket")
            give(s, b"x", [lingering(), null, null, here])
        except OSError:
            pass
print("done", flush=True)
time.sleep(30)
"""


@by_turns
def test_lingering_descriptors(t):
    """A descriptor whose last close takes long does not hold up the supervisor, whatever way it
    comes: other commands start, and the sandbox ends when it is told to."""
    commands = {"allow": [*ALLOW, "sleep *", "cat a"], "ask": ["cat b"], "deny": ["cat b secret"]}
    for way in ("malformed", "many", "allowed", "denied", "waits", "signal", "queued", "nested",
                "flood"):
        box, ws = start(t, commands, files={"linger.py": LINGER})
        process = run(t, box, ws, "/usr/bin/python3", "linger.py", way)
        line = process.stdout.readline()
        t.check(b"done" in (line if isinstance(line, bytes) else line.encode()), f"{way} {line}")
        time.sleep(0.7)
        began = time.monotonic()
        r = t.ward("exec", box, "true", cwd=ws)
        t.equal(r.rc, 0, f"{way}: {r.err}")
        t.check(time.monotonic() - began < 8, f"{way}: {time.monotonic() - began} s")
        if way in ("malformed", "waits", "allowed"):
            t.equal(got(run(t, box, ws, "cat", "a"))[1], "first\n", f"{way}: another one starts")
        clean(t)
        t.check(time.monotonic() - began < 12, f"{way}: ended: {time.monotonic() - began} s")
        process.kill()


def test_copies(t):
    """Under an allow list a copy of a guarded program, and another name of it, ask as well, in
    every place that the list makes executable; by another name the program is never started without
    a question."""
    tools = t.fresh_dir("tools")
    os.makedirs(os.path.join(tools, "deep/er"))
    for name in ("deep/er/copy", "hard", "deep/cat"):
        with open("/usr/bin/cat", "rb") as f, open(os.path.join(tools, name), "wb") as to:
            to.write(f.read())
        os.chmod(os.path.join(tools, name), 0o755)
    os.link(os.path.join(tools, "hard"), os.path.join(tools, "deep/link"))
    os.chmod(tools, 0o755)
    mounts = ["--widen", "--set", "filesystem.host_mounts=[" + tools + "]"]
    for allow, ways in ((["cat a", tools + "/"], ["deep/er/copy", "hard", "deep/link"]),
                        (["cat a", tools + "/hard"], ["hard"])):
        ws = t.workspace({"a": "first\n", "b": "second\n"})
        t.defer(clean, t)
        r = t.ward("run", "-d", *mounts, "-p",
                   policy(t, {"allow": [*ALLOW, *allow], "ask": ["cat b"]}), cwd=ws)
        t.equal(r.rc, 0, r.err)
        box = r.out.strip()
        for way in ways:
            process = run(t, box, ws, f"{tools}/{way}", "a")
            q = asked(t)[0]
            t.equal(q["subject"], f"{tools}/{way} a", "by another name: a question")
            approve(t, q, "--once")
            t.equal(got(process)[:2], (0, "first\n"), "and it starts")
            process = run(t, box, ws, f"{tools}/{way}", "b")
            approve(t, asked(t)[0], "--deny")
            t.equal(got(process)[:2], (126, ""), f"{way}")
        if len(ways) > 1:
            t.equal(got(run(t, box, ws, f"{tools}/deep/cat", "a"))[:2], (0, "first\n"),
                    "a copy of its name: the words decide")
        clean(t)


OTHER_INPUT = RACE + r"""
fds = []
for text in (b"one", b"two"):
    r, w = os.pipe()
    os.write(w, text)
    os.close(w)
    fds.append(r)
here = os.open(".", os.O_PATH | os.O_DIRECTORY)
out = os.open("out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
asks = [request("/usr/bin/cat", ["cat", "-"], [fd, out, null, here]) for fd in fds]
print([answer(s) for s in asks], flush=True)
"""


def test_other_input(t):
    """One answer is for one standard input: the same words with another pipe are another question;
    a yes for the run says that it covers whatever comes through a pipe."""
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat -"]}, files={"other.py": OTHER_INPUT})
    process = run(t, box, ws, "/usr/bin/python3", "other.py")
    t.wait_until(lambda: len(questions(t)) == 2, 20, "two questions")
    pipes = [next(d for d in q["details"] if d.startswith("standard input: "))
             for q in questions(t)]
    t.check(pipes[0] != pipes[1] and "pipe" in pipes[0], f"{pipes}")
    t.equal([d for d in questions(t)[0]["details"] if "yes for the run" in d],
            ["a yes for the run is for these words, directory and files, and whatever comes "
             "through pipes"], "what a yes for the run is for")
    first, second = questions(t)
    approve(t, second, "--deny")
    approve(t, first, "--once")
    t.equal(got(process)[1].strip(), "[(4, 0), (6, 126)]", "one ran")
    t.equal(open(os.path.join(ws, "out")).read(), "one", "and it is the one that was shown")
    process = run(t, box, ws, "/usr/bin/python3", "other.py")
    t.wait_until(lambda: len(questions(t)) == 2, 20, "two questions")
    approve(t, questions(t)[0], "--run")
    t.equal(got(process)[1].strip(), "[(4, 0), (4, 0)]", "both ran")


def test_long_words(t):
    """What does not fit goes on in lines that no argument can imitate."""
    box, ws = start(t, {"allow": ALLOW, "ask": ["cat"]})
    fake = "x" * 168 + "standard input: /dev/null" + "y" * 60
    process = run(t, box, ws, "cat", fake + "\ndirectory: /")
    q = asked(t)[0]
    t.equal(len(q["subject"]), 191, q)
    for line in q["details"]:
        t.check(line.split(": ")[0] in ("words go on", "directory", "standard input",
                                        "standard output", "standard error",
                                        "standard output and error") or
                line.startswith("a yes for"), line)
    t.equal([d for d in q["details"] if d.startswith("directory")], [f"directory: {ws}"], q)
    whole = q["subject"][:-4] + "".join(d[13:] for d in q["details"] if d.startswith("words go"))
    t.check(fake in whole and "directory: /" in whole, whole)
    approve(t, q, "--deny")
    got(process)


MANY = RACE + r"""
here = os.open(".", os.O_PATH | os.O_DIRECTORY)
asks = [request("/usr/bin/sleep", ["sleep", "30"], [null] * 3 + [here]) for _ in range(70)]
time.sleep(1)
texts = set()
for s in asks:
    s.setblocking(False)
    try:
        while True:
            data = s.recv(4096)
            if not data:
                break
            if len(data) > 16:
                texts.add(data[16:].decode())
    except BlockingIOError:
        pass
print(texts, flush=True)
s = request("/usr/bin/cat", ["cat", "a"], [null] * 3 + [here])
s.settimeout(1)
try:
    print(s.recv(4096), flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


def test_many_run(t):
    """Programs that run do not count as questions: with many of them others still ask, and one too
    many is told why."""
    box, ws = start(t, {"allow": [*ALLOW, "sleep *"], "ask": ["cat"]}, files={"many.py": MANY})
    process = run(t, box, ws, "/usr/bin/python3", "many.py")
    q = asked(t)
    t.equal([x["subject"] for x in q], ["/usr/bin/cat a"], "it still asks")
    lines = got(process)[1].splitlines()
    t.equal(lines, ["{'ward: /usr/bin/sleep: 48 programs that ward started for this sandbox still "
                    "run\\n'}", "TimeoutError"], "what the others were told")
    t.equal(t.ward("exec", box, "true", cwd=ws).rc, 0, "and ward exec has room")
