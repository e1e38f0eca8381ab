"""process.children: a sandbox starts others through ward-children, each narrower than itself, and
none of them outlives it."""
import json
import os
import pathlib
import signal
import time

from harness import by_turns
from harness.boxes import clean

AGENTS = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/agents"

TALK = r"""
import array, os, socket, struct
def request(words, program="/.ward/bin/ward", fds=None, op=1, variables=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/.ward/children/socket")
    body = struct.pack("IIii", 0x31636477, op, len(words), len(variables))
    body += b"".join(os.fsencode(w) + b"\0" for w in (program, *words, *variables))
    if fds is None:
        fds = [os.open("/dev/null", os.O_RDWR)] * 3 + [os.open(".", os.O_PATH)]
    s.sendmsg([body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    return s
def answer(s):
    got = s.recv(70000)
    return (struct.unpack("IIii", got[:16])[1:3], got[16:].decode()) if got else None
"""


def policy(t, ws, children=2, mounts=("out",), **more):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    filesystem = {"workspace": ws, "mode": "read_write", "hide": [".env"],
                  "host_mounts": [{"path": os.path.join(ws, m), "mode": "read_write"}
                                  for m in mounts], **more.pop("filesystem", {})}
    process = {"children": children, **more.pop("process", {})}
    with open(path, "w") as f:
        f.write(json.dumps({"version": 1, "filesystem": filesystem, "process": process, **more}))
    return path


def project(t, files=None):
    return t.workspace({"out/.keep": "", "other/.keep": "", ".env": "secret\n",
                        "out/.env": "secret\n", **(files or {})})


def run(t, ws, code, *options, **more):
    return t.ward("run", "-p", policy(t, ws, **more), *options, "--report", report(t), "--", "sh",
                  "-c", code, cwd=ws)


def report(t):
    if not hasattr(t, "report_of_children"):
        t.report_of_children = os.path.join(t.fresh_dir("report"), "report.json")
    return t.report_of_children


def events(t, ws, kind):
    """Of the last run of run(), not of its children."""
    with open(report(t)) as f:
        r = t.ward("audit", "show", "--json", json.load(f)["run"], cwd=ws)
    return [e for e in map(json.loads, r.out.splitlines()) if e.get("kind") == kind]


