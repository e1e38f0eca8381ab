"""What a test is handed: `t`.

It starts ward as the right user with an environment of its own, keeps a transcript of what happened
for the case that the test fails, and cleans up.
"""
import contextlib
import fcntl
import json
import os
import select
import shlex
import signal
import struct
import subprocess
import tempfile
import termios
import time

from . import engines, host, leaks, users

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHOWN = 4000	# bytes of output in a transcript


class Failed(AssertionError):
    """The test failed."""


class Skipped(Exception):
    """The host's kernel cannot show it; the reason is the message."""


class Result:
    """What a program came to: rc (negative: killed by that signal), out and err as text, the report
    where asked for."""

    def __init__(self, rc, out, err, seconds, report=None):
        self.rc = rc
        self.out_bytes, self.err_bytes = out, err
        self.out = out.decode("utf-8", "replace")
        self.err = err.decode("utf-8", "replace")
        self.seconds = seconds
        self.report = report

    def __repr__(self):
        return (f"<rc {self.rc}, {self.seconds:.2f} s, out {self.out[:200]!r}, err "
                f"{self.err[:300]!r}>")


class Test:
    """One test as one user."""

    def __init__(self, name, as_user, ward, directory, cache):
        self.name = name
        self.as_user = as_user			# "root" or "user"
        self.ward_path = ward
        self.cache = cache			# for what may be made once for all tests
        self.person = users.entry(as_user)
        self.directory = directory		# of this test alone, owned by the user
        self.log = []
        self._made = 0
        self.workspaces = []
        self._running = []
        self._children = []
        self._cleanups = []
        self._cgroups = leaks.snapshot()
        self.state_dir = self._fresh("state")
        self.runtime_dir = self._fresh("runtime")
        self.home = self._fresh("home")

    # -- files

    def _fresh(self, name):
        path = os.path.join(self.directory, name)
        os.mkdir(path, 0o700)
        return path

    def fresh_dir(self, name="dir"):
        """A new empty directory of the user's, outside every workspace."""
        self._made += 1
        return self._fresh(f"{name}{self._made}")

    def workspace(self, files=None):
        """A new workspace; files: path -> content (text, or None for a directory)."""
        path = self.fresh_dir("ws")
        self.write(path, files or {})
        self.workspaces.append(path)
        return path

    def write(self, directory, files):
        """Writes path -> content below directory; a content of None is a directory."""
        for name, content in files.items():
            path = os.path.join(directory, name)
            if content is None:
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb" if isinstance(content, bytes) else "w") as f:
                f.write(content)

    def read(self, *parts):
        """The text of a file, None if there is none."""
        try:
            with open(os.path.join(*parts), errors="replace") as f:
                return f.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def git_repo(self, files=None):
        """A workspace that is a git repository with one commit."""
        path = self.workspace(files or {"README": "hello\n"})
        for command in (["git", "init", "-q", "-b", "main"], ["git", "add", "-A"],
                        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit",
                         "-qm", "first"]):
            self.run(*command, cwd=path, check=True)
        return path

    # -- programs

    def environment(self, env=None):
        """The environment that programs get; a value of None takes a variable away."""
        result = {"PATH": PATH, "HOME": self.home, "USER": self.person.pw_name, "LANG": "C.UTF-8",
                  "TERM": "dumb",
                  "WARD_STATE_DIR": self.state_dir, "WARD_RUNTIME_DIR": self.runtime_dir,
                  "GIT_CONFIG_NOSYSTEM": "1"}
        for key, value in (env or {}).items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def popen(self, argv, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
              stderr=subprocess.PIPE,
              root=False, pass_fds=(), prepare=None, clean_env=False):
        """Starts a program as the test's user (or as root); it is killed at the end of the test.
        prepare() is called in the child before exec."""
        person = self.person

        def child():
            if prepare:
                prepare()
            if root:
                if users.IS_ROOT:
                    os.setresuid(0, 0, 0)
                    os.setresgid(0, 0, 0)
                    os.setgroups([])
            else:
                users.drop(person)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        if root and not users.IS_ROOT:
            raise Skipped("the tests were not started by root")
        refusal = host.refuses(argv, root or person.pw_uid == 0)
        if refusal:
            raise Skipped(f"{argv[0]}: {refusal}")
        process = subprocess.Popen([os.fspath(a) for a in argv], cwd=cwd or self.directory,
                                   env=env if clean_env else self.environment(env), stdin=stdin,
                                   stdout=stdout,
                                   stderr=stderr, preexec_fn=child, pass_fds=pass_fds)
        self._running.append(process)
        return process

    def finish(self, process, argv, input=None, timeout=30, started=None):
        """Waits for a program of popen() and writes the transcript."""
        started = started or time.monotonic()
        try:
            out, err = process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired as late:
                out, err = late.stdout, late.stderr
            self.note(argv, None, out or b"", err or b"", timeout)
            raise Failed(f"did not end within {timeout} s: {self._short(argv)}") from None
        result = Result(process.returncode, out or b"", err or b"", time.monotonic() - started)
        self.note(argv, result.rc, result.out_bytes, result.err_bytes, result.seconds)
        return result

    def run(self, *argv, input=None, env=None, cwd=None, timeout=30, root=False, check=False,
            stdin=None, pass_fds=(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, prepare=None):
        """Runs a program outside of any sandbox as the test's user (or as root)."""
        started = time.monotonic()
        if isinstance(input, str):
            input = input.encode()
        if stdin is None:
            stdin = subprocess.PIPE if input is not None else subprocess.DEVNULL
        process = self.popen(argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr,
                             root=root,
                             pass_fds=pass_fds, prepare=prepare)
        result = self.finish(process, argv, input, timeout, started)
        if check and result.rc != 0:
            raise Failed(f"exit {result.rc}: {self._short(argv)}\n{result.err}")
        return result

    def ward_argv(self, *args, wrap=()):
        """The command line of ward; wrap is a prefix that root runs (unshare and the like)."""
        words = engines.with_engine(self, [os.fspath(a) for a in args])
        reason = host.no_runtime(words) if words[:1] in (["run"], ["learn"], ["shell"]) else None
        if reason:
            raise Skipped(reason)
        argv = [*engines.start_of(self), self.ward_path, *words]
        return [*wrap, *users.setpriv(self.person), *argv] if wrap else argv

    def ward(self, *args, input=None, env=None, cwd=None, timeout=30, report=False, wrap=(),
             stdin=None, pass_fds=(),
             stdout=subprocess.PIPE, stderr=subprocess.PIPE, prepare=None):
        """Runs ward and waits. report=True adds --report to `ward run` and parses it into
        .report."""
        args = list(args)
        report_path = None
        if report:
            self._made += 1
            report_path = os.path.join(self.directory, f"report{self._made}.json")
            args[1:1] = ["--report", report_path]
        result = self.run(*self.ward_argv(*args, wrap=wrap), input=input, env=env, cwd=cwd,
                          timeout=timeout,
                          root=bool(wrap), stdin=stdin, pass_fds=pass_fds, stdout=stdout,
                          stderr=stderr,
                          prepare=prepare)
        if report_path:
            text = self.read(report_path)
            try:
                result.report = json.loads(text) if text is not None else None
            except json.JSONDecodeError as error:
                raise Failed(f"the report is not JSON: {error}\n{text[:2000]}") from None
            if text is not None:
                self.log.append(f"  report: {text.strip()[:SHOWN]}")
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(report_path)
        return result

    def ward_start(self, *args, **options):
        """Starts ward and returns the process (as popen); end it with finish_ward()."""
        return self.popen(self.ward_argv(*args), **options)

    def finish_ward(self, process, timeout=30):
        """Waits for a process of ward_start()."""
        return self.finish(process, process.args, None, timeout)

    def tty(self, *argv, input=b"", after=b"", env=None, cwd=None, timeout=30, root=False,
            size=None):
        """Runs a program on a new terminal of its own (controlling terminal, 0-2). input is typed
        once the terminal has shown `after`. size: (rows, columns). Returns a Result whose out is
        all that the terminal showed; .typed is what a program that reads this terminal next would
        be given, .modes_before and .modes_after are its modes."""
        main, line = os.openpty()
        if size:
            fcntl.ioctl(line, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        attributes = termios.tcgetattr(line)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(line, termios.TCSANOW, attributes)
        before = termios.tcgetattr(line)
        started = time.monotonic()

        def prepare():
            os.setsid()
            fcntl.ioctl(line, termios.TIOCSCTTY, 1)
        process = self.popen(argv, env=env, cwd=cwd, stdin=line, stdout=line, stderr=line,
                             root=root, prepare=prepare)
        os.set_blocking(main, False)
        shown = bytearray()
        deadline = started + timeout
        while process.poll() is None:
            if input and after in shown:
                os.write(main, input)
                input = b""
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                self.note(argv, None, bytes(shown), b"", timeout)
                raise Failed(f"did not end within {timeout} s: {self._short(argv)}")
            if select.select([main], [], [], 0.02)[0]:
                with contextlib.suppress(OSError):
                    shown += os.read(main, 65536)
        while select.select([main], [], [], 0.05)[0]:
            try:
                shown += os.read(main, 65536)
            except OSError:
                break
        attributes = termios.tcgetattr(line)
        after_modes = termios.tcgetattr(line)
        attributes[3] &= ~termios.ICANON
        attributes[6][termios.VMIN] = 0
        attributes[6][termios.VTIME] = 0
        termios.tcsetattr(line, termios.TCSANOW, attributes)
        typed = os.read(line, 4096)
        os.close(main)
        os.close(line)
        result = Result(process.returncode, bytes(shown), b"", time.monotonic() - started)
        result.typed = typed
        result.modes_before, result.modes_after = before, after_modes
        self.note(argv, result.rc, result.out_bytes, b"", result.seconds)
        return result

    def ward_tty(self, *args, **options):
        """Runs ward on a terminal: see tty()."""
        return self.tty(*self.ward_argv(*args), **options)

    def background(self, function, *args):
        """Calls function(*args) in a child process as the test's user; it is killed at the end.
        Returns its pid."""
        pid = os.fork()
        if pid == 0:
            try:
                users.drop(self.person)
                function(*args)
            finally:
                os._exit(0)
        self._children.append(pid)
        self.defer(self._end_child, pid)
        return pid

    def started(self):
        """The processes that popen() and background() started."""
        return [p.pid for p in self._running] + self._children

    @staticmethod
    def _end_child(pid):
        with contextlib.suppress(OSError):
            with users.as_root() if users.IS_ROOT else contextlib.nullcontext():
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def compile(self, source, flags=("-static", "-O1"), compiler="cc"):
        """Compiles C, once for all tests; returns the program."""
        import hashlib
        key = hashlib.sha256((source + compiler + " ".join(flags)).encode()).hexdigest()[:16]
        path = os.path.join(self.cache, key)
        if not os.path.exists(path):
            with users.as_root() if users.IS_ROOT else contextlib.nullcontext():
                with tempfile.TemporaryDirectory(dir=self.cache) as work:
                    with open(os.path.join(work, "a.c"), "w") as f:
                        f.write(source)
                    made = subprocess.run([compiler, "-D_GNU_SOURCE", "-w", *flags, "-o",
                                           f"{work}/a", f"{work}/a.c"],
                                          # a compiler that is a script drops an effective id alone
                                          capture_output=True, text=True,
                                          preexec_fn=(lambda: os.setresuid(0, 0, 0))
                                          if users.IS_ROOT else None)
                    if made.returncode != 0:
                        raise Failed(f"the attack does not compile:\n{made.stderr}")
                    os.chmod(f"{work}/a", 0o755)
                    os.rename(f"{work}/a", path)
        return path

    @contextlib.contextmanager
    def root(self):
        """`with t.root():` gives root's rights for a look at the host. Where the tests have none,
        and the look needs them, the test is skipped."""
        if users.IS_ROOT:
            with users.as_root():
                yield
            return
        try:
            yield
        except PermissionError as error:
            raise Skipped("the tests were not started by root") from error

    def defer(self, function, *args):
        """function(*args) is called when the test is over, last first."""
        self._cleanups.append((function, args))

    # -- verdicts

    def fail(self, message):
        """Ends the test as failed."""
        raise Failed(message)

    def skip(self, reason):
        """Ends the test: the host's kernel cannot show it."""
        raise Skipped(reason)

    def check(self, condition, message):
        """Fails with message unless condition holds."""
        if not condition:
            raise Failed(message)

    def equal(self, got, wanted, message="value"):
        """Fails unless got == wanted."""
        if got != wanted:
            raise Failed(f"{message}: got {got!r}, wanted {wanted!r}")

    def contains(self, text, part, message="text"):
        """Fails unless part is in text."""
        if part not in text:
            raise Failed(f"{message}: {part!r} is not in {text[:2000]!r}")

    def wait_until(self, condition, seconds=5, message="it did not happen"):
        """Polls until condition() holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"{message} within {seconds} s")
            time.sleep(0.01)

    # -- the transcript

    @staticmethod
    def _short(argv):
        words = [os.fspath(a) for a in argv]
        return " ".join(shlex.quote(w if len(w) < 300 else f"[{len(w)} bytes]") for w in words)

    def say(self, text):
        """A line for the transcript."""
        self.log.append(f"  # {text}")

    def note(self, argv, rc, out, err, seconds):
        """Writes one program's run into the transcript."""
        self.log.append(f"  $ {self._short(argv)}")
        for label, data in (("out", out), ("err", err)):
            for line in data[:SHOWN].decode("utf-8", "backslashreplace").splitlines():
                self.log.append(f"    {label}: {line!r}" if not line.isprintable()
                                else f"    {label}: {line}")
        self.log.append(f"    -> {'no end' if rc is None else f'exit {rc}'} after {seconds:.2f} s")

    # -- the end

    def close(self):
        """Ends what still runs, looks for leaks, removes the directory. Returns what was left
        behind."""
        problems = []
        for process in self._running:
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    leaks.with_rights(process.kill)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with contextlib.suppress(OSError):
                        pipe.close()
            with contextlib.suppress(ChildProcessError):
                process.wait()
        for function, args in reversed(self._cleanups):
            try:
                leaks.with_rights(function, *args)
            except Skipped:
                pass	# what takes root's rights was never done
            # a cleanup that fails is a finding, and the others still have to run
            except Exception as error:
                problems.append(f"cleanup: {error!r}")
        problems += leaks.with_rights(leaks.find, self.directory,
                                      (self.state_dir, self.runtime_dir), self._cgroups,
                                      os.getpid(), self.person.pw_uid)
        os.chdir("/")
        problems += leaks.with_rights(self._remove)
        return problems

    def _remove(self):
        # rm, and not shutil: attacks make trees deeper than Python's stack
        if not users.IS_ROOT:
            subprocess.run(["chmod", "-R", "u+rwX", self.directory], stderr=subprocess.DEVNULL)
        done = subprocess.run(["rm", "-rf", self.directory], capture_output=True, text=True)
        return [f"cannot be removed: {line}" for line in done.stderr.splitlines()]
