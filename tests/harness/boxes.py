"""What the tests of detached sandboxes share."""
import contextlib
import fcntl
import json
import os
import select
import struct
import subprocess
import termios
import time

from . import users


def box(t, *args, **options):
    """Starts a detached sandbox and returns its id; it is removed at the end of the test, whatever
    happens."""
    t.defer(clean, t)
    r = t.ward("run", "-d", *args, **options)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip()


def clean(t):
    """Ends and removes every detached sandbox of the test."""
    subprocess.run(t.ward_argv("rm", "--force", "--all"), env=t.environment(),
                   stdout=subprocess.DEVNULL,
                   preexec_fn=lambda: users.drop(t.person))


def listed(t, *args):
    """What ward ps says: id -> entry."""
    return {s["id"]: s for s in json.loads(t.ward("ps", "--json", *args).out)["sandboxes"]}


def supervisor(t, box_id):
    """The pid of its ward-box."""
    return listed(t, "-a")[box_id]["pid"]


def look(t, path):
    """A file of /proc that only root may read."""
    with t.root(), open(path) as f:
        return f.read()


class Screen:
    """A program of the test's user on a terminal of its own: type, wait for what it shows, end."""

    def __init__(self, t, argv, rows=30, columns=100):
        self.t = t
        self.shown = b""
        self.fd, line = os.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.fd)
                os.login_tty(line)
                users.drop(t.person)
                os.chdir(t.directory)
                os.execve(argv[0], argv, t.environment({"TERM": "xterm"}))
            finally:
                os._exit(126)
        os.close(line)
        t.defer(self.close)

    def wait_for(self, text, seconds=20):
        """Until text was shown since the last look."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            if time.monotonic() > deadline:
                self.t.fail(f"{text!r} was not shown, but {self.shown[-1500:]!r}")
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                if not data:
                    self.t.fail(f"it ended without {text!r}, with {self.shown[-1500:]!r}")
                self.shown += data
        self.shown = self.shown.split(text, 1)[1]

    def type(self, keys):
        """Presses keys."""
        os.write(self.fd, keys)

    def end(self, seconds=20):
        """Waits for the end; the exit code."""
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = None
                with contextlib.suppress(OSError):
                    while select.select([self.fd], [], [], 0)[0]:
                        data = os.read(self.fd, 65536)
                        if not data:
                            break
                        self.shown += data
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                self.t.fail(f"it did not end, last was {self.shown[-1500:]!r}")
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.shown += os.read(self.fd, 65536)

    def close(self):
        """Ends it if it has not."""
        if self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
        with contextlib.suppress(OSError):
            os.close(self.fd)
