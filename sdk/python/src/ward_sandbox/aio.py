"""The same interface for asyncio. Each call that waits does so in a thread of its own, so any
number of them may wait at the same time."""
import asyncio
import contextlib
import threading
from typing import (Any, AsyncIterator, Callable, Dict, List, Optional, Sequence, Tuple,
                    TypeVar, Union)

from .base import READ_MAX, Client, Data, Files, Handler, Process, Sandbox, as_bytes, collect
from .errors import CommandFailed
from .model import (Answer, Command, Entry, Event, Output, Question, Result, SandboxInfo, Snapshot,
                    Usage)

T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any,
                    late: Optional[Callable[[T], Any]] = None, **named: Any) -> T:
    """The call's result. If the task is cancelled the call goes on by itself, and what it makes is
    handed to late()."""
    loop = asyncio.get_running_loop()
    future: "asyncio.Future[T]" = loop.create_future()

    def tidy(result: Any) -> None:
        with contextlib.suppress(Exception):
            if late is not None:
                late(result)

    def settle(result: Any, problem: Optional[BaseException]) -> None:
        if future.done():
            if problem is None and late is not None:
                threading.Thread(target=tidy, args=(result,), daemon=True).start()
        elif problem is not None:
            future.set_exception(problem)
        else:
            future.set_result(result)

    def work() -> None:
        result, problem = None, None
        try:
            result = function(*arguments, **named)
        except StopIteration:
            problem = RuntimeError("the iteration is over")
        except BaseException as e:  # pylint: disable=broad-except
            problem = e
        try:
            loop.call_soon_threadsafe(settle, result, problem)
        except RuntimeError:  # the loop is closed
            if problem is None:
                tidy(result)

    threading.Thread(target=work, daemon=True).start()
    return await future


def _end_process(process: Process) -> None:
    with contextlib.suppress(Exception):
        process.kill()
    process.close()


def _end_sandbox(sandbox: Sandbox) -> None:
    sandbox.__exit__(None, None, None)


_END = object()


async def iterate(items: Any) -> AsyncIterator[Any]:
    """An iterator that waits -> one that does not block the loop."""
    while True:
        item = await in_thread(next, items, _END)
        if item is _END:
            return
        yield item


class AsyncProcess:
    """A Process; `async for` gives its output."""

    def __init__(self, process: Process):
        self.sync = process

    @property
    def code(self) -> Optional[int]:
        return self.sync.code

    def outputs(self, timeout: Optional[float] = None) -> AsyncIterator[Output]:
        return iterate(self.sync.outputs(timeout))

    def __aiter__(self) -> AsyncIterator[Output]:
        return self.outputs()

    async def wait(self, timeout: Optional[float] = None) -> Result:
        return await in_thread(self.sync.wait, timeout)

    async def write(self, data: Data) -> None:
        await in_thread(self.sync.write, data)

    async def close_stdin(self) -> None:
        await in_thread(self.sync.close_stdin)

    async def signal(self, which: Union[int, str]) -> None:
        await in_thread(self.sync.signal, which)

    async def kill(self) -> None:
        await in_thread(self.sync.kill)

    async def resize(self, rows: int, columns: int) -> None:
        await in_thread(self.sync.resize, rows, columns)

    async def close(self) -> None:
        await in_thread(self.sync.close)

    async def __aenter__(self) -> "AsyncProcess":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncFiles:
    """Files of a sandbox."""

    def __init__(self, files: Files):
        self.sync = files

    async def read(self, path: str, *, limit: int = READ_MAX) -> bytes:
        return await in_thread(self.sync.read, path, limit=limit)

    async def read_text(self, path: str, *, limit: int = READ_MAX) -> str:
        return await in_thread(self.sync.read_text, path, limit=limit)

    async def write(self, path: str, data: Data) -> None:
        await in_thread(self.sync.write, path, data)

    async def list(self, path: str = ".", *, depth: int = 1) -> List[Entry]:
        return await in_thread(self.sync.list, path, depth=depth)

    async def stat(self, path: str) -> Entry:
        return await in_thread(self.sync.stat, path)

    async def exists(self, path: str) -> bool:
        return await in_thread(self.sync.exists, path)

    async def make_dir(self, path: str) -> bool:
        return await in_thread(self.sync.make_dir, path)

    async def rename(self, path: str, to: str) -> None:
        await in_thread(self.sync.rename, path, to)

    async def remove(self, path: str) -> None:
        await in_thread(self.sync.remove, path)


