"""One file per attack: what it is made of, and how it is judged.

The file's docstring says what the attack is, and has two lines: `layer:` (what stops it) and
`control:` (how it is seen to succeed without the sandbox). The module defines

  scene(s)       optional: prepares the outside; s is a Scene; puts what the attack must know into
                 s.args
  attack(a)      runs inside, with harness/inside.py in front of it; a is s.args. Or C: the source
                 of a program, or WASM: the source of a module, with harness/wasm.py's PRELUDE in
                 front of it, which the control run has as a program; s.argv are its arguments
  escaped(s, r)  optional: whether the attack reached its aim, judged from outside; unless given:
                 whether s.token, a secret that only the outside knows, stands in what the attack
                 printed

and, where they differ from the usual: OPTIONS (of ward run), CONTROL ("plain": the same user, no
sandbox; "root": root, no sandbox; "unshare FLAGS": in a throw-away namespace), CONTROL_SHELL (run
in front of the control, with "$@" for it), REFUSED (ward may refuse to start: exit 125), ENGINES
and ENGINES_WHY (under which engines it makes sense, and why not under others), NEEDS, ONLY, SERIAL,
SLOW, TIMEOUT. A module that fits none of this defines test(t) and does both runs itself.

A control run does what the attack does to things of its own scene, never to the machine at large:
inside() and processes() of harness/inside.py tell the attack which run it is in.

Every attack runs twice, each time with a fresh scene: the control run must succeed, or the attack
proves nothing; the sandboxed one must have begun (or been refused, where REFUSED says so), and must
fail.
"""
import contextlib
import ctypes
import functools
import inspect
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time

from . import context, engines, host, users, wasm

PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
BEGAN = "[attack began]"
NOT_CONTAINED = "[not contained]"
HERE = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(HERE, "inside.py")) as source_file:
    PRELUDE = source_file.read()


