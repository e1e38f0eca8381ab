"""The interface that sandboxes on this machine and on a server share. What one of them does not
have raises Unsupported."""
import abc
import contextlib
import threading
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple,
                    TypeVar, Union)

from .errors import CommandFailed, TimedOut, Unsupported
from .model import (Answer, Command, Entry, Event, Output, Question, Result, SandboxInfo, Snapshot,
                    Usage)

Handler = Callable[[Question], Answer]
Data = Union[bytes, str]
T = TypeVar("T")

READ_MAX = 256 << 20


def as_bytes(data: Data) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


class Process(abc.ABC):
    """A command that runs in a sandbox. Iterate over it for its output as it comes; wait() for its
    end. Closing it ends a local command; a remote one goes on without its reader."""

    code: Optional[int] = None  # once it has ended

    @abc.abstractmethod
    def outputs(self, timeout: Optional[float] = None) -> Iterator[Output]:
        """Output until the end, or until so many seconds are over: TimedOut; it still runs then."""

    def __iter__(self) -> Iterator[Output]:
        return self.outputs()

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Reads what output is left and returns it with the exit code. TimedOut: it still runs, and
        the exception has what was read."""
        parts: Dict[str, List[bytes]] = {}
        try:
            for piece in self.outputs(timeout):
                parts.setdefault(piece.stream, []).append(piece.data)
        except TimedOut as e:
            e.stdout = b"".join(parts.get("stdout", []) + parts.get("pty", []))
            e.stderr = b"".join(parts.get("stderr", []))
            raise
        return Result(255 if self.code is None else self.code,
                      b"".join(parts.get("stdout", []) + parts.get("pty", [])),
                      b"".join(parts.get("stderr", [])))

    @abc.abstractmethod
    def write(self, data: Data) -> None:
        """To its standard input."""

    @abc.abstractmethod
    def close_stdin(self) -> None:
        """Its input ends."""

    @abc.abstractmethod
    def signal(self, which: Union[int, str]) -> None:
        """Sends a signal to it and what it started. Remote: TERM and KILL."""

    @abc.abstractmethod
    def resize(self, rows: int, columns: int) -> None:
        """The size of its terminal."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees what belongs to it."""

    def kill(self) -> None:
        self.signal("KILL")

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Files(abc.ABC):
    """Files of a sandbox, with its rights and as it sees them. A relative path begins where its
    commands begin."""

    @abc.abstractmethod
    def read(self, path: str, *, limit: int = READ_MAX) -> bytes:
        """The whole file."""

    @abc.abstractmethod
    def write(self, path: str, data: Data) -> None:
        """Makes or replaces a file, and the directories above it. A half file is never seen."""

    @abc.abstractmethod
    def list(self, path: str = ".", *, depth: int = 1) -> List[Entry]:
        """What is in a directory, so many levels deep."""

    @abc.abstractmethod
    def stat(self, path: str) -> Entry:
        """One file."""

    @abc.abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is such a file."""

    @abc.abstractmethod
    def make_dir(self, path: str) -> bool:
        """Makes a directory and those above it; False: it was there."""

    @abc.abstractmethod
    def rename(self, path: str, to: str) -> None:
        """Moves a file or directory."""

    @abc.abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file, or a directory with all in it."""

    def read_text(self, path: str, *, limit: int = READ_MAX) -> str:
        return self.read(path, limit=limit).decode("utf-8", "replace")


