"""One policy, every engine: the same list of features is tried under each engine that this machine
has. What an engine cannot do it must refuse before anything starts, and it stands in REFUSES;
everything else must come out alike.

One test for each engine, so that what an engine needs once (a kernel, a template, a compiled
module) is made once; every feature that fails is named.
"""
import contextlib
import os
import signal
import subprocess
import traceback

from harness import by_turns, context, engines, leaks, native_only, needs, timeout
from harness.boxes import box, clean
from harness.engines import OPTIONS
from harness.world import World, policy

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")

# engine -> features that it refuses, with a word of the refusal
REFUSES = {
    "oci": {},
    "gvisor": {},
    "vm": {},
    "wasm": {},
}
# features that have no meaning there: no processes, no signals, no sockets behind a WASI runtime
MEANINGLESS = {"wasm": {"network", "signals", "processes", "own_kernel", "identity"}}


class Conform:
    """One engine and what the features need of it."""

    def __init__(self, t, engine):
        self.t, self.engine = t, engine
        self.slow = engines.SLOWER[engine]
        self.options = list(OPTIONS[engine])
        with open(os.path.join(DATA, "conform.c")) as f:
            source = f.read()
        self.tool = engines.wasm_tool(t,
                                      source) if engine == "wasm" else engines.linux_tool(t, source)
        self.name = "tool.wasm" if engine == "wasm" else "tool"
        engines.prepare(t, engine, self.options)

    def workspace(self, files=None):
        """A fresh workspace with the tool in it; as root it is an ordinary user's where the engine
        wants that."""
        ws = self.t.workspace(files)
        target = os.path.join(ws, self.name)
        with open(self.tool, "rb") as a, open(target, "wb") as b:
            b.write(a.read())
        os.chmod(target, 0o755)
        return ws

    def argv(self, *words):
        """The tool's command line."""
        return [f"./{self.name}", *map(str, words)]

    def run(self, ws, *words, options=(), rc=0, ward=None, **more):
        """Runs the tool inside; checks the exit code."""
        more.setdefault("timeout", 30 * self.slow)
        call = ward or self.t.ward
        r = call("run", *self.options, *options, "--", *self.argv(*words), cwd=ws, report=True,
                 **more)
        if rc is not None:
            self.t.equal(r.rc, rc, f"{words}: {r.err}")
        return r


def feature_results(c):
    """Exit codes, and the engine's name in the report."""
    ws = c.workspace()
    r = c.run(ws, "args", "a", "b c", "", "ü$*")
    c.t.equal(r.out, "[a][b c][][ü$*]\n")
    c.t.equal(r.report["engine"], c.engine)
    c.run(ws, "exit", 7, rc=7)
    r = c.t.ward("run", *c.options, "--", "./no-such-program.wasm", cwd=ws, timeout=30 * c.slow)
    c.t.equal(r.rc, 127, r.err)


def feature_stdio(c):
    """Bytes go through as they are, both ways; standard error is its own."""
    ws = c.workspace()
    blob = bytes(range(256)) * 2000
    r = c.run(ws, "cat", input=blob)
    c.t.check(r.out_bytes == blob, f"{len(r.out_bytes)} bytes came back")
    r = c.run(ws, "error", "to-standard-error")
    c.t.equal((r.out, "to-standard-error" in r.err), ("", True))


def feature_environment(c):
    """The allow-list of variables, and where the command starts."""
    ws = c.workspace({"sub/x": "x"})
    c.t.equal(c.run(ws, "env", "SECRET_OF_THE_HOST", env={"SECRET_OF_THE_HOST": "s"}).out,
              "(none)\n")
    c.t.equal(c.run(ws, "env", "GIVEN_HERE", options=("--env", "GIVEN_HERE=a b")).out, "a b\n")
    c.t.equal(c.run(ws, "where").out, ws + "\n")