class Scene:
    """The outside of one run of an attack."""

    def __init__(self, t, module, control):
        self.t, self.module, self.control = t, module, control
        self.token = "TOKEN" + secrets.token_hex(12)
        self.ws = t.workspace()
        self.outside = t.fresh_dir("outside")	# the user's too, but not granted
        self.args = {}
        self.argv = []				# of a C program
        self.options = list(getattr(module, "OPTIONS", []))
        if hasattr(module, "WASM") and not control:
            self.options += wasm.interpreted(t, getattr(module, "RUNTIME", None))
        self.env = {}
        self.cwd = self.ws
        self.stdin = None
        self.stdout = subprocess.PIPE
        self.pass_fds = ()
        self.input = None
        self.prepare = None
        self.wrap = ()				# prefix that root runs in front of both
        self.timeout = 25 * engines.patience()
        self.tty = False
        self._kept = []

    # -- actors

    def secret(self, name="secret.txt", directory=None):
        """A file of the user's outside the workspace that holds the token; returns its path."""
        path = os.path.join(directory or self.outside, name)
        self.t.write(os.path.dirname(path), {os.path.basename(path): self.token + "\n"})
        return path

    def victim(self):
        """A process of the same user outside, with the token in its memory and in an open, unlinked
        file. Returns {pid, address, length, fd}."""
        data = ctypes.create_string_buffer(self.token.encode())
        self._kept.append(data)
        path = os.path.join(self.outside, f"held{len(self._kept)}")
        with open(path, "w+") as f:
            f.write(self.token)
            f.flush()
            os.unlink(path)
            fd = f.fileno()
            pid = self.t.background(self._wait_for_ever, fd, data)
        return {"pid": pid, "address": ctypes.addressof(data), "length": len(self.token), "fd": fd}

    @staticmethod
    def _wait_for_ever(fd, data):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.lseek(fd, 0, 0)
        while data:
            time.sleep(60)

    @staticmethod
    def alive(pid):
        """Whether the child of background() or victim() still runs."""
        return os.waitpid(pid, os.WNOHANG)[0] == 0

    def serve(self, listener):
        """Accepts on a bound socket outside and hands everybody the token; what it hears goes into
        heard()."""
        log = os.path.join(self.outside, f"heard{len(self._kept)}")
        self._kept.append(log)
        if (listener.type & socket.SOCK_STREAM == socket.SOCK_STREAM
            and listener.type != socket.SOCK_DGRAM):
            listener.listen(64)

        def loop():
            while True:
                if listener.type == socket.SOCK_DGRAM:
                    data, peer = listener.recvfrom(4096)
                    self.t.write("/", {log.lstrip("/"): data.decode(errors="replace")})
                    with contextlib.suppress(OSError, TypeError):
                        listener.sendto(self.token.encode(), peer)
                    continue
                peer, _ = listener.accept()
                with open(log, "a") as f:
                    f.write("connected\n")
                with contextlib.suppress(OSError):
                    peer.sendall(self.token.encode() + b"\n")
                peer.close()
        self.t.background(loop)
        self._log = log
        listener.close()

    def heard(self):
        """What the server of serve() was sent."""
        return self.t.read(self._log) or ""

    def companion(self, function, options=(), **args):
        """A second program of the same user, in a sandbox of its own in the same workspace (plainly
        in a control run). It is ready when it has made the file "ready" in the workspace. Returns
        the process."""
        facts = self.facts([])
        source = f"{PRELUDE}\n{inspect.getsource(function)}\nmain({function.__name__})\n"
        argv = [*PYTHON, source, json.dumps({**args, "scene": facts})]
        if not self.control:
            # a second machine would bring its files back at its end; the neighbour that can do
            # something is a native one
            other = ("--isolation", "native") if engines.asked() == "vm" else ()
            argv = self.t.ward_argv("run", *other, "-w", self.ws, *options, "--", *argv)
        log = open(os.path.join(self.outside, "companion.log"), "w+")
        process = self.t.popen(argv, cwd=self.ws, stdout=log, stderr=log)
        ready = os.path.join(self.ws, "ready")
        try:
            self.t.wait_until(lambda: os.path.exists(ready) or process.poll() is not None, 10,
                              "the companion is ready")
        finally:
            self.t.say("companion: " + self.t.read(log.name))
            log.close()
        self.t.check(os.path.exists(ready), "the companion ended before it was ready")
        return process

    def wait_begun(self, path, process=None):
        """Waits until the attack has made this file in the workspace. Of a machine nothing comes
        back before its end: there it has said that it began (process, of ward_start()), or is given
        some seconds."""
        if engines.asked() == "vm" and not self.control:
            said = b""
            while process and BEGAN.encode() not in said:
                more = os.read(process.stderr.fileno(), 4096)
                self.t.check(more, f"the attack has not begun: {said}")
                said += more
            time.sleep(1 if process else 4)
        else:
            self.t.wait_until(lambda: os.path.exists(path), 10, "the attack has begun")

    # -- the two ways to run

    def program(self):
        """The attack as a command line."""
        if hasattr(self.module, "WASM"):
            make = self.t.compile if self.control else functools.partial(engines.wasm_tool, self.t)
            shutil.copy(make(wasm.PRELUDE + self.module.WASM), os.path.join(self.ws, "attack.wasm"))
            return [os.path.join(self.ws, "attack.wasm"), *map(str, self.argv)]
        if hasattr(self.module, "C"):
            path = self.t.compile(self.module.C)
            inside = os.path.join(self.ws, "attack")
            shutil.copy(path, inside)
            return [inside, *map(str, self.argv)]
        source = f"{PRELUDE}\n{inspect.getsource(self.module.attack)}\nmain(attack)\n"
        return [*PYTHON, source, json.dumps({**self.args, "scene": self.facts(self.t.started())})]

    def facts(self, pids):
        """What the prelude knows about the outside."""
        return {"inside": not self.control, "pids": pids,
                "pid_ns": os.readlink("/proc/self/ns/pid"),
                "boot_id": self.t.read("/proc/sys/kernel/random/boot_id")}

    def run(self):
        """The attack, without or within the sandbox."""
        return self.run_control() if self.control else self.run_ward()

    def _start(self, argv, root=False):
        if self.tty:
            return self.t.tty(*argv, env=self.env, cwd=self.cwd, timeout=self.timeout, root=root)
        return self.t.run(*argv, env=self.env, cwd=self.cwd, timeout=self.timeout, root=root,
                          stdin=self.stdin,
                          stdout=self.stdout, pass_fds=self.pass_fds, input=self.input,
                          prepare=self.prepare)

    def run_control(self):
        """Without ward: as CONTROL says."""
        how = getattr(self.module, "CONTROL", "plain")
        argv = self.program()
        shell = getattr(self.module, "CONTROL_SHELL", None)
        if shell:
            argv = ["sh", "-c", shell, "sh", *argv]
        if how.startswith("unshare"):
            argv = [*how.split(), *argv]
        if self.wrap:
            return self._start([*self.wrap, *users.setpriv(self.t.person), *argv], root=True)
        return self._start(argv, root=how == "root")

    def run_ward(self):
        """With ward, and with its report."""
        if "WARD_STATE_DIR" in self.env:
            engines.other_state(self.t, self.env["WARD_STATE_DIR"])
        if self.tty:
            return self.t.ward_tty("run", "-w", self.ws, *self.options, "--", *self.program(),
                                   env=self.env,
                                   cwd=self.cwd, timeout=self.timeout)
        return self.t.ward("run", "-w", self.ws, *self.options, "--", *self.program(), env=self.env,
                           cwd=self.cwd,
                           timeout=self.timeout, stdin=self.stdin, stdout=self.stdout,
                           pass_fds=self.pass_fds,
                           input=self.input, prepare=self.prepare, wrap=self.wrap, report=True)