def ended(path):
    """Waits until nothing touches the file any more; fails after ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        before = os.stat(path).st_mtime_ns
        time.sleep(0.4)
        if os.stat(path).st_mtime_ns == before:
            return True
    return False


def test_a_child_and_its_end(t):
    """Output, input, exit code, directory; it writes to its own mount and nowhere else."""
    ws = project(t)
    r = run(t, ws, """
        echo text | ward run --rw out -C out -- sh -c 'cat; pwd; echo made > new; cat .env ../.env;
            echo no > ../other/x; echo no > ../x; exit 7' 2> err
        echo $?
        ward run -- sh -c 'kill -TERM $$'; echo $?
        ward run -- /nothing 2>> err; echo $?""")
    t.equal(r.out, f"text\n{ws}/out\n7\n143\n127\n", r.err)
    t.equal(open(os.path.join(ws, "out/new")).read(), "made\n", "its own mount")
    err = open(os.path.join(ws, "err")).read()
    t.equal(err.count("Read-only file system"), 2, err)
    t.equal(err.count(".env: Permission denied"), 2, err)
    t.equal((sorted(os.listdir(os.path.join(ws, "other"))), os.path.exists(ws + "/x")),
            ([".keep"], False), "nothing else")


def test_none_by_default(t):
    """Without process.children there is neither client nor socket."""
    ws = project(t)
    r = run(t, ws, "ls /.ward/bin /.ward/children; ward run -- true", children=0)
    t.check(r.rc == 127 and "/.ward/children" in r.err, r)


WIDER = {
    "--rw other": "no such mount", "--rw .": "no such mount", "--rw /etc": "no such mount",
    "--rw ..": "no such mount", "--rw out/..": "no such mount", "--ro /": "no such mount",
    "--rw ro": "read-only in the parent", "--memory 2Gi": "resources.memory_limit",
    "--memory none": "resources.memory_limit", "--memory 100%": "resources.memory_limit",
    "--pids 65": "resources.pids_limit", "--pids none": "resources.pids_limit",
    "--cpus 3": "resources.cpu_limit", "--disk 2Gi": "resources.disk_limit",
    "--timeout 601": "resources.timeout_seconds", "--timeout none": "resources.timeout_seconds",
    "--allow evil.example": "do not allow all of it", "--allow '*'": "do not allow all of it",
    "--allow a.example:80": "do not allow all of it", "--allow '*.example'": "do not allow",
    "--allow 10.0.0.1": "do not allow", "--allow ask.b.example": "do not allow",
    "--allow '{host: a.example, private: true}'": "do not allow",
    "--allow '{host: get.b.example}'": "do not allow", "--hide '!.env'": "filesystem.hide",
    "--set filesystem.hide=[]": "cannot choose", "--set filesystem.mode=read_write": "cannot",
    "--set network.mode=open": "cannot choose", "--set isolation=wasm": "cannot choose",
    "--set process.nesting=true": "cannot choose", "--set credentials.mode=just_in_time": "cannot",
    "--set process.syscalls=build": "process.syscalls", "--set process.children=1": "children of",
    "--set filesystem.protect=[]": "filesystem.protect", "--set resources.open_files=none": "none",
    "--set audit.journal=none": "cannot choose", "--set approvals.mode=ask": "cannot choose",
    "--widen": "does not know", "-p x": "does not know", "--profile claude": "does not know",
    "-d": "does not know", "-w /": "does not know", "--env A=b": "does not know",
    "--report out/x": "does not know", "--secret A@b": "does not know", "-t": "does not know",
    "--memory": "needs a", "--isolation oci": "does not know", "--hints": "does not know",
}


def test_nothing_wider(t):
    """Every kind of option, asked for more than the parent may give: refused, with the reason, to
    who asked and in the journal; and the same within its limits: granted."""
    ws = project(t, {"ro/x": "x"})
    lines = "".join(f"ward run {o} {'' if o == '--memory' else '-- true'} 2>&1; echo \"= $?\"\n"
                    for o in WIDER)
    more = {"resources": {"memory_limit": "1Gi", "pids_limit": 64, "cpu_limit": 2,
                          "disk_limit": "1Gi", "timeout_seconds": 600, "open_files": 1000},
            "network": {"mode": "restricted", "egress_allowlist": [
                "a.example", "*.b.example", {"host": "ask.b.example", "ask": True},
                {"host": "get.b.example", "methods": ["GET"]}]},
            "filesystem": {"protect": ["x"], "host_mounts": [
                {"path": f"{ws}/out", "mode": "read_write"}, f"{ws}/ro"]}}
    r = run(t, ws, lines, **more)
    answers = r.out.split("= 125\n")
    t.equal(len(answers), len(WIDER) + 1, r.out)
    for (option, why), got in zip(WIDER.items(), answers):
        t.contains(got, why, option)
    denied = [e for e in events(t, ws, "child.start") if e["action"] == "deny"]
    t.equal(len(denied), len(WIDER), "each on record")
    r = run(t, ws, """ward run --rw out --ro ro --memory 256Mi --pids 32 --cpus 1 --disk 1Mi \
        --timeout 60 --allow a.example --allow c.b.example --hide other \
        --set process.syscalls=strict --set 'filesystem.protect=[x, y]' -- \
        sh -c 'ls other; cat ro/x; echo rc $?'""", **more)
    t.equal((r.rc, r.out), (0, "xrc 0\n"), r.err)


def test_moved_and_swapped_directories(t):
    """The directory that a child may write cannot be moved or replaced by its parent, and one that
    could be is given to no child; a link in its place neither."""
    ws = project(t, {"deep/down/.keep": ""})
    link = os.path.join(t.fresh_dir(), "link")
    os.symlink(t.fresh_dir(), link)
    swap = """
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
def swap():
    got = []
    for way in (lambda: os.rename("out", "moved"), lambda: os.rmdir("out"),
                lambda: os.rename("other", "out"),
                lambda: (libc.renameat2(-100, b"out", -100, b"other", 2) and
                         (_ for _ in ()).throw(OSError(ctypes.get_errno(), "")))):
        try:
            way(); got.append("worked")
        except OSError as e:
            got.append(e.errno)
    return got