def feature_files(c):
    """What is written is there afterwards; what is removed is gone; nothing else of the host
    exists."""
    outside = os.path.join(c.t.fresh_dir("outside"), "secret")
    c.t.write("/", {outside.lstrip("/"): "OUTSIDE-SECRET"})
    ws = c.workspace({"old": "old content\n", "gone": "x"})
    c.t.equal(c.run(ws, "read", "old").out, "old content\n")
    c.run(ws, "write", "new", "new content")
    c.run(ws, "remove", "gone")
    c.t.equal((c.t.read(ws, "new"), c.t.read(ws, "gone")), ("new content", None))
    for path in (outside, "../" * 20 + outside.lstrip("/"), "/etc/shadow"):
        r = c.run(ws, "read", path, rc=1)
        c.t.check("SECRET" not in r.out and "root:" not in r.out, r.out)
    os.symlink(outside, os.path.join(ws, "link"))
    c.t.check("SECRET" not in c.run(ws, "read", "link", rc=1).out, "a link leads out")


def feature_hidden(c):
    """filesystem.hide."""
    ws = c.workspace({".env": "HIDDEN-SECRET\n"})
    r = c.run(ws, "read", ".env", options=("--set", 'filesystem.hide=[".env"]'), rc=None)
    c.t.check("SECRET" not in r.out + r.err, r.out)
    c.t.equal(c.t.read(ws, ".env"), "HIDDEN-SECRET\n")


