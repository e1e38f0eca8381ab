"""Sandboxes of a server: E2B's calls and those under /ward/v1 (docs/serve.md), by HTTP."""
import base64
import contextlib
import os
import queue
import threading
import time
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from . import wire
from .base import READ_MAX, Client, Data, Files, Handler, Process, Sandbox, as_bytes
from .errors import (Conflict, InvalidArgument, NotFound, SandboxGone, TimedOut, Unreachable,
                     Unsupported, WardError, of_connect)
from .model import (Answer, Command, Entry, Event, Output, Question, Result, SandboxInfo, Snapshot,
                    Token, Usage, signal_number, words)
from .transport import Answer as HttpAnswer
from .transport import Transport

ENVD_PORT = 49983
SILENCE = 120.0  # the server says something each 50 seconds
INPUT_PIECE = 256 << 10
POLL = 0.25  # between two looks at the questions


def _quote(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _number(found: Mapping[str, Any], key: str) -> int:
    try:
        return int(found.get(key) or 0)
    except (TypeError, ValueError):
        return 0


def _list(found: Any) -> List[Dict[str, Any]]:
    return [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []


def _info(found: Mapping[str, Any]) -> SandboxInfo:
    metadata = found.get("metadata")
    return SandboxInfo(id=_text(found, "sandboxID"), state=_text(found, "state") or "running",
                       template=_text(found, "templateID"),
                       started=wire.read_time(found.get("startedAt")),
                       ends=wire.read_time(found.get("endAt")) or None,
                       metadata={str(k): str(v) for k, v in metadata.items()}
                       if isinstance(metadata, dict) else {})


def _entry(found: Mapping[str, Any]) -> Entry:
    link = _text(found, "symlinkTarget") or None
    kind = {"FILE_TYPE_FILE": "file", "FILE_TYPE_DIRECTORY": "directory"}.get(_text(found, "type"))
    if kind is None:
        kind = "link" if _text(found, "permissions").startswith("L") else "other"
    return Entry(_text(found, "name"), _text(found, "path"), kind, _number(found, "size"),
                 _number(found, "mode"), _text(found, "owner"), _text(found, "group"),
                 wire.read_time(found.get("modifiedTime")), link)


def _question(found: Mapping[str, Any]) -> Question:
    details = found.get("details")
    return Question(_text(found, "id"), _text(found, "sandboxID"), _text(found, "kind"),
                    _text(found, "subject"), _text(found, "host"), _number(found, "port"),
                    _text(found, "rule"), _text(found, "process"),
                    tuple(map(str, details)) if isinstance(details, list) else (),
                    _number(found, "waiting"), float(_number(found, "secondsLeft")))


def _snapshot(found: Mapping[str, Any]) -> Snapshot:
    names = found.get("names")
    name = str(names[0]).partition(":")[0] if isinstance(names, list) and names else ""
    return Snapshot(_text(found, "snapshotID"), name, _text(found, "sandboxID"),
                    _number(found, "sizeBytes"))


def _token(found: Mapping[str, Any]) -> Token:
    return Token(_text(found, "id"), _text(found, "role"), _text(found, "kind"),
                 _text(found, "token"), _text(found, "name"), _text(found, "expiresAt"),
                 {k: v for k, v in found.items() if k != "token"})


class RemoteProcess(Process):
    """A thread reads the stream, so that waiting for it can have a limit."""

    def __init__(self, sandbox: "RemoteSandbox", answer: HttpAnswer):
        self._sandbox, self._answer = sandbox, answer
        self._terminal = False
        self._queue: "queue.Queue[Any]" = queue.Queue(64)
        self._closed = threading.Event()
        self._over = False
        self.pid = 0
        answer.set_timeout(SILENCE)
        threading.Thread(target=self._read, daemon=True).start()
        first = self._queue.get()
        if isinstance(first, WardError):
            self.close()
            raise first
        self.pid = first

    def _put(self, what: Any) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(what, timeout=1)
                return

    def _read(self) -> None:
        cut = wire.Envelopes()
        try:
            while not self._closed.is_set():
                data = self._answer.read_some()
                if not data:
                    break
                for is_end, message in cut.feed(data):
                    if is_end:
                        error = message.get("error")
                        if isinstance(error, dict):
                            self._put(of_connect(error.get("code"), _text(error, "message")))
                        return self._put(None)
                    self._take(message.get("event"))
        except WardError:
            pass
        self._put(SandboxGone("the sandbox ended, or was paused, while the command ran"))

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            return
        for name, found in event.items():
            if not isinstance(found, dict):
                continue
            if name == "start":
                self._put(_number(found, "pid"))
            elif name == "data":
                for stream in ("stdout", "stderr", "pty"):
                    if found.get(stream):
                        self._put(Output(stream, base64.b64decode(str(found[stream]))))
            elif name == "end":
                self.code = wire.exit_code(found)

    def outputs(self, timeout: Optional[float] = None) -> Iterator[Output]:
        end = None if timeout is None else time.monotonic() + timeout
        while not self._over:
            try:
                piece = self._queue.get(timeout=None if end is None
                                        else max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimedOut("the command's time is over") from None
            if isinstance(piece, Output):
                yield piece
                continue
            self._over = True
            if isinstance(piece, WardError):
                raise piece
            if self.code is None:
                raise Unreachable("the connection broke while the command ran")

    def _rpc(self, method: str, message: Dict[str, Any]) -> None:
        self._sandbox.rpc(f"process.Process/{method}", {"process": {"pid": self.pid}, **message})

    def write(self, data: Data) -> None:
        raw = as_bytes(data)
        kind = "pty" if self._terminal else "stdin"
        for at in range(0, len(raw), INPUT_PIECE):
            piece = base64.b64encode(raw[at:at + INPUT_PIECE]).decode()
            self._rpc("SendInput", {"input": {kind: piece}})

    def close_stdin(self) -> None:
        self._rpc("CloseStdin", {})

    def signal(self, which: Union[int, str]) -> None:
        names = {9: "SIGNAL_SIGKILL", 15: "SIGNAL_SIGTERM"}
        number = signal_number(which)
        if number not in names:
            raise Unsupported(f"the server sends no signal {which}", remedy="use TERM or KILL")
        self._rpc("SendSignal", {"signal": names[number]})

    def resize(self, rows: int, columns: int) -> None:
        self._rpc("Update", {"pty": {"size": {"rows": rows, "cols": columns}}})

    def close(self) -> None:
        self._closed.set()
        self._answer.close()


class RemoteFiles(Files):
    """Files by ward-envd, inside."""

    def __init__(self, sandbox: "RemoteSandbox"):
        self._sandbox = sandbox

    def _rpc(self, method: str, message: Dict[str, Any]) -> Dict[str, Any]:
        return self._sandbox.rpc(f"filesystem.Filesystem/{method}", message)

    def read(self, path: str, *, limit: int = READ_MAX) -> bytes:
        return self._sandbox.send("GET", f"/files?path={_quote(path)}").read(limit)

    def write(self, path: str, data: Data) -> None:
        self._sandbox.send("POST", f"/files?path={_quote(path)}", as_bytes(data),
                           {"Content-Type": "application/octet-stream"}).read(1 << 20)

    def list(self, path: str = ".", *, depth: int = 1) -> List[Entry]:
        found = self._rpc("ListDir", {"path": path, "depth": depth}).get("entries")
        return [_entry(e) for e in _list(found)]

    def stat(self, path: str) -> Entry:
        found = self._rpc("Stat", {"path": path}).get("entry")
        return _entry(found if isinstance(found, dict) else {})

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
            return True
        except NotFound:
            return False

    def make_dir(self, path: str) -> bool:
        try:
            self._rpc("MakeDir", {"path": path})
            return True
        except Conflict:
            return False

    def rename(self, path: str, to: str) -> None:
        self._rpc("Move", {"source": path, "destination": to})

    def remove(self, path: str) -> None:
        self._rpc("Remove", {"path": path})


class RemoteSandbox(Sandbox):
    """Stays on the server until kill() or until its time is over."""

    def __init__(self, client: "RemoteClient", found: Mapping[str, Any]):
        self.id = _text(found, "sandboxID")
        self._client = client
        self._token = _text(found, "envdAccessToken")
        if not self.id or not self.id.isalnum():
            raise Unreachable("the server named no sandbox",
                              remedy="is it ward serve that answers there?")
        self.files = RemoteFiles(self)

    def _fields(self) -> Dict[str, str]:
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(ENVD_PORT),
                "X-Access-Token": self._token}

    def send(self, method: str, path: str, body: Optional[bytes] = None,
             headers: Optional[Mapping[str, str]] = None) -> HttpAnswer:
        """A request to the sandbox."""
        return self._client.transport.send(method, path, body,
                                           {**self._fields(), **(headers or {})})

    def rpc(self, method: str, message: Dict[str, Any]) -> Dict[str, Any]:
        """One call of envd's services."""
        found = self._client.transport.call("POST", "/" + method, message, self._fields())
        return found if isinstance(found, dict) else {}

    def _call(self, method: str, path: str, message: Any = None) -> Any:
        return self._client.transport.call(method, f"/sandboxes/{self.id}{path}", message)

    def start(self, command: Command, *, env: Optional[Dict[str, str]] = None,
              cwd: Optional[str] = None, stdin: bool = False,
              terminal: Optional[Tuple[int, int]] = None) -> RemoteProcess:
        program, *arguments = words(command)
        message: Dict[str, Any] = {"process": {"cmd": program, "args": arguments,
                                               "envs": dict(env or {})}, "stdin": stdin}
        if cwd is not None:
            message["process"]["cwd"] = cwd
        if terminal:
            message["pty"] = {"size": {"rows": terminal[0], "cols": terminal[1]}}
        answer = self.send("POST", "/process.Process/Start", wire.envelope(message),
                           {"Content-Type": "application/connect+json",
                            "Connect-Protocol-Version": "1", "Keepalive-Ping-Interval": "50"})
        process = RemoteProcess(self, answer)
        process._terminal = bool(terminal)
        return process

    def info(self) -> SandboxInfo:
        return _info(self._call("GET", ""))

    def usage(self) -> Usage:
        found = _list(self._call("GET", "/metrics"))
        last = found[-1] if found else {}
        return Usage(_number(last, "memUsed"), _number(last, "diskUsed"),
                     cpu_percent=float(_number(last, "cpuUsedPct")))

    def set_timeout(self, seconds: float) -> None:
        self._call("POST", "/timeout", {"timeout": int(seconds)})

    def pause(self) -> None:
        self._call("POST", "/pause", {})

    def resume(self) -> None:
        found = self._call("POST", "/connect", {})
        self._token = _text(found or {}, "envdAccessToken") or self._token

    def kill(self) -> bool:
        try:
            self._call("DELETE", "")
            return True
        except NotFound:
            return False

    def snapshot(self, name: str = "") -> Snapshot:
        return _snapshot(self._call("POST", "/snapshots", {"name": name} if name else {}) or {})

    def fork(self, count: int = 1) -> List["RemoteSandbox"]:
        made: List[RemoteSandbox] = []
        problem = None
        for found in _list(self._call("POST", "/fork", {"count": count})):
            if isinstance(found.get("sandbox"), dict):
                made.append(RemoteSandbox(self._client, found["sandbox"]))
            elif isinstance(found.get("error"), dict):
                problem = _text(found["error"], "message") or "no reason given"
        if problem is None:
            return made
        for sandbox in made:
            sandbox.kill()
        raise WardError(f"not all forks could be started: {problem}", remedy="try with fewer")

    def decide(self, handler: Handler, timeout: Optional[float] = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        seen: set = set()
        while True:
            counted = 0
            for question in self._client.questions(self.id):
                if question.id in seen:
                    continue
                seen.add(question.id)
                answer = handler(question)
                if answer is None:
                    continue
                with contextlib.suppress(Conflict):  # another call was faster
                    self._client.answer(question, answer)
                    counted += 1
            if counted:
                return counted
            if end is not None and time.monotonic() + POLL > end:
                return 0
            time.sleep(POLL)
            if end is None:
                self.info()  # NotFound: it has ended

    def close(self) -> None:
        """Nothing of this handle's needs to be freed."""


class RemoteClient(Client):
    """A server. key: a key or token of it; else WARD_TOKEN, or ~/.config/ward/token."""
    remote = True

    def __init__(self, url: str, key: Optional[str] = None, *, ca_file: Optional[str] = None,
                 timeout: float = 60.0):
        self.transport = Transport(url, key, timeout=timeout,
                                   ca_file=ca_file or os.environ.get("WARD_CA_FILE"))

    def create(self, template: Optional[str] = None, *, timeout: Optional[float] = None,
               env: Optional[Dict[str, str]] = None, metadata: Optional[Dict[str, str]] = None,
               snapshot: Union[Snapshot, str, None] = None, network: bool = True,
               **local: Any) -> RemoteSandbox:
        if local:
            raise Unsupported(f"a server takes no {', '.join(sorted(local))}",
                              remedy="put it into a template of the server")
        source = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        if source and template:
            raise InvalidArgument("a snapshot has its own template", remedy="leave one of them out")
        message: Dict[str, Any] = {"templateID": source or template or "base"}
        if timeout is not None:
            message["timeout"] = int(timeout)
        if env:
            message["envVars"] = dict(env)
        if metadata:
            message["metadata"] = dict(metadata)
        if not network:
            message["allow_internet_access"] = False
        return RemoteSandbox(self, self.transport.call("POST", "/v2/sandboxes", message) or {})

    def open(self, sandbox_id: str) -> RemoteSandbox:
        found = self.transport.call("POST", f"/v2/sandboxes/{_quote(sandbox_id)}/connect", {})
        return RemoteSandbox(self, found or {})

    def _pages(self, path: str, query: Dict[str, str]) -> Iterator[Dict[str, Any]]:
        for _ in range(1000):
            answer = self.transport.send(
                "GET", f"{path}?{urllib.parse.urlencode({**query, 'limit': '100'})}", None,
                {"X-API-Key": self.transport.key})
            token = answer.headers.get("X-Next-Token")
            yield from _list(wire.json.loads(answer.read(64 << 20)))
            if not token:
                return
            query = {**query, "nextToken": token}

    def list(self) -> List[SandboxInfo]:
        return [_info(f) for f in self._pages("/v2/sandboxes", {})]

    def snapshots(self) -> List[Snapshot]:
        return [_snapshot(f) for f in self._pages("/snapshots", {})]

    def delete_snapshot(self, snapshot: Union[Snapshot, str]) -> bool:
        name = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        try:
            self.transport.call("DELETE", f"/templates/{_quote(name)}")
            return True
        except NotFound:
            return False

    def templates(self) -> List[Dict[str, Any]]:
        """The server's templates, with engine and limits."""
        return _list(self.transport.call("GET", "/ward/v1/templates"))

    def events(self, sandbox: Optional[str] = None) -> Iterable[Event]:
        path = "/ward/v1/events" + (f"?sandboxID={_quote(sandbox)}" if sandbox else "")
        answer = self.transport.send("GET", path, None, {"X-API-Key": self.transport.key})
        answer.set_timeout(SILENCE)
        return self._events(answer)

    @staticmethod
    def _events(answer: HttpAnswer) -> Iterator[Event]:
        cut = wire.Events()
        try:
            while True:
                data = answer.read_some()
                if not data:
                    return
                for found in cut.feed(data):
                    yield Event(_text(found, "kind"), _text(found, "sandboxID"),
                                _text(found, "templateID"), _text(found, "time"),
                                _text(found, "why"))
        finally:
            answer.close()

    def questions(self, sandbox: Optional[str] = None) -> List[Question]:
        path = "/ward/v1/approvals" + (f"?sandboxID={_quote(sandbox)}" if sandbox else "")
        return [_question(f) for f in _list(self.transport.call("GET", path))]

    def answer(self, question: Union[Question, str], answer: Answer) -> None:
        name = question.id if isinstance(question, Question) else question
        message: Dict[str, Any] = {"answer": "deny"}
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == "time":
            message = {"answer": "time", "seconds": int(answer[1])}
        elif answer in ("once", "run"):
            message = {"answer": answer}
        self.transport.call("POST", f"/ward/v1/approvals/{_quote(name)}", message)

    def create_token(self, role: str, ttl: int, **limits: Any) -> Token:
        """A short-lived token; its secret is shown this once. limits: name, sandboxID, labels,
        templates, engines, sources, hours."""
        return _token(self.transport.call("POST", "/ward/v1/tokens",
                                          {"role": role, "ttl": int(ttl), **limits}) or {})

    def tokens(self) -> List[Token]:
        """Keys and tokens, without their secrets."""
        return [_token(f) for f in _list(self.transport.call("GET", "/ward/v1/tokens"))]

    def revoke_token(self, token: Union[Token, str]) -> bool:
        """False: there was none."""
        name = token.id if isinstance(token, Token) else token
        try:
            self.transport.call("DELETE", f"/ward/v1/tokens/{_quote(name)}")
            return True
        except NotFound:
            return False

    def close(self) -> None:
        self.transport.close()


__all__ = ["RemoteClient", "RemoteSandbox", "RemoteProcess", "RemoteFiles", "Result"]