class AsyncSandbox:
    """A Sandbox; it ends with its block."""

    def __init__(self, sandbox: Sandbox):
        self.sync = sandbox
        self.files = AsyncFiles(sandbox.files)

    @property
    def id(self) -> str:
        return self.sync.id

    async def start(self, command: Command, *, env: Optional[Dict[str, str]] = None,
                    cwd: Optional[str] = None, stdin: bool = False,
                    terminal: Optional[Tuple[int, int]] = None) -> AsyncProcess:
        return AsyncProcess(await in_thread(self.sync.start, command, env=env, cwd=cwd, stdin=stdin,
                                            terminal=terminal, late=_end_process))

    async def run(self, command: Command, *, input: Data = b"",
                  env: Optional[Dict[str, str]] = None, cwd: Optional[str] = None,
                  timeout: Optional[float] = None, check: bool = False,
                  on_output: Optional[Callable[[Output], None]] = None) -> Result:
        """As Sandbox.run(); on_output is called in another thread. A task that is cancelled ends
        its command."""
        process = await in_thread(self.sync.start, command, env=env, cwd=cwd, stdin=bool(input),
                                  late=_end_process)
        try:
            result = await in_thread(collect, process, as_bytes(input), timeout, on_output)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await in_thread(process.kill)
            raise
        finally:
            process.close()
        if check and result.code:
            raise CommandFailed(result)
        return result

    async def info(self) -> SandboxInfo:
        return await in_thread(self.sync.info)

    async def usage(self) -> Usage:
        return await in_thread(self.sync.usage)

    async def set_timeout(self, seconds: float) -> None:
        await in_thread(self.sync.set_timeout, seconds)

    async def pause(self) -> None:
        await in_thread(self.sync.pause)

    async def resume(self) -> None:
        await in_thread(self.sync.resume)

    async def kill(self) -> bool:
        return await in_thread(self.sync.kill)

    async def snapshot(self, name: str = "") -> Snapshot:
        return await in_thread(self.sync.snapshot, name)

    async def fork(self, count: int = 1) -> "Sequence[AsyncSandbox]":
        return [AsyncSandbox(s) for s in await in_thread(self.sync.fork, count)]

    async def decide(self, handler: Handler, timeout: Optional[float] = None) -> int:
        """The handler is called in another thread."""
        return await in_thread(self.sync.decide, handler, timeout)

    async def close(self) -> None:
        await in_thread(self.sync.close)

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self.sync.__exit__, None, None, None)


class AsyncClient:
    """A Client."""

    def __init__(self, client: Client):
        self.sync = client

    @property
    def remote(self) -> bool:
        return self.sync.remote

    async def create(self, template: Optional[str] = None, **how: Any) -> AsyncSandbox:
        return AsyncSandbox(await in_thread(self.sync.create, template, late=_end_sandbox, **how))

    async def open(self, sandbox_id: str) -> AsyncSandbox:
        return AsyncSandbox(await in_thread(self.sync.open, sandbox_id))

    async def list(self) -> List[SandboxInfo]:
        return await in_thread(self.sync.list)

    async def snapshots(self) -> List[Snapshot]:
        return await in_thread(self.sync.snapshots)

    async def delete_snapshot(self, snapshot: Union[Snapshot, str]) -> bool:
        return await in_thread(self.sync.delete_snapshot, snapshot)

    async def events(self, sandbox: Optional[str] = None) -> AsyncIterator[Event]:
        """`async for event in client.events()`"""
        found = await in_thread(self.sync.events, sandbox)
        async for event in iterate(iter(found)):
            yield event

    async def questions(self, sandbox: Optional[str] = None) -> List[Question]:
        return await in_thread(self.sync.questions, sandbox)

    async def answer(self, question: Union[Question, str], answer: Answer) -> None:
        await in_thread(self.sync.answer, question, answer)

    async def close(self) -> None:
        await in_thread(self.sync.close)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