def feature_protected(c):
    """What ward protects by itself: hooks and configuration of git."""
    files = {".git/hooks/pre-commit": "#!/bin/sh\n", ".git/config": "[core]\n",
             ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": ""}
    ws = c.workspace(files)
    for name in (".git/hooks/pre-commit", ".git/config", ".git/hooks/post-checkout"):
        c.run(ws, "write", name, "#!/bin/sh\ntouch /tmp/owned\n", rc=None)
    c.t.equal((c.t.read(ws, ".git/hooks/pre-commit"), c.t.read(ws, ".git/config"),
               c.t.read(ws, ".git/hooks/post-checkout")),
              ("#!/bin/sh\n", "[core]\n", None))


def feature_read_only(c):
    """filesystem.mode: read_only, and host mounts."""
    extra = c.t.fresh_dir("extra")
    c.t.write(extra, {"data": "given\n"})
    ws = c.workspace({"a": "a"})
    c.t.equal(c.run(ws, "write", "a", "changed", options=("--set", "filesystem.mode=read_only"),
                    rc=None).rc != 0 or c.t.read(ws, "a") == "a", True)
    c.t.equal(c.t.read(ws, "a"), "a")
    c.t.equal(c.run(ws, "read", f"{extra}/data", options=("--ro", extra)).out, "given\n")
    c.run(ws, "write", f"{extra}/data", "changed", options=("--ro", extra), rc=None)
    c.t.equal(c.t.read(extra, "data"), "given\n")
    c.run(ws, "write", f"{extra}/more", "more", options=("--rw", extra))
    c.t.equal(c.t.read(extra, "more"), "more")


def feature_review(c):
    """filesystem.mode: review: nothing is changed until it is applied."""
    ws = c.workspace({"a": "a"})
    r = c.run(ws, "write", "a", "changed", options=("--review",))
    c.t.equal(c.t.read(ws, "a"), "a", "changed already")
    c.t.contains(c.t.ward("diff", r.report["run"]).out, "M  a", "the change")
    c.t.equal(c.t.ward("apply", r.report["run"]).rc, 0)
    c.t.equal(c.t.read(ws, "a"), "changed")


def feature_time(c):
    """--timeout."""
    ws = c.workspace()
    for word in (("sleep", 100), ("spin",)):
        r = c.run(ws, *word, options=("--timeout", str(1 + c.slow // 4)), rc=124)
        c.t.equal(r.report["limits"]["timeout"]["hit"], True)


def feature_memory(c):
    """--memory: a little fits, too much does not, and the machine is fine."""
    ws = c.workspace()
    # a machine needs room of its own beside what it gives the command
    limit = ("--memory", "512Mi" if c.engine == "vm" else "256Mi")
    c.run(ws, "alloc", 8, options=limit)
    r = c.run(ws, "alloc", 1500, options=limit, rc=None)
    c.t.check(r.rc != 0, f"1500 MiB fit into {limit[1]}")


def feature_output(c):
    """The output limit ends a flood."""
    ws = c.workspace()
    r = c.run(ws, "flood", 200 << 20, options=("--set", "resources.output_limit=1Mi"), rc=None)
    c.t.check(r.rc == 137 and r.report["limits"]["output"]["hit"] and len(r.out_bytes) < 4 << 20,
              (r.rc, len(r.out_bytes)))


def feature_processes(c):
    """--pids."""
    r = c.run(c.workspace(), "forks", 400, options=("--pids", "60"), rc=None)
    c.t.check(not r.out.strip() or int(r.out.split()[0]) < 60, r.out)


def feature_signals(c):
    """SIGTERM reaches the command, which ends as it likes."""
    process = c.t.ward_start("run", *c.options, "--", *c.argv("ends", 100), cwd=c.workspace())
    c.t.equal(process.stdout.readline(), b"up\n")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20 * c.slow)
    c.t.equal((out, process.returncode), (b"asked to end\n", 9), err)


def feature_identity(c):
    """The agent is nobody special."""
    c.t.check(c.run(c.workspace(), "id").out.strip() == "1000", "uid inside")


def feature_own_kernel(c):
    """Engines with a kernel of their own show it; the others show the host's."""
    seen = c.run(c.workspace(), "kernel").out.strip()
    if c.engine in ("gvisor", "vm"):
        c.t.check(seen != os.uname().release, f"the host's kernel: {seen}")
    else:
        c.t.equal(seen, os.uname().release)


def feature_no_network(c):
    """Without a word about networks there is none."""
    if c.engine != "wasm":
        out = c.run(c.workspace(), "connect", "192.0.2.53", 53, rc=1).out
        c.t.check("got" not in out, out)


def feature_network(c):
    """Allowed names, and nothing else, through the gateway."""
    world = World(c.t)
    ws = c.workspace()
    options = ("-p", policy(c.t))
    r = c.run(ws, "connect", "db.test", 5432, options=options, ward=world.ward)
    c.t.equal(r.out, "got hello\n")
    for name, port in (("evil.test", 443), ("192.0.2.80", 25), ("127.0.0.1", 22)):
        r = c.run(ws, "connect", name, port, options=options, ward=world.ward, rc=1)
        c.t.check("got" not in r.out, r.out)
    c.t.check(not any("evil" in line for line in world.log()), world.log())


def feature_left_running(c):
    """run -d, exec, cp, logs, pause, resume, checkpoint (which gvisor makes and the others refuse),
    stop."""
    ws = c.workspace({"a": "from outside\n"})
    name = box(c.t, *c.options, "--", *c.argv("sleep", 1000), cwd=ws, timeout=60 * c.slow)
    r = c.t.ward("exec", name, "--", *c.argv("read", "a"), timeout=30 * c.slow)
    c.t.equal((r.rc, r.out), (0, "from outside\n"), r.err)
    c.t.equal(c.t.ward("exec", name, "--", *c.argv("exit", 5), timeout=30 * c.slow).rc, 5)
    c.t.equal(c.t.ward("exec", name, "--", *c.argv("write", "by-exec", "e"),
                       timeout=30 * c.slow).rc, 0)
    copied = os.path.join(c.t.directory, f"copied-{c.engine}")
    r = c.t.ward("cp", f"{name}:{ws}/by-exec", copied, timeout=30 * c.slow)
    c.t.equal((r.rc, c.t.read(copied)), (0, "e"), r.err)
    c.t.equal(c.t.ward("pause", name, timeout=30).rc, 0)
    c.t.equal(c.t.ward("resume", name, timeout=30).rc, 0)
    c.t.equal(c.t.ward("exec", name, "--", *c.argv("args", "again"), timeout=30 * c.slow).out,
              "[again]\n")
    c.t.contains(c.t.ward("logs", name).out, "up", "logs")
    r = c.t.ward("checkpoint", name, "kept", timeout=30)
    if c.engine == "gvisor":
        c.t.equal((r.rc, c.t.ward("checkpoint", "rm", "kept").rc), (0, 0), r.err)
    else:
        c.t.check(r.rc == 125 and f"isolation: {c.engine} does not support checkpoints" in r.err
                  and "remedy: " in r.err, r)
    r = c.t.ward("stop", "--timeout", "1", name, timeout=30 * c.slow)
    c.t.equal(r.rc, 0, r.err)
    c.t.equal(c.t.read(ws, "by-exec"), "e", "what it wrote is there afterwards")
    clean(c.t)


def feature_a_terminal(c):
    """-t: a terminal inside."""
    r = c.t.ward("run", *c.options, "-t", "--", *c.argv("tty"), cwd=c.workspace(),
                 timeout=30 * c.slow)
    c.t.equal((r.rc, r.out.split()), (0, ["1", "1", "1"]), r.err)


def feature_record(c):
    """The journal has the run, and holds."""
    run = c.run(c.workspace(), "exit", 3, rc=3).report["run"]
    r = c.t.ward("audit", "show", run, "--json")
    c.t.check("run.start" in r.out or "run" in r.out, r)
    c.t.equal(c.t.ward("audit", "verify").rc, 0)


def feature_killed(c):
    """kill -9 of ward: nothing is left (looked for after the test), and the next run is fine."""
    process = c.t.ward_start("run", *c.options, "--", *c.argv("sleep", 1000), cwd=c.workspace(),
                             stderr=subprocess.DEVNULL)
    c.t.equal(process.stdout.readline(), b"up\n")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    c.run(c.workspace(), "args", "fine")


def below(t, process):
    """pid -> name of everything that ward has started."""
    found = {}
    with t.root():
        for pid in leaks.descendants(process.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as f:
                found[pid] = f.read().strip()
    return found


def feature_any_process_killed(c):
    """kill -9 of any process behind ward: the run ends with an error or goes on and can be ended,
    and nothing is left (looked for after the test)."""
    left, tried = {None}, set()
    while left:
        process = c.t.ward_start("run", *c.options, "--", *c.argv("sleep", 1000), cwd=c.workspace())
        c.t.equal(process.stdout.readline(), b"up\n")
        found = below(c.t, process)
        left = set(found.values()) - tried
        name = min(left, default=None)
        tried.add(name)
        with c.t.root(), contextlib.suppress(ProcessLookupError):
            for pid in [p for p, n in found.items() if n == name][:1]:
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1 + c.slow / 8)
        alone = process.poll() is None
        if alone:
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20 * c.slow)
        c.t.check(process.returncode != 0,
                  f"{name} was killed, and ward says that all is well: {err}")
        c.t.say(f"{name}: exit {process.returncode}" + (", when asked to end" if alone else ""))
        left.discard(name)


FEATURES = {name[len("feature_"):]: function for name, function in list(globals().items())
            if name.startswith("feature_")}


def refused(c, name, word):
    """An engine that cannot do it says so before anything starts."""
    options = {"network": ("--allow", "db.test:5432"), "an_image": ("--image", "/usr"),
               "a_terminal": ("-t",), "review": ("--review",)}[name]
    r = c.t.ward("run", *c.options, *options, "--", *c.argv("args", "STARTED"), cwd=c.workspace())
    c.t.check(r.rc == 125 and word in r.err and "STARTED" not in r.out,
              f"{name} must be refused: {r}")


def conform(t, engine):
    """Every feature under one engine."""
    why = engines.why_not(t, engine)
    if why:
        t.skip(why)
    c = Conform(t, engine)
    failed = []
    for name, feature in FEATURES.items():
        if name in MEANINGLESS.get(engine, ()):
            continue
        t.say(f"{engine}: {name}")
        try:
            if name in REFUSES.get(engine, {}):
                refused(c, name, REFUSES[engine][name])
            else:
                feature(c)
        except context.Failed as error:
            failed.append(f"{name}: {error}")
        except (OSError, subprocess.SubprocessError, KeyError, ValueError, IndexError):
            failed.append(f"{name}: {traceback.format_exc()}")
    t.check(not failed, f"{engine}: {len(failed)} of {len(FEATURES)} features failed:\n"
            + "\n".join(failed))


@by_turns
@timeout(120)
def test_native(t):
    conform(t, "native")


@by_turns
@native_only("each feature has a sanitized test of its own; this compares engines")
@timeout(180)
def test_oci(t):
    conform(t, "oci")


@by_turns
@needs("unsanitized")
@timeout(300)
def test_gvisor(t):
    conform(t, "gvisor")


@by_turns
@needs("unsanitized")
@timeout(600)
def test_vm(t):
    conform(t, "vm")


@by_turns
@needs("unsanitized")
@timeout(300)
def test_wasm(t):
    conform(t, "wasm")