class Sandbox(abc.ABC):
    """A sandbox. As a context manager it ends with the block."""
    id: str
    files: Files

    @abc.abstractmethod
    def start(self, command: Command, *, env: Optional[Dict[str, str]] = None,
              cwd: Optional[str] = None, stdin: bool = False,
              terminal: Optional[Tuple[int, int]] = None) -> Process:
        """Starts a command: a list, or a line for the shell. terminal: (rows, columns)."""

    @abc.abstractmethod
    def info(self) -> SandboxInfo:
        """What is known about it."""

    @abc.abstractmethod
    def usage(self) -> Usage:
        """What it uses now."""

    @abc.abstractmethod
    def set_timeout(self, seconds: float) -> None:
        """It ends so many seconds from now. Remote alone."""

    @abc.abstractmethod
    def pause(self) -> None:
        """Stops every process; memory is kept."""

    @abc.abstractmethod
    def resume(self) -> None:
        """They go on."""

    @abc.abstractmethod
    def kill(self) -> bool:
        """Ends it; False: it had ended."""

    @abc.abstractmethod
    def snapshot(self, name: str = "") -> Snapshot:
        """Keeps its files: its home and /tmp."""

    @abc.abstractmethod
    def fork(self, count: int = 1) -> "Sequence[Sandbox]":
        """Starts sandboxes with its files; its processes are not in them."""

    @abc.abstractmethod
    def decide(self, handler: Handler, timeout: Optional[float] = None) -> int:
        """Hands questions of the sandbox to the handler for so many seconds (None: until it ends)
        and gives its answers: "once", "run", ("time", SECONDS), "deny", or None, which leaves a
        question to others. Any other value is a no. Returns how many answers counted, as soon as
        there is one."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees the handle. A local sandbox that is not detached ends; a remote one does not."""

    def run(self, command: Command, *, input: Data = b"", env: Optional[Dict[str, str]] = None,
            cwd: Optional[str] = None, timeout: Optional[float] = None, check: bool = False,
            on_output: Optional[Callable[[Output], None]] = None) -> Result:
        """Runs a command to its end. After timeout seconds it is killed and TimedOut raised; with
        check an exit status other than 0 raises CommandFailed."""
        process = self.start(command, env=env, cwd=cwd, stdin=bool(input))
        with process:
            result = collect(process, as_bytes(input), timeout, on_output)
        if check and result.code:
            raise CommandFailed(result)
        return result

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.kill()  # type: ignore[attr-defined]
        finally:
            self.close()  # type: ignore[attr-defined]


def collect(process: Process, data: bytes, timeout: Optional[float],
            on_output: Optional[Callable[[Output], None]]) -> Result:
    """Feeds a process and reads it to its end; if that cannot be, the process is killed."""
    if data:
        threading.Thread(target=_feed, args=(process, data), daemon=True).start()
    try:
        if on_output is None:
            return process.wait(timeout)
        parts: Dict[str, List[bytes]] = {}
        for piece in process.outputs(timeout):
            parts.setdefault(piece.stream, []).append(piece.data)
            on_output(piece)
        return Result(255 if process.code is None else process.code,
                      b"".join(parts.get("stdout", []) + parts.get("pty", [])),
                      b"".join(parts.get("stderr", [])))
    except BaseException:
        with contextlib.suppress(Exception):  # it may have just ended
            process.kill()
        raise


def _feed(process: Process, data: bytes) -> None:
    with contextlib.suppress(Exception):  # a command need not read all of its input
        process.write(data)
        process.close_stdin()


class Client(abc.ABC):
    """Where sandboxes are made: this machine, or a server."""
    remote: bool

    @abc.abstractmethod
    def create(self, template: Optional[str] = None, *, timeout: Optional[float] = None,
               env: Optional[Dict[str, str]] = None, metadata: Optional[Dict[str, str]] = None,
               snapshot: Union[Snapshot, str, None] = None, network: bool = True,
               **local: Any) -> Sandbox:
        """A new sandbox. template: of the server, or a profile of this machine; timeout: seconds
        until it ends; network=False takes away what the policy grants. On this machine also:
        workspace, policy, fields, mounts, directory, name, widen, detached (local.py)."""

    @abc.abstractmethod
    def open(self, sandbox_id: str) -> Sandbox:
        """One that was made before."""

    @abc.abstractmethod
    def list(self) -> List[SandboxInfo]:
        """Your sandboxes."""

    @abc.abstractmethod
    def snapshots(self) -> List[Snapshot]:
        """Your snapshots."""

    @abc.abstractmethod
    def delete_snapshot(self, snapshot: Union[Snapshot, str]) -> bool:
        """False: there was none."""

    @abc.abstractmethod
    def close(self) -> None:
        """Frees what belongs to it."""

    def events(self, sandbox: Optional[str] = None) -> Iterable[Event]:
        """What happens from now on. Remote alone."""
        raise Unsupported("this machine's sandboxes have no stream of events",
                          remedy="ward audit show prints the journal of each")

    def questions(self, sandbox: Optional[str] = None) -> List[Question]:
        """What sandboxes ask now. Remote alone: here, Sandbox.decide() hands them over."""
        raise Unsupported("questions of this machine's sandboxes are not listed here",
                          remedy="use Sandbox.decide(), or ward approve")

    def answer(self, question: Union[Question, str], answer: Answer) -> None:
        """Answers one of questions(): Conflict if another answer came first."""
        raise Unsupported("questions of this machine's sandboxes are not answered here",
                          remedy="use Sandbox.decide(), or ward approve")

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()  # type: ignore[attr-defined]