# how ward says that an engine has no such thing
REFUSES = re.compile(r"(this build|engine) cannot do that|engine does not support it|"
                     r"not possible behind|for root")


def header(module):
    """Checks that the file says what it must; returns the layer."""
    text = module.__doc__ or ""
    name = os.path.basename(module.__file__)
    for key in ("layer", "control"):
        if not re.search(rf"^{key}: \S", text, re.M):
            raise SystemExit(f"{name}: the docstring has no line `{key}: ...`")
    return re.search(r"^layer: (.+)$", text, re.M).group(1)


def judge(t, module, control):
    """One of the two runs."""
    s = Scene(t, module, control)
    t.say("control run, without the sandbox" if control else "inside the sandbox")
    if hasattr(module, "scene"):
        module.scene(s)
    r = s.run()
    if hasattr(module, "escaped"):
        done = module.escaped(s, r)
    else:
        done = s.token in r.out or s.token in r.err
    began = BEGAN in r.err or BEGAN in r.out
    if control:
        proved(t, done)
        return
    if not began and engines.asked() and r.rc == 125 and REFUSES.search(r.err):
        t.skip("refused: " + r.err.strip().splitlines()[0])
    if not began:
        refused = r.rc == 125 and getattr(module, "REFUSED", False)
        t.check(refused, f"the attack never ran inside (exit {r.rc}), so nothing was shown")
    t.check(NOT_CONTAINED not in (r.err + r.out).splitlines(),
            "NOT CONTAINED: the attack ran in the host's own pid namespace")
    t.check(not done, breach(module))


def proved(t, done):
    """The control run has to succeed; where this host refuses root what attacks need, that is noted
    instead."""
    if not done and host.is_confined():
        t.unproved = "held inside; without a sandbox it fails here, too"
        return
    t.check(done, "the control run did not succeed, so the attack proves nothing")


def both(t, run):
    """run(control) for each of the two runs. A control run that this host refuses leaves the other
    one to be judged."""
    t.unproved = None
    for control in runs():
        try:
            run(control)
        except context.Skipped as skipped:
            if not control or not host.is_confined():
                raise
            t.unproved = f"held inside; without a sandbox: {skipped}"
    if t.unproved:
        t.skip(t.unproved)


def breach(module):
    """What is said of an attack that reached its aim; one on a resource has taken more than its
    limit."""
    word = "OVER ITS LIMIT" if os.path.basename(module.__file__).startswith(
        ("res_", "wasm_res_", "vm_res_")) else "ESCAPED"
    return f"{word}: {first_sentence(module)} (meant to be stopped by: {header(module)})"


def first_sentence(module):
    """What the attack is."""
    return " ".join(module.__doc__.strip().split("\n\n")[0].split())


def runs():
    """The control run, then the sandboxed one; only the former under --controls, only the latter
    under --no-controls."""
    if os.environ.get("WARD_TEST_CONTROLS"):
        return (True,)
    return (False,) if os.environ.get("WARD_TEST_NO_CONTROLS") else (True, False)


def make_test(module):
    """The test function of an attack's file."""
    header(module)

    def test(t):
        kind = os.path.basename(module.__file__).split("_")[0]
        if engines.asked() == "wasm" and kind != "wasm":
            t.skip("does not apply: the attack is a program for Linux, which is no module")
        if engines.asked() not in (None, "wasm") and kind == "wasm":
            t.skip("does not apply: the attack is a module, which runs under wasm alone")
        if engines.asked() != "vm" and kind == "vm":
            t.skip("does not apply: the attack is on a virtual machine's own parts (run-tests "
                   "--engine vm)")
        if engines.asked() not in (None, *getattr(module, "ENGINES", engines.OPTIONS)):
            t.skip("does not apply: " + module.ENGINES_WHY)
        if hasattr(module, "test"):
            module.test(t)
            return
        both(t, lambda control: judge(t, module, control))
    test.needs = tuple(getattr(module, "NEEDS", ()))
    control = getattr(module, "CONTROL", "plain")
    if control == "root" and "root" not in test.needs:
        test.needs += ("root",)
    if hasattr(module, "WASM"):
        test.needs += ("unsanitized",)
    if (hasattr(module, "C") or hasattr(module, "WASM")) and "cc" not in test.needs:
        test.needs += ("cc",)
    for attribute in ("ONLY", "SERIAL", "SLOW", "TIMEOUT"):
        if hasattr(module, attribute):
            setattr(test, attribute.lower(), getattr(module, attribute))
    return test


def run_both(t, module, run):
    """For a module with its own test(t): run(s) -> whether it escaped, for the control and for the
    sandboxed run."""
    def one(control):
        s = Scene(t, module, control)
        t.say("control run, without the sandbox" if control else "inside the sandbox")
        done = run(s)
        if control:
            proved(t, done)
        else:
            t.check(not done, breach(module))
    both(t, one)


__all__ = ["Scene", "make_test", "run_both", "context"]