print(swap())
"""
    r = run(t, ws, f"python3 -c '{swap}'; ward run --rw out -- sh -c 'echo x > out/x'; "
                   "mv deep moved; ln -s / deep; ward run --rw deep/down -- true 2>&1; "
                   f"ward run --rw {link} -- true 2>&1",
            mounts=("out", "deep/down", link))
    lines = r.out.splitlines()
    t.equal(lines[0], "[16, 16, 16, 16]", "EBUSY, whatever way")
    t.contains(r.out, "which can be moved", "a deeper one")
    t.contains(r.out, "leads through a link", "a link")
    t.check(os.path.exists(os.path.join(ws, "out/x")), "the real one was written")


@by_turns
def test_limits_of_all_together(t):
    """No more children than the policy says, no more than the parent's limits in all."""
    ws = project(t)
    more = {"resources": {"memory_limit": "1Gi", "pids_limit": 64, "disk_limit": "64Mi"}}
    r = run(t, ws, """
        for i in 1 2 3 4; do ward run --pids 8 --memory 64Mi -- sleep 3 2>> err & done; wait
        grep -c 'run already' err
        ward run --pids 40 -- sleep 2 & sleep 1; ward run --pids 40 -- true 2>&1; wait
        for i in 1 2 3; do ward run --disk 40Mi -- true || echo no room; done
        ward run --rw out --disk 20Mi -- true
        ward run --disk 50Mi -- true 2>&1
        ward run --rw out --disk 40Mi -- true && echo room""", **more)
    t.equal(r.out.splitlines()[0], "2", r.out)
    t.contains(r.out, "--pids (resources.pids_limit): the children would together", "the sum")
    t.contains(r.out, "--disk (resources.disk_limit): the children would together", "what is left")
    t.check("room\n" in r.out and "no room" not in r.out, f"no more than that: {r.out}")
    r = run(t, ws, "ward run --memory 40Mi -- python3 -c 'x = b\"x\" * (200 << 20)'; echo $?",
            **more)
    t.check(r.out.strip() in ("137", "1"), f"its own limit: {r.out} {r.err}")


def test_generations(t):
    """Children of children only where the policy says so, each generation with fewer below."""
    ws = project(t)
    code = ("ward run --set process.children=1 -- sh -c 'ward run -- echo two; "
            "ward run --set process.children=1 -- true; echo rc $?' 2>&1")
    r = run(t, ws, code)
    t.contains(r.out, "children of children are not allowed", "the default")
    r = run(t, ws, code, process={"children_depth": 2})
    t.check("two\n" in r.out and "rc 125" in r.out, r.out)
    r = run(t, ws, "ward run --set process.children=1 --set process.children_depth=2 -- true 2>&1",
            process={"children_depth": 2})
    t.contains(r.out, "must be smaller than its parent's", r.out)


BEAT = "ward run --rw out -- sh -c 'while :; do date +%N > out/beat; sleep 0.02; done'"


