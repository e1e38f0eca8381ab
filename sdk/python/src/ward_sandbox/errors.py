"""Exceptions: what was refused, why, and what to do about it."""
import errno as _errno
from typing import Optional


def printable(text: str) -> str:
    """The text without what a terminal would act on: a server's or sandbox's words are not ours."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256
                   else f"\\u{ord(c):04x}" for c in text)


class WardError(Exception):
    """code: an errno (local) or an HTTP status (remote), 0 if there is none; reason and remedy are
    text, the remedy is "" where none is known."""

    def __init__(self, reason: str, *, code: int = 0, remedy: str = ""):
        self.code, self.reason, self.remedy = code, printable(reason), printable(remedy)
        super().__init__(self.reason + (f" ({self.remedy})" if self.remedy else ""))


class InvalidArgument(WardError):
    """A value that ward does not take."""


class Unauthorized(WardError):
    """The server does not know the key or token."""


class Forbidden(WardError):
    """The policy, or the role of the key, does not allow it."""


class NotFound(WardError):
    """No such sandbox, snapshot, file or process."""


class Conflict(WardError):
    """The state does not allow it: paused already, answered already, a name that is taken."""


class Busy(WardError):
    """A quota or rate limit; try again after so many seconds, where the server says that."""

    def __init__(self, reason: str, *, code: int = 0, remedy: str = "",
                 retry_after: Optional[float] = None):
        super().__init__(reason, code=code, remedy=remedy)
        self.retry_after = retry_after


class SandboxGone(WardError):
    """The sandbox has ended, or is paused."""


class TimedOut(WardError):
    """The time is up; of a command, stdout and stderr are what it had written."""

    def __init__(self, reason: str, *, code: int = _errno.ETIMEDOUT, remedy: str = "",
                 stdout: bytes = b"", stderr: bytes = b""):
        super().__init__(reason, code=code, remedy=remedy)
        self.stdout, self.stderr = stdout, stderr


class Unreachable(WardError):
    """The server cannot be reached, or the connection broke."""


class Unsupported(WardError):
    """This place (local or remote) has no such thing."""


class CommandFailed(WardError):
    """run(..., check=True): the exit status was not 0; result is the whole result."""

    def __init__(self, result):
        tail = result.stderr.strip().splitlines()[-1:]
        super().__init__(f"exit status {result.code}" + (f": {tail[0]}" if tail else ""),
                         code=result.code)
        self.result = result


_BY_ERRNO = {
    _errno.EINVAL: InvalidArgument, _errno.ENOENT: NotFound, _errno.ESRCH: SandboxGone,
    _errno.EACCES: Forbidden, _errno.EPERM: Forbidden, _errno.EEXIST: Conflict,
    _errno.EBUSY: Conflict, _errno.EAGAIN: Busy, _errno.ETIMEDOUT: TimedOut,
    _errno.ENOTSUP: Unsupported, _errno.EPIPE: SandboxGone,
}


def of_errno(code: int, reason: str, remedy: str = "") -> WardError:
    """The exception for an error of libward."""
    return _BY_ERRNO.get(code, WardError)(reason, code=code, remedy=remedy)


# status -> exception and remedy
_BY_STATUS = {
    400: (InvalidArgument, ""),
    401: (Unauthorized, "set WARD_TOKEN to a key or token of this server; "
                        "ward serve --add-key NAME makes a key"),
    403: (Forbidden, "ask for a key with another role; docs/serve.md lists what each role may do"),
    404: (NotFound, ""),
    405: (Unsupported, "use a newer server"),
    409: (Conflict, ""),
    413: (InvalidArgument, "send less at once"),
    429: (Busy, "end sandboxes that are not needed, or try again later"),
    502: (SandboxGone, "it was killed, is paused, or its time is over; resume() or start another"),
    503: (Busy, "try again later"),
    504: (TimedOut, "try again"),
    507: (WardError, "remove files in the sandbox, or use a template with a larger disk_limit"),
}


def of_status(status: int, reason: str, retry_after: Optional[float] = None) -> WardError:
    """The exception for an answer of the server."""
    kind, remedy = _BY_STATUS.get(status, (WardError, ""))
    if kind is Busy:
        return Busy(reason, code=status, remedy=remedy, retry_after=retry_after)
    return kind(reason, code=status, remedy=remedy)


# codes of Connect, the protocol of processes and files
_STATUS_OF_CODE = {
    "invalid_argument": 400, "unauthenticated": 401, "permission_denied": 403, "not_found": 404,
    "already_exists": 409, "failed_precondition": 409, "aborted": 409, "resource_exhausted": 429,
    "unavailable": 502, "deadline_exceeded": 504, "canceled": 504, "out_of_range": 400,
    "unimplemented": 405,
}


def of_connect(code: object, reason: str) -> WardError:
    """The exception for an error at the end of a stream."""
    return of_status(_STATUS_OF_CODE.get(str(code), 500), reason)
