"""Sandboxes of this machine, through libward. Files are read and written by programs inside, with
the sandbox's rights: no path of a sandbox is looked up outside."""
import contextlib
import json
import os
import select
import shutil
import tempfile
import threading
import time
from ctypes import byref, c_int, c_void_p, sizeof
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import libward
from .base import READ_MAX, Client, Data, Files, Handler, Process, Sandbox, as_bytes
from .errors import (Conflict, InvalidArgument, NotFound, SandboxGone, TimedOut, Unsupported,
                     WardError)
from .model import (Command, Entry, Output, Question, SandboxInfo, Snapshot, Usage, signal_number,
                    words)

SNAPSHOT_SECONDS = 120


class LocalProcess(Process):
    """A command of a local sandbox; it ends when this is closed."""

    def __init__(self, handle: c_void_p, terminal: bool):
        self._handle: Optional[c_void_p] = handle
        self._terminal = terminal
        self._lock = threading.Lock()
        self._fds: Dict[int, str] = {}
        self._stdin = -1
        try:
            self._stdin = self._stream(0)
            self._fds[self._stream(1)] = "pty" if terminal else "stdout"
            if not terminal:
                self._fds[self._stream(2)] = "stderr"
        except BaseException:
            self.close()
            raise
        for fd in self._fds:
            os.set_blocking(fd, False)

    def _stream(self, which: int) -> int:
        return libward.call("process_stream", self._handle, which)

    def _live(self) -> c_void_p:
        if self._handle is None:
            raise SandboxGone("the process was closed", remedy="keep it open while it is used")
        return self._handle

    def _read(self, fd: int) -> Optional[bytes]:
        """None: nothing is there now; b"": the end."""
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # the end of a terminal

    def _drain(self) -> Iterator[Output]:
        for fd in list(self._fds):
            while True:
                data = self._read(fd)
                if not data:
                    break
                yield Output(self._fds[fd], data)
            self._drop(fd)

    def _drop(self, fd: int) -> None:
        del self._fds[fd]
        os.close(fd)

    def outputs(self, timeout: Optional[float] = None) -> Iterator[Output]:
        end = None if timeout is None else time.monotonic() + timeout
        done = libward.library().ward_process_fd(self._live())
        while self.code is None:
            poll = select.poll()
            for fd in [done, *self._fds]:
                poll.register(fd, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(None if end is None else max(
                0, 1000 * (end - time.monotonic())))}
            if not ready:
                raise TimedOut("the command's time is over")
            for fd in ready & set(self._fds):
                data = self._read(fd)
                if data:
                    yield Output(self._fds[fd], data)
                elif data == b"":
                    self._drop(fd)
            if done in ready:
                # others that it left behind may go on writing: what is there now is all
                yield from self._drain()
                code = c_int()
                libward.call("process_wait", self._live(), -1, byref(code))
                self.code = code.value

    def write(self, data: Data) -> None:
        raw = memoryview(as_bytes(data))
        while raw:
            if self._stdin < 0:
                raise SandboxGone("the input of the command is closed")
            try:
                raw = raw[os.write(self._stdin, raw):]
            except (BrokenPipeError, OSError) as e:
                raise SandboxGone(f"the command reads no more: {e}") from None

    def close_stdin(self) -> None:
        if self._terminal:
            self.write(b"\x04")
        elif self._stdin >= 0:
            fd, self._stdin = self._stdin, -1
            os.close(fd)

    def signal(self, which: Union[int, str]) -> None:
        libward.call("process_signal", self._live(), signal_number(which))

    def resize(self, rows: int, columns: int) -> None:
        libward.call("process_resize", self._live(), rows, columns)

    def close(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is None:
            return
        libward.library().ward_process_free(handle)
        for fd in list(self._fds):
            self._drop(fd)
        if self._stdin >= 0:
            fd, self._stdin = self._stdin, -1
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


# Scripts of /bin/sh inside; their exit status 40 + N says what was wrong.
_PROBLEMS = {41: (NotFound, "there is no such file"), 42: (InvalidArgument, "it is a directory"),
             43: (InvalidArgument, "it is no directory"), 44: (Conflict, "it exists"),
             45: (WardError, "it could not be written")}
_FIND = r"-printf '%Y\0%s\0%m\0%u\0%g\0%T@\0%l\0%p\0'"
_SCRIPTS = {
    "read": '[ -e "$1" ] || exit 41; [ -d "$1" ] && exit 42; exec cat < "$1"',
    "write": '[ -d "$1" ] && exit 42; t=$(readlink -f -- "$1") || t=$1; d=$(dirname -- "$t"); '
             'mkdir -p -- "$d" || exit 45; n=$(mktemp -- "$d/.ward-XXXXXX") || exit 45; '
             'trap \'rm -f -- "$n"\' EXIT; cat > "$n" || exit 45; '
             '[ "$(wc -c < "$n")" -eq "$2" ] || exit 45; '
             'if [ -e "$t" ]; then chmod --reference="$t" -- "$n"; '
             'else chmod =rw -- "$n"; fi; mv -fT -- "$n" "$t" || exit 45',
    "list": '[ -e "$1" ] || exit 41; [ -d "$1" ] || exit 43; '
            'exec find -H "$1" -mindepth 1 -maxdepth "$2" ' + _FIND,
    "stat": '[ -e "$1" ] || [ -L "$1" ] || exit 41; exec find -H "$1" -maxdepth 0 ' + _FIND,
    "make_dir": '[ -d "$1" ] && exit 44; [ -e "$1" ] && exit 43; exec mkdir -p -- "$1"',
    "rename": '[ -e "$1" ] || [ -L "$1" ] || exit 41; mkdir -p -- "$(dirname -- "$2")"; '
              'exec mv -fT -- "$1" "$2"',
    "remove": 'exec rm -rf -- "$1"',
    "home": 'printf %s "$HOME"',
    # one archive each, so that the new sandbox's own directories keep their owners and rights
    "save": 'cd -- "$1" && exec tar --one-file-system --warning=none -cf - .',
    "load": 'cd -- "$1" && exec tar --no-overwrite-dir --warning=none -xpf -',
}


def _entries(data: bytes) -> List[Entry]:
    """What find printed: eight texts each. Only as many as are whole: a sandbox wrote this."""
    fields = [f.decode("utf-8", "surrogateescape") for f in data.split(b"\0")[:-1]]
    kinds = {"f": "file", "d": "directory", "N": "link", "L": "link"}
    found = []
    for at in range(0, len(fields) - 7, 8):
        kind, size, mode, owner, group, modified, link, path = fields[at:at + 8]
        with contextlib.suppress(ValueError):
            found.append(Entry(os.path.basename(path.rstrip("/")) or path, path,
                               kinds.get(kind, "other"), int(size), int(mode, 8), owner, group,
                               float(modified), link or None))
    return found


class LocalFiles(Files):
    """Files by cat, find and others of the sandbox's own programs."""

    def __init__(self, sandbox: "LocalSandbox"):
        self._sandbox = sandbox

    def _do(self, script: str, *arguments: str, data: bytes = b"", limit: int = READ_MAX) -> bytes:
        path = arguments[0] if arguments else ""
        named = [a if i or a.startswith(("/", "./")) or not a else f"./{a}"
                 for i, a in enumerate(arguments)]
        command = ["/bin/sh", "-c", _SCRIPTS[script], "sh", *named]
        out, err, size = [], [], 0
        with self._sandbox.start(command, stdin=True) as process:
            threading.Thread(target=_feed, args=(process, data), daemon=True).start()
            for piece in process:
                (out if piece.stream == "stdout" else err).append(piece.data)
                size += len(piece.data)
                if size > limit:
                    raise InvalidArgument(f"{path} has more than {limit} bytes",
                                          remedy="give a higher limit")
        if process.code:
            kind, reason = _PROBLEMS.get(process.code or 0, (WardError, "it cannot be done"))
            said = b"".join(err).decode("utf-8", "replace").strip().splitlines()[-1:]
            raise kind(f"{path}: {reason}" + (f": {said[0]}" if said else ""))
        return b"".join(out)

    def read(self, path: str, *, limit: int = READ_MAX) -> bytes:
        return self._do("read", path, limit=limit)

    def write(self, path: str, data: Data) -> None:
        raw = as_bytes(data)
        self._do("write", path, str(len(raw)), data=raw)

    def list(self, path: str = ".", *, depth: int = 1) -> List[Entry]:
        return _entries(self._do("list", path, str(int(depth))))

    def stat(self, path: str) -> Entry:
        found = _entries(self._do("stat", path))
        if not found:
            raise NotFound(f"{path}: there is no such file")
        return found[0]

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
            return True
        except NotFound:
            return False

    def make_dir(self, path: str) -> bool:
        try:
            self._do("make_dir", path)
            return True
        except Conflict:
            return False

    def rename(self, path: str, to: str) -> None:
        self._do("rename", path, to)

    def remove(self, path: str) -> None:
        self._do("remove", path)


def _feed(process: Process, data: bytes) -> None:
    with contextlib.suppress(WardError, OSError):
        process.write(data)
        process.close_stdin()


class LocalSandbox(Sandbox):
    """Ends with its handle, unless it is detached."""

    def __init__(self, client: "LocalClient", handle: c_void_p, how: Dict[str, Any],
                 own_workspace: Optional[str] = None):
        self._client, self._how, self._workspace = client, how, own_workspace
        self._handle: Optional[c_void_p] = handle
        self._home: Optional[str] = None
        self.id = libward.library().ward_box_id(handle).decode()
        self.name = libward.library().ward_box_name(handle).decode()
        self.files = LocalFiles(self)

    def _live(self) -> c_void_p:
        if self._handle is None:
            raise SandboxGone("the sandbox was closed", remedy="keep it open while it is used")
        return self._handle

    def start(self, command: Command, *, env: Optional[Dict[str, str]] = None,
              cwd: Optional[str] = None, stdin: bool = False,
              terminal: Optional[Tuple[int, int]] = None) -> LocalProcess:
        if cwd is None and self._workspace:
            cwd = self.home()  # as on a server
        handle = c_void_p()
        rows, columns = terminal or (0, 0)
        made = libward.CommandStruct(
            sizeof(libward.CommandStruct), libward.array(words(command)),
            libward.array(f"{k}={v}" for k, v in env.items()) if env else None,
            libward.as_path(cwd) if cwd is not None else None, rows, columns)
        libward.call("exec", self._live(), byref(made), byref(handle))
        process = LocalProcess(handle, bool(terminal))
        if not stdin and not terminal:
            process.close_stdin()
        return process

    def home(self) -> str:
        """The home directory inside."""
        if self._home is None:
            command = ["/bin/sh", "-c", _SCRIPTS["home"]]
            with self.start(command, cwd="/") as process:
                self._home = process.wait().stdout or "/"
        return self._home

    def info(self) -> SandboxInfo:
        return next((i for i in self._client.list() if i.id == self.id),
                    SandboxInfo(self.id, "ended"))

    def usage(self) -> Usage:
        found = json.loads(libward.text("stats", self._live()))
        return Usage(found.get("memory_bytes", 0), found.get("disk_bytes", 0),
                     cpu_ms=found.get("cpu_ms"), processes=found.get("pids"))

    def set_timeout(self, seconds: float) -> None:
        raise Unsupported("a local sandbox's time is set when it starts",
                          remedy="create(timeout=...)")

    def pause(self) -> None:
        libward.call("pause", self._live())

    def resume(self) -> None:
        libward.call("resume", self._live())

    def _has_ended(self, timeout: float) -> bool:
        return libward.call("wait", self._live(), libward.milliseconds(timeout),
                            byref(c_int())) == 1

    def kill(self) -> bool:
        if self._handle is None or self._has_ended(0):
            return False
        try:
            libward.call("kill", self._handle)
        except SandboxGone:
            return False
        self._has_ended(30)
        return True

    def snapshot(self, name: str = "") -> Snapshot:
        """Programs that write meanwhile are not stopped: end them first where that matters."""
        return self._client.keep_snapshot(self, name)

    def fork(self, count: int = 1) -> "Sequence[LocalSandbox]":
        kept = self.snapshot()
        made: List[LocalSandbox] = []
        try:
            for _ in range(count):
                made.append(self._client.create(snapshot=kept, **self._how))
        except BaseException:
            for sandbox in made:
                sandbox.close()
            raise
        finally:
            self._client.delete_snapshot(kept)
        return made

    def decide(self, handler: Handler, timeout: Optional[float] = None) -> int:
        problem: List[BaseException] = []

        def ask(_: Any, found: Any, seconds: Any) -> int:
            try:
                answer = handler(_question(self.id, found.contents))
                if isinstance(answer, tuple) and len(answer) == 2:
                    seconds[0] = int(answer[1])
                    answer = answer[0]
                return libward.ANSWERS.get(answer, 4) if not isinstance(answer, tuple) else 4
            except BaseException as e:  # pylint: disable=broad-except
                problem.append(e)
                return 4
        counted = libward.call("decide", self._live(), libward.DECIDE(ask), None,
                               libward.milliseconds(timeout))
        if problem:
            raise problem[0]
        return counted

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is None:
            return
        libward.library().ward_box_free(handle)
        if self._workspace:
            shutil.rmtree(self._workspace, ignore_errors=True)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


def _question(sandbox: str, q: Any) -> Question:
    details, at = [], 0
    while q.details and q.details[at]:
        details.append(q.details[at].decode("utf-8", "replace"))
        at += 1
    kind, subject, host, rule, process = ((t or b"").decode("utf-8", "replace") for t in (
        q.kind, q.subject, q.host, q.rule, q.process))
    return Question(f"{sandbox}:{q.number}", sandbox, kind, subject, host, q.port, rule, process,
                    tuple(details), q.count, q.left_ms / 1000)


class LocalClient(Client):
    """This machine. program: the path of `ward`, if it is neither beside libward nor in PATH."""
    remote = False

    def __init__(self, program: Optional[str] = None):
        self._program = program
        self._kept: Optional[str] = None
        self._snapshots: Dict[str, Snapshot] = {}

    @contextlib.contextmanager
    def _spec(self, template: Optional[str], env: Dict[str, str], timeout: Optional[float],
              network: bool, how: Dict[str, Any]) -> Iterator[Any]:
        spec = libward.library().ward_spec_new()
        if not spec:
            raise MemoryError
        fields = dict(how.get("fields") or {})
        if timeout is not None:
            fields["resources.timeout_seconds"] = timeout
        if not network:
            fields["network.mode"] = "none"
        try:
            for call, value in (("program", self._program), ("policy", how.get("policy")),
                                ("profile", template), ("workspace", how["workspace"]),
                                ("directory", how.get("directory")), ("name", how.get("name"))):
                if value is not None:
                    libward.call("spec_" + call, spec, libward.as_path(str(value)))
            for field, value in fields.items():
                many = isinstance(value, (list, tuple))
                for one in value if many else [value]:
                    libward.call("spec_add" if many else "spec_set", spec, libward.as_path(field),
                                 libward.as_path(_yaml(one)))
            for key, value in env.items():
                libward.call("spec_add", spec, b"process.env", libward.as_path(f"{key}={value}"))
            for path, writable, *at in how.get("mounts") or ():
                libward.call("spec_mount", spec, libward.as_path(str(path)),
                             libward.as_path(str(at[0])) if at else None, int(writable))
            libward.library().ward_spec_widen(spec, int(bool(how.get("widen"))))
            yield spec
        finally:
            libward.library().ward_spec_free(spec)

    def create(self, template: Optional[str] = None, *, timeout: Optional[float] = None,
               env: Optional[Dict[str, str]] = None, metadata: Optional[Dict[str, str]] = None,
               snapshot: Union[Snapshot, str, None] = None, network: bool = True,
               **local: Any) -> LocalSandbox:
        """workspace: the project directory (default: an empty one, which is removed with the
        sandbox; commands begin in the home then); policy: a file; fields: {"resources.pids_limit":
        64}, a list appends each; mounts: (path, writable) or (path, writable, at); directory: where
        commands begin; name; widen; detached: it outlives this program."""
        known = {"workspace", "policy", "fields", "mounts", "directory", "name", "widen",
                 "detached"}
        if set(local) - known:
            raise InvalidArgument(f"unknown: {', '.join(sorted(set(local) - known))}",
                                  remedy=f"known: {', '.join(sorted(known))}")
        if metadata:
            raise Unsupported("local sandboxes have no metadata", remedy="use name=")
        if local.get("detached") and not local.get("workspace"):
            raise InvalidArgument("a detached sandbox needs a workspace", remedy="workspace=PATH")
        how = {k: v for k, v in {"template": template, "timeout": timeout, "env": env,
                                 "network": network, **local}.items() if k != "name"}
        own = None if local.get("workspace") else tempfile.mkdtemp(prefix="ward-")
        handle = c_void_p()
        try:
            with self._spec(template, env or {}, timeout, network,
                            {**local, "workspace": own or local["workspace"]}) as spec:
                libward.call("start", spec, libward.DETACHED if local.get("detached") else 0,
                             byref(handle))
        except BaseException:
            if own:
                shutil.rmtree(own, ignore_errors=True)
            raise
        sandbox = LocalSandbox(self, handle, how, own)
        if snapshot is not None:
            try:
                self._load_snapshot(sandbox, snapshot)
            except BaseException:
                sandbox.close()
                raise
        return sandbox

    def open(self, sandbox_id: str) -> LocalSandbox:
        handle = c_void_p()
        libward.call("open", libward.as_path(sandbox_id), byref(handle))
        return LocalSandbox(self, handle, {})

    def list(self) -> List[SandboxInfo]:
        found = json.loads(libward.text("list"))["sandboxes"]
        return [SandboxInfo(b["id"], b["state"], name=b.get("name") or "",
                            started=b.get("started_ms", 0) / 1000) for b in found]

    # -- snapshots: archives in a directory of this client's, made and unpacked inside

    def keep_snapshot(self, sandbox: LocalSandbox, name: str) -> Snapshot:
        """What Sandbox.snapshot() does."""
        if self._kept is None:
            self._kept = tempfile.mkdtemp(prefix="ward-snapshots-")
        place = tempfile.mkdtemp(dir=self._kept)
        size = 0
        try:
            for part, path in (("home", sandbox.home()), ("tmp", "/tmp")):
                size += _save(sandbox, path, os.path.join(place, part))
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        kept = Snapshot(os.path.basename(place), name, sandbox.id, size)
        self._snapshots[kept.id] = kept
        return kept

    def _find(self, snapshot: Union[Snapshot, str]) -> Optional[Snapshot]:
        name = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        named = [s for s in self._snapshots.values() if name in (s.id, s.name)]
        return named[-1] if named else None

    def _load_snapshot(self, sandbox: LocalSandbox, snapshot: Union[Snapshot, str]) -> None:
        kept = self._find(snapshot)
        if kept is None or self._kept is None:
            raise NotFound("there is no such snapshot",
                           remedy="a local snapshot lasts as long as its client")
        for part, path in (("home", sandbox.home()), ("tmp", "/tmp")):
            _load(sandbox, path, os.path.join(self._kept, kept.id, part))

    def snapshots(self) -> List[Snapshot]:
        return list(self._snapshots.values())

    def delete_snapshot(self, snapshot: Union[Snapshot, str]) -> bool:
        kept = self._find(snapshot)
        if kept is None or self._kept is None:
            return False
        del self._snapshots[kept.id]
        shutil.rmtree(os.path.join(self._kept, kept.id), ignore_errors=True)
        return True

    def close(self) -> None:
        if self._kept:
            shutil.rmtree(self._kept, ignore_errors=True)
        self._kept, self._snapshots = None, {}

    def __del__(self) -> None:
        if getattr(self, "_kept", None):
            self.close()


def _yaml(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _save(sandbox: LocalSandbox, path: str, file: str) -> int:
    command = ["/bin/sh", "-c", _SCRIPTS["save"], "sh", path]
    with open(file, "xb") as f, sandbox.start(command) as process:
        for piece in process.outputs(SNAPSHOT_SECONDS):
            if piece.stream == "stdout":
                f.write(piece.data)
        if process.code not in (0, 1):  # 1: a file changed meanwhile
            raise WardError(f"the files of {path} cannot be read",
                            remedy="tar must be in the sandbox")
        return f.tell()


def _load(sandbox: LocalSandbox, path: str, file: str) -> None:
    command = ["/bin/sh", "-c", _SCRIPTS["load"], "sh", path]
    with sandbox.start(command, stdin=True) as process:
        threading.Thread(target=_feed_file, args=(process, file), daemon=True).start()
        if process.wait(SNAPSHOT_SECONDS).code:
            raise WardError(f"the files of {path} cannot be written",
                            remedy="tar, and enough room, must be in the sandbox")


def _feed_file(process: Process, file: str) -> None:
    with contextlib.suppress(WardError, OSError), open(file, "rb") as f:
        while True:
            data = f.read(1 << 20)
            if not data:
                break
            process.write(data)
        process.close_stdin()
