"""Sandboxes of ward: on this machine through libward, or on a server (ward serve), with one
interface.

    import ward_sandbox as ward

    with ward.create(timeout=300) as box:
        print(box.run("echo hello").stdout)
        box.files.write("a.py", "print(6 * 7)")
        print(box.run(["python3", "a.py"], check=True).stdout)

WARD_HOST names a server (https://..., or http://127.0.0.1:3000) and WARD_TOKEN a key of it; without
WARD_HOST sandboxes are this machine's own. AsyncClient and acreate() are the same for asyncio.
"""
import os
from typing import Any, Optional

from .aio import AsyncClient, AsyncFiles, AsyncProcess, AsyncSandbox
from .base import Client, Files, Process, Sandbox
from .errors import (Busy, CommandFailed, Conflict, Forbidden, InvalidArgument, NotFound,
                     SandboxGone, TimedOut, Unauthorized, Unreachable, Unsupported, WardError)
from .local import LocalClient
from .model import (Entry, Event, Output, Question, Result, SandboxInfo, Snapshot, Token, Usage)
from .remote import RemoteClient

__version__ = "0.1.0"


def connect(url: Optional[str] = None, key: Optional[str] = None, *, ca_file: Optional[str] = None,
            timeout: float = 60.0, program: Optional[str] = None) -> Client:
    """A client of the server at url, else at WARD_HOST, else of this machine."""
    url = url or os.environ.get("WARD_HOST")
    if url:
        return RemoteClient(url, key, ca_file=ca_file, timeout=timeout)
    return LocalClient(program)


def create(template: Optional[str] = None, **how: Any) -> Sandbox:
    """connect().create()"""
    return connect().create(template, **how)


def aconnect(url: Optional[str] = None, key: Optional[str] = None, **how: Any) -> AsyncClient:
    """connect() for asyncio."""
    return AsyncClient(connect(url, key, **how))


async def acreate(template: Optional[str] = None, **how: Any) -> AsyncSandbox:
    """create() for asyncio."""
    return await aconnect().create(template, **how)


__all__ = [
    "AsyncClient", "AsyncFiles", "AsyncProcess", "AsyncSandbox", "Busy", "Client", "CommandFailed",
    "Conflict", "Entry", "Event", "Files", "Forbidden", "InvalidArgument", "LocalClient",
    "NotFound", "Output", "Process", "Question", "RemoteClient", "Result", "Sandbox",
    "SandboxGone", "SandboxInfo", "Snapshot", "TimedOut", "Token", "Unauthorized", "Unreachable",
    "Unsupported", "Usage", "WardError", "acreate", "aconnect", "connect", "create",
]
