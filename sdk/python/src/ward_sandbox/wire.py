"""The bytes of the wire, as pure functions: envelopes of Connect, server-sent events, times. What a
server or sandbox sends is not trusted: each length has a limit, and a wrong form is an error."""
import datetime
import json
import signal
import struct
from typing import Any, Dict, Iterator, List, Tuple

from .errors import Unreachable

ENVELOPE_MAX = 16 << 20
EVENT_MAX = 1 << 20
_END = 2


def envelope(message: Dict[str, Any]) -> bytes:
    """One message of a stream."""
    body = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(body)) + body


class Envelopes:
    """Cuts a stream into messages: feed() it bytes, it gives (is_end, message)."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[Tuple[bool, Dict[str, Any]]]:
        self._kept += data
        while len(self._kept) >= 5:
            flags, size = struct.unpack_from(">BI", self._kept)
            if flags & ~_END or size > ENVELOPE_MAX:
                raise Unreachable("the server sent a stream of a form that is not known",
                                  remedy="is it ward serve that answers there?")
            if len(self._kept) < 5 + size:
                return
            body = bytes(self._kept[5:5 + size])
            del self._kept[:5 + size]
            yield bool(flags & _END), read_object(body)


class Events:
    """Cuts server-sent events: feed() it bytes, it gives the data of each."""

    def __init__(self) -> None:
        self._kept = b""
        self._data: List[bytes] = []

    def feed(self, data: bytes) -> Iterator[Dict[str, Any]]:
        self._kept += data
        if len(self._kept) > EVENT_MAX or sum(map(len, self._data)) > EVENT_MAX:
            raise Unreachable("the server sent an event that is too long")
        *lines, self._kept = self._kept.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif not line.strip() and self._data:
                body, self._data = b"\n".join(self._data), []
                yield read_object(body)


def read_object(body: bytes) -> Dict[str, Any]:
    """A JSON object, or an error."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unreachable("the server sent what is no JSON object",
                          remedy="is it ward serve that answers there?")
    return found


def read_time(text: object) -> float:
    """RFC 3339 with any number of digits behind the second -> seconds since 1970; 0.0: none."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return 0.0
    whole, _, part = text[:-1].partition(".")
    try:
        at = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S")
        fraction = float(f"0.{part}") if part.isdigit() else 0.0
    except ValueError:
        return 0.0
    return at.replace(tzinfo=datetime.timezone.utc).timestamp() + fraction


_NAMES = {"killed": signal.SIGKILL, "terminated": signal.SIGTERM,
          **{signal.strsignal(s): s for s in signal.valid_signals() if signal.strsignal(s)}}


def exit_code(end: Dict[str, Any]) -> int:
    """The end of a process: its exit status, 128+N if signal N killed it."""
    if end.get("exited"):
        code = end.get("exitCode", 0)
        return code if isinstance(code, int) else 255
    name = str(end.get("status", "")).partition("signal: ")[2]
    return 128 + int(_NAMES.get(name, signal.SIGKILL))