@by_turns
def test_no_child_outlives_its_parent(t):
    """Neither the end of its parent nor of the program that asked, nor kill -9 of the supervisor or
    of ward-children leaves a child; nor when it happens while one starts."""
    ws = project(t)
    beat = os.path.join(ws, "out/beat")

    def start(code, children=2):
        if os.path.exists(beat):
            os.unlink(beat)
        p = t.popen(t.ward_argv("run", "-p", policy(t, ws, children), "--", "sh", "-c", code),
                    cwd=ws)
        t.wait_until(lambda: os.path.exists(beat) or p.poll() is not None, 20, "no child")
        if p.poll() is not None:
            t.fail(f"it ended: {p.communicate()}")
        return p

    def supervisor(p):
        """The process that has ward-children as its child."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    name, rest = f.read().rsplit(")", 1)
            except OSError:
                continue
            if name.endswith("(ward-children"):
                parent = int(rest.split()[1])
                if parent == p.pid or is_below(parent, p.pid):
                    return parent, int(pid)
        return None

    p = start(BEAT + " & sleep 1; kill -9 $!; sleep 1; echo over")
    t.check(p.wait(30) == 0 and ended(beat), "the program that asked was killed")
    p = start(BEAT + " & sleep 0.5")
    t.check(p.wait(30) == 0 and ended(beat), "the parent ended")
    for which in (0, 1):
        p = start(BEAT)
        os.kill(supervisor(p)[which], signal.SIGKILL)
        t.check(ended(beat), f"kill -9 {which}")
        p.wait(30)
    p = start(BEAT + " & for i in 1 2 3 4 5 6 7 8; do ward run -- sleep 60 & done; "
                     "while :; do ward run -- true 2> /dev/null; done", children=16)
    time.sleep(0.2)
    os.kill(supervisor(p)[0], signal.SIGKILL)
    t.check(ended(beat), "killed while children start")
    p.wait(30)
    t.wait_until(lambda: not [n for n in os.listdir(t.runtime_dir) if n.startswith("children-")],
                 20, "the socket is removed")


def is_below(pid, top):
    while pid > 1:
        if pid == top:
            return True
        try:
            with open(f"/proc/{pid}/stat") as f:
                pid = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def test_forged_requests(t):
    """Any process inside may write a request itself: it gains nothing, and harms nobody else."""
    ws = project(t)
    code = TALK + r"""
import time
def whole(s):
    got = answer(s)
    print(got, answer(s))
whole(request(["ward", "run", "--", "true"]))
print(answer(request(["ward", "run", "--", "true"], program="/usr/bin/ward")))
whole(request(["ward", "run", "--", "x" * 90000]))
print(answer(request(["ward"])), answer(request(["ward", "ps"])), answer(request(["", ""])))
print(answer(request(["ward", "run", "--", "true"], variables=["LD_PRELOAD=x"])))
null, here = os.open("/dev/null", os.O_RDWR), os.open(".", os.O_PATH)
for fd in (os.open("/etc/passwd", os.O_PATH), os.open(".", os.O_RDONLY),
           socket.socketpair()[0].detach(), os.open("/dev/zero", os.O_RDONLY)):
    print(answer(request(["ward", "run", "--", "true"], fds=[fd, null, null, here])))
s = request(["ward", "run", "--", "sleep", "60"])
print(answer(s), flush=True)
s.send(struct.pack("IIii", 0x31636477, 2, 9999, 0)); s.send(b"x" * 20000); s.send(b"")
idle = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for i in range(200)]
for i in idle:
    i.connect("/.ward/children/socket")
