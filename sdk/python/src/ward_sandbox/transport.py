"""HTTP/1.1 to a server: connections that are kept, TLS that is verified, no redirects, errors as
exceptions. http:// only reaches this machine: a key never crosses a network in the clear."""
import http.client
import ipaddress
import json
import os
import select
import socket
import ssl
import stat
import threading
import urllib.parse
from typing import Any, Dict, List, Mapping, Optional, Union

from .errors import InvalidArgument, Unauthorized, Unreachable, of_status

ANSWER_MAX = 64 << 20
Body = Union[bytes, None]


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_token() -> str:
    """WARD_TOKEN, or the file ward/token in the user's configuration, which only they may read."""
    if os.environ.get("WARD_TOKEN"):
        return os.environ["WARD_TOKEN"]
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(base, "ward", "token")
    try:
        with open(path, encoding="ascii") as f:
            st = os.fstat(f.fileno())
            if not stat.S_ISREG(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & 0o077:
                raise Unauthorized(f"{path} is not a file that only you can read",
                                   remedy=f"chmod 600 {path}")
            return f.read(4096).strip()
    except (FileNotFoundError, NotADirectoryError):
        raise Unauthorized("no key for the server was given",
                           remedy=f"set WARD_TOKEN, pass key=, or write it to {path} "
                                  "(chmod 600)") from None
    except (OSError, UnicodeDecodeError) as e:
        raise Unauthorized(f"{path}: {e}") from None


class Transport:
    """Requests to one server; threads may share it."""

    def __init__(self, url: str, key: Optional[str] = None, *, ca_file: Optional[str] = None,
                 timeout: float = 60.0):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") \
                or parts.query or parts.username:
            raise InvalidArgument(f"not the address of a server: {url}",
                                  remedy="for instance https://sandboxes.example:3000")
        if parts.scheme == "http" and not _is_this_machine(parts.hostname):
            raise InvalidArgument(f"{url} would send the key in the clear",
                                  remedy="use https://, or a tunnel to this machine")
        self.key = key if key is not None else find_token()
        self.timeout = timeout
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout,
                                               context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)

    def _take(self) -> http.client.HTTPConnection:
        """A kept connection that the server has not closed, or a new one."""
        while True:
            with self._lock:
                c = self._idle.pop() if self._idle else None
            if c is None:
                return self._connect()
            if c.sock and not select.select([c.sock], [], [], 0)[0]:
                return c
            c.close()

    def give_back(self, c: http.client.HTTPConnection) -> None:
        """Keeps a connection whose answer was read to its end."""
        with self._lock:
            if len(self._idle) < 32:
                self._idle.append(c)
                return
        c.close()

    def send(self, method: str, path: str, body: Body, headers: Mapping[str, str],
             timeout: Optional[float] = None) -> "Answer":
        """One request; its answer is not read yet. Errors of the server are exceptions."""
        c = self._take()
        try:
            if c.sock is None:
                c.connect()
                c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            c.sock.settimeout(self.timeout if timeout is None else timeout)
            c.request(method, path, body, dict(headers))
            r = c.getresponse()
        except (OSError, http.client.HTTPException) as e:
            c.close()
            raise self._unreachable(e) from e
        answer = Answer(self, c, r)
        if r.status >= 300:
            answer.fail()
        return answer

    def _unreachable(self, e: Exception) -> Unreachable:
        if isinstance(e, ssl.SSLCertVerificationError):
            return Unreachable(f"the certificate of {self._host} cannot be verified: "
                               f"{e.verify_message}",
                               remedy="ca_file= or WARD_CA_FILE names the authority's certificate")
        return Unreachable(f"{self._host}:{self._port}: {e or type(e).__name__}",
                           remedy="is ward serve running there?")

    def call(self, method: str, path: str, message: Any = None,
             headers: Optional[Mapping[str, str]] = None, *, data: Body = None) -> Any:
        """One request with a JSON answer; None: the answer was empty."""
        fields: Dict[str, str] = dict(headers or {})
        if headers is None:
            fields["X-API-Key"] = self.key
        if message is not None:
            data = json.dumps(message).encode()
            fields.setdefault("Content-Type", "application/json")
        answer = self.send(method, path, data, fields)
        body = answer.read(ANSWER_MAX)
        if not body:
            return None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Unreachable("the server's answer is not JSON",
                              remedy="is it ward serve that answers there?") from None

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for c in idle:
            c.close()


class Answer:
    """An answer whose body is still to be read."""

    def __init__(self, transport: Transport, connection: http.client.HTTPConnection,
                 response: http.client.HTTPResponse):
        self._transport, self._connection, self._response = transport, connection, response
        self._lock = threading.Lock()

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    def fail(self) -> None:
        """Raises what the status stands for."""
        reason, after = f"status {self._response.status}", None
        try:
            found = json.loads(self.read(1 << 20))
            reason = str(found.get("message") or reason)
        except (ValueError, AttributeError, RecursionError):
            pass
        with_seconds = self._response.headers.get("Retry-After", "")
        if with_seconds.isdigit():
            after = float(with_seconds)
        raise of_status(self._response.status, reason, after)

    def read(self, most: int) -> bytes:
        """All of it, at most so many bytes."""
        parts: List[bytes] = []
        size = 0
        while True:
            part = self.read_some()
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > most:
                self.close()
                raise InvalidArgument(f"the answer has more than {most} bytes",
                                      remedy="read less at once, or give a higher limit")
            parts.append(part)

    def read_some(self) -> bytes:
        """What has come, at least a byte; b"": the end."""
        try:
            part = self._response.read1(1 << 16)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as e:
            self.close()
            raise self._transport._unreachable(
                e if isinstance(e, OSError) else ConnectionError("the connection broke")) from e
        if not part:
            self._end()
        return part

    def _end(self) -> None:
        with self._lock:
            c, self._connection = self._connection, None  # type: ignore[assignment]
        if c is None:
            return
        whole = not self._response.length
        self._response.close()
        if whole and not self._response.will_close:
            self._transport.give_back(c)
        else:
            c.close()
        if not whole:
            raise Unreachable("the connection broke within an answer")

    def set_timeout(self, seconds: Optional[float]) -> None:
        """For what is read from now on."""
        c = self._connection
        if c is not None and c.sock is not None:
            c.sock.settimeout(seconds)

    def close(self) -> None:
        """Breaks it off; a thread that reads gets an error."""
        with self._lock:
            c, self._connection = self._connection, None  # type: ignore[assignment]
        if c is not None and c.sock is not None:
            try:
                c.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            c.close()
