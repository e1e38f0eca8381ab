"""What calls return: plain data."""
import signal
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Union

# of what a handler of questions returns: a time is ("time", seconds), None leaves it to others
Answer = Union[str, Tuple[str, int], None]
Command = Union[str, List[str], Tuple[str, ...]]


@dataclass(frozen=True)
class Output:
    """A piece of output as it comes. stream: "stdout", "stderr", or "pty"."""
    stream: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Result:
    """How a command ended. code: 128+N if signal N killed it."""
    code: int
    out: bytes = b""
    err: bytes = b""

    @property
    def stdout(self) -> str:
        return self.out.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.err.decode("utf-8", "replace")


@dataclass(frozen=True)
class Entry:
    """A file of a sandbox. kind: "file", "directory", "link" (to nothing) or "other"; size and mode
    are of what a link leads to; modified: seconds since 1970."""
    name: str
    path: str
    kind: str
    size: int
    mode: int
    owner: str
    group: str
    modified: float
    link: Optional[str] = None


@dataclass(frozen=True)
class SandboxInfo:
    """One row of a list. state: "running", "paused", "ended"; times: seconds since 1970."""
    id: str
    state: str
    template: str = ""
    name: str = ""
    started: float = 0.0
    ends: Optional[float] = None
    metadata: Dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """What a sandbox uses now; None: not measured there."""
    memory_bytes: int
    disk_bytes: int
    cpu_percent: Optional[float] = None
    cpu_ms: Optional[int] = None
    processes: Optional[int] = None


@dataclass(frozen=True)
class Snapshot:
    """Files of a sandbox at one moment, of which new sandboxes can be made."""
    id: str
    name: str = ""
    sandbox: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class Question:
    """What a sandbox waits for. Texts come escaped; details begin with warnings."""
    id: str
    sandbox: str
    kind: str
    subject: str
    host: str = ""
    port: int = 0
    rule: str = ""
    process: str = ""
    details: Tuple[str, ...] = ()
    waiting: int = 1
    seconds_left: float = 0.0


@dataclass(frozen=True)
class Event:
    """What happened to a sandbox: "sandbox_started", "sandbox_paused", "sandbox_gone", ..."""
    kind: str
    sandbox: str
    template: str = ""
    time: str = ""
    why: str = ""


@dataclass(frozen=True)
class Token:
    """A key or token of the server; secret is there only when it was just made."""
    id: str
    role: str
    kind: str = "token"
    secret: str = ""
    name: str = ""
    expires: str = ""
    raw: Dict[str, Any] = field(default_factory=dict)


def words(command: Command) -> List[str]:
    """A text is a line for the shell, a list is a program and its arguments."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else [str(w) for w in command]


def signal_number(which: Union[int, str]) -> int:
    """SIGTERM, "TERM", 15."""
    if isinstance(which, int):
        return int(which)
    return int(signal.Signals["SIG" + which.upper().removeprefix("SIG")])
