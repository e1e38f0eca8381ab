"""A client of MCP on a program's standard input and output, which speaks the wire by hand."""
import json
import os
import select
import time

from .context import Failed

REVISION = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}


def modern(**meta):
    return {"_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}, **meta}}


class Client:
    """Ends with the test. Messages that are not the awaited answer are kept in .others."""

    def __init__(self, t, *argv, cwd=None, env=None, initialize=True, capabilities=None):
        import subprocess
        self.t, self.rest, self.others, self.next_id = t, b"", [], 0
        self.log = open(os.path.join(t.directory, "mcp.log"), "ab+")
        self.process = t.popen(argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stderr=self.log)
        if initialize:
            self.info = self.initialize(capabilities=capabilities)

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def read(self, seconds=20):
        """The next message; None at the end of the stream."""
        end = time.monotonic() + seconds
        fd = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no message within {seconds} s; {self.errors()[-2000:]}")
            data = os.read(fd, 1 << 20)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def silent(self, seconds=0.5):
        """Whether nothing comes for so long."""
        ready, _, _ = select.select([self.process.stdout.fileno()], [], [], seconds)
        return not ready and not self.rest

    def begin(self, method, params=None, **more):
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                   **({} if params is None else {"params": params}), **more})
        return self.next_id

    def wait(self, wanted, seconds=20):
        for kept in self.others:
            if kept.get("id") == wanted and "method" not in kept:
                self.others.remove(kept)
                return kept
        while True:
            message = self.read(seconds)
            if message is None:
                raise Failed(f"the stream ended; {self.errors()[-2000:]}")
            if message.get("id") == wanted and "method" not in message:
                return message
            self.others.append(message)

    def ask(self, method, params=None, seconds=20):
        return self.wait(self.begin(method, params), seconds)

    def result(self, method, params=None, seconds=20):
        answer = self.ask(method, params, seconds)
        if "result" not in answer:
            raise Failed(f"{method}: {answer}; {self.errors()[-2000:]}")
        return answer["result"]

    def initialize(self, revision=REVISION, capabilities=None):
        info = self.result("initialize", {"protocolVersion": revision,
                                          "capabilities": capabilities or {},
                                          "clientInfo": {"name": "test", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return info

    def call(self, name, seconds=20, **arguments):
        return self.result("tools/call", {"name": name, "arguments": arguments}, seconds)

    def end(self, seconds=10):
        """Closes its input; the exit status."""
        self.process.stdin.close()
        return self.process.wait(seconds)


def text(result):
    return "".join(part.get("text", "") for part in result["content"])


def tool(run=("true",), scope=None, nature=None, **more):
    return {"description": "a tool", "run": list(run), "scope": scope or {},
            "nature": {**NATURE, **(nature or {})}, **more}


def shell(nature=None, more=None, **scope):
    return {**tool(["sh", "-c", "{code}"], scope, nature, parameters={"code": {"lines": True}}),
            **(more or {})}


def gone(pattern):
    """Whether no process has these bytes in its command line."""
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if pattern.encode() in f.read():
                        return False
            except OSError:
                pass
    return True