print(answer(request(["ward", "run", "--", "true"])))
"""
    with open(os.path.join(ws, "talk.py"), "w") as f:
        f.write(code)
    r = run(t, ws, "python3 talk.py; until ward run -- echo still here "
                   "2> /dev/null; do sleep 0.1; done")
    out = r.out.splitlines()
    t.check(out[0].startswith("((3, 0)") and "not a request of ward's client" in out[1] and
            "still here" in r.out, r)
    t.equal([line.count("(6, 125)") for line in out[3:4]], [3], r.out)
    t.check("None" in out[4] and all("not a pipe, a file" in o for o in out[5:9]), r.out)
    t.check(out[9].startswith("((3, 0)") and out[10].startswith("((3, 0)"), r.out)


def test_descriptors_stay(t):
    """A child has no descriptor of its parent's, nor of ward's, but its three streams."""
    ws = project(t)
    code = ("import os; print(sorted(os.listdir('/proc/self/fd'), key=int)[:-1],"
            " [os.readlink(f'/proc/self/fd/{i}').split(':')[0] for i in (1, 2)])")
    r = run(t, ws, f'exec 5< .keep 6> out/log; ward run -- python3 -c "{code}" 3< out/.keep '
                   "2> /dev/null | cat", mounts=("out",))
    r2 = run(t, project(t), f'ward run -- python3 -c "{code}" 3< out/.keep | cat')
    t.equal(r2.out, "['0', '1', '2'] ['pipe', 'pipe']\n", f"{r2.err} {r.err}")


def test_records(t):
    """A child has a journal of its own that names its parent, and ward ps shows it."""
    ws = project(t)
    p = t.popen(t.ward_argv("run", "-p", policy(t, ws), "--", "ward", "run", "--", "sleep", "30"),
                cwd=ws)

    def children():
        listed = json.loads(t.ward("ps", "--json", cwd=ws).out)["sandboxes"]
        return [s for s in listed if s.get("parent")]

    t.wait_until(children, 20, "ward ps has the child")
    child = children()[0]
    t.equal(child["command"], ["sleep", "30"], child)
    t.contains(t.ward("ps", cwd=ws).out, " child ", "in the table")
    p.send_signal(signal.SIGTERM)
    t.equal(p.wait(30), 143, "it ends")
    start = [json.loads(x) for x in t.ward("audit", "show", "--json", child["id"],
                                           cwd=ws).out.splitlines()]
    t.equal([e["parent"] for e in start if e["kind"] == "run.start"], [child["parent"]], "its own")
    parent = [json.loads(x) for x in t.ward("audit", "show", "--json", child["parent"],
                                            cwd=ws).out.splitlines()]
    t.equal([(e["kind"], e.get("child")) for e in parent if e["kind"].startswith("child.")],
            [("child.start", None), ("child.end", child["id"])], "the parent's")


def test_children_are_held(t):
    """ward pause of the parent holds its children, and starts none; ward resume lets them go on."""
    ws = project(t)
    beat = os.path.join(ws, "out/beat")
    r = t.ward("run", "-d", "-p", policy(t, ws), "--", "sh", "-c", BEAT, cwd=ws)
    t.defer(clean, t)
    t.wait_until(lambda: os.path.exists(beat), 20, "the child runs")
    t.equal(t.ward("pause", r.out.strip(), cwd=ws).rc, 0, "paused")
    t.check(ended(beat), "the child stands still")
    before = os.stat(beat).st_mtime_ns
    t.equal(t.ward("resume", r.out.strip(), cwd=ws).rc, 0, "resumed")
    t.wait_until(lambda: os.stat(beat).st_mtime_ns != before, 20, "it goes on")
    t.ward("pause", r.out.strip(), cwd=ws)
    t.equal(t.ward("kill", r.out.strip(), cwd=ws).rc, 0, "killed while it is paused")
    t.check(ended(beat), "and so is the child")


def test_refused_policies(t):
    """What cannot hold a child apart refuses process.children, with the reason."""
    ws = project(t)
    for more, why in (({"filesystem": {"mode": "review"}}, "wait for ward apply"),
                      ({"process": {"nesting": True}}, "process.nesting"),
                      ({"isolation": ["oci"]}, "isolation native")):
        r = run(t, ws, "true", **more)
        t.check(r.rc == 125 and why in r.err, f"{more}: {r.err}")


ANY = json.dumps({})
NUMBER = json.dumps({"type": "object", "required": ["n"], "additionalProperties": False,
                     "properties": {"n": {"type": "integer"}}})


def channel(name, sender, receiver, schema=NUMBER, **more):
    return {"name": name, "from": sender, "to": receiver, "schema": schema, **more}


def test_messages(t):
    """In order, with the sender's name, to who may receive them and to nobody else; each is an
    event of the parent's journal, without its content."""
    ws = project(t)
    channels = [channel("down", ["parent"], ["a", "b"]), channel("up", ["a", "b"], ["parent"]),
                channel("aside", ["a"], ["b"], ANY)]
    r = run(t, ws, """
        ward run --name a -- sh -c 'ward receive down; ward send up "{\\"n\\":
            3}"; ward send aside "[\\"x\\"]"; ward send down --to b "{\\"n\\": 9}" 2>&1;
            ward receive aside 2>&1; echo a $?' &
        ward run --name b -- sh -c 'ward receive down; ward receive aside; echo b' > out/b &
        ward send down --to b '{"n": 1}'; ward send down --to a '{"n": 2}'
        ward receive up; wait; cat out/b
        ward receive up --wait 1; echo $?; ward receive none; ward send down '{"n": 1}'""",
            channels=channels)
    out = r.out.splitlines()
    t.check('{"from":"parent","message":{"n": 2}}' in out, r.out)
    t.check('{"from":"a","message":{"n":             3}}' in out, r.out)
    t.check(out.index('{"from":"parent","message":{"n": 1}}') <
            out.index('{"from":"a","message":["x"]}') < out.index("b"), r.out)
    t.contains(r.out, "a may not send on down", "not its channel")
    t.contains(r.out, "a may not receive from aside\na 125", "likewise")
    t.check("124" in out and "there is no channel none" in r.err and "--to NAME" in r.err, r.err)
    got = events(t, ws, "channel.message")
    sent = [(e["from"], e["to"], e["object"]) for e in got if e["action"] == "allow"]
    t.equal(sorted(sent), [("a", "b", "aside"), ("a", "parent", "up"), ("parent", "a", "down"),
                           ("parent", "b", "down")], "on record")
    t.check(all(len(e["digest"]) == 64 and e["bytes"] for e in got), f"{got}")


def test_messages_that_do_not_fit(t):
    """Schema, size, rate, how many wait, hidden characters: refused with the reason, on record."""
    ws = project(t)
    channels = [channel("c", ["parent"], ["a"], max_bytes=100, per_minute=1000),
                channel("slow", ["parent"], ["a"], per_minute=2)]
    bad = {'{"n": "x"}': "expected integer", '{"n": 1, "m": 2}': "", "{": "does not match",
           '{"n": 1} 2': "does not match", "[" * 90: "does not match", "": "does not match",
           '{"n":' + "1" * 100 + "}": "more than 100 bytes", '{"n": 1\u200b}': "hidden"}
    lines = "".join(f"ward send c '{m}' 2>&1; echo \"= $?\"\n" for m in bad)
    r = run(t, ws, lines + """
        for i in 1 2 3; do ward send slow '{"n": 1}' 2>&1; done
        for i in $(seq 18); do ward send c '{"n": 1}' 2>&1; done""", channels=channels)
    answers = r.out.split("= 125\n")
    t.equal(len(answers), len(bad) + 1, r.out)
    for (message, why), got in zip(bad.items(), answers):
        t.contains(got, why, message)
    t.contains(answers[-1], "more than 2 messages in a minute", "the rate")
    t.equal(answers[-1].count("16 messages for a wait on c already"), 2, "the queue")
    denied = [e for e in events(t, ws, "channel.message") if e["action"] == "deny"]
    t.equal(len(denied), len(bad) + 3, "on record")
    for channels, why in (([channel("c", ["parent"], ["a"], "{")], "is not JSON"),
                          ([channel("c", ["parent"], ["a"], '{"typ": 1}')], "schema of c"),
                          ([channel("c", ["parent"], ["a"])] * 2, "twice")):
        r = run(t, ws, "true", channels=channels)
        t.check(r.rc == 125 and why in r.err, f"{channels}: {r.err}")
    r = run(t, ws, "true", channels=[channel("c", ["parent"], ["a"])], children=0)
    t.check(r.rc == 125 and "process.children" in r.err, f"without children: {r.err}")


def test_agents_example(t):
    """examples/agents: an orchestrator and two workers, whose hostile one gets nowhere."""
    ws = t.workspace({f"{path.parent.name}/{path.name}" if path.parent != AGENTS else path.name:
                      path.read_text() for path in AGENTS.rglob("*") if path.is_file()})
    r = t.ward("run", "-p", "ward.yaml", "--report", report(t), "--", "python3", "orchestrator.py",
               cwd=ws, timeout=120)
    lines = r.out.splitlines()
    words = len((AGENTS / "ward.yaml").read_text().split())
    t.check(f"honest counted {words} words" in lines and "hostile counted 0 words" in lines, r)
    contained = [line for line in lines if line.startswith("contained: ")]
    t.equal(([x for x in lines if x.startswith("WORKED")], len(contained)), ([], 15), r.out)
    t.equal(sorted(p for p in os.listdir(ws)), sorted(p.name for p in AGENTS.iterdir()),
            "nothing planted")
    t.equal(open(os.path.join(ws, "orchestrator.py")).read(),
            (AGENTS / "orchestrator.py").read_text(), "nothing changed")
    denied = {e["object"] for e in events(t, ws, "channel.message") if e["action"] == "deny"}
    t.equal(denied, {"tasks", "results"}, "on record")
