"""A `ward mcp serve --http` of the test's own, and a client that speaks its wire by hand."""
import http.client
import json
import os
import select
import subprocess

from .context import Failed

JSON = "application/json"
EVENTS = "text/event-stream"


class Answer:
    """.status, .headers, .messages; of a stream of events also .events: (id, data)."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()
        self.events = events(self.body) if EVENTS in self.headers.get("content-type", "") else []
        texts = [data for _, data in self.events if data] or [self.body]
        self.messages = [json.loads(text) for text in texts if text]

    @property
    def message(self):
        """The answer among the messages."""
        return [m for m in self.messages if "method" not in m][-1]

    @property
    def error(self):
        return self.message["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


def events(data):
    found = []
    for block in data.decode().split("\n\n"):
        fields = dict(line.split(":", 1) for line in block.split("\n") if line[:1] not in ("", ":"))
        if fields:
            found.append((fields.get("id", "").strip(), fields.get("data", "").strip()))
    return found


class Server:
    """Ends with the test."""

    def __init__(self, t, *options, cwd=None, env=None, port=0):
        self.t = t
        self.log = open(os.path.join(t.fresh_dir("log"), "log"), "ab+")
        self.process = t.popen(t.ward_argv("mcp", "serve", "--http", str(port), "--json", *options),
                               cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=self.log)
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            raise Failed(f"ward mcp serve did not begin: {self.errors()[-2000:]}")
        said = json.loads(line)
        self.url, self.token = said["url"], said["token"]
        self.port = int(self.url.rsplit(":", 1)[1].split("/")[0])

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def front(self):
        found = []

        def look():
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
                for pid in f.read().split():
                    with open(f"/proc/{pid}/cmdline") as name:
                        if "ward-mcp-front" in name.read():
                            found.append(int(pid))
            return found
        self.t.wait_until(look, 5, "there is no process that reads HTTP")
        return found[0]

    def connection(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def open(self, method="POST", body=None, headers=None, path="/mcp", connection=None,
             timeout=30):
        """Sends a request; the response, whose body is not read yet. A header of None is left
        out."""
        fields = {"Authorization": f"Bearer {self.token}", "Accept": f"{JSON}, {EVENTS}",
                  **({"Content-Type": JSON} if method == "POST" else {}), **(headers or {})}
        c = connection or self.connection(timeout)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        c.request(method, path, body, {k: v for k, v in fields.items() if v is not None})
        response = c.getresponse()
        response.connection = c
        return response

    def ask(self, *args, **more):
        response = self.open(*args, **more)
        answer = Answer(response)
        response.connection.close()
        return answer


class Session:
    """One of `initialize`."""

    def __init__(self, server, revision="2025-11-25", capabilities=None):
        self.server, self.next_id, self.headers = server, 1, {}
        a = server.ask(body={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": capabilities or {}}})
        self.info = a.message["result"]
        self.headers = {"Mcp-Session-Id": a.headers["mcp-session-id"],
                        "Mcp-Protocol-Version": self.info["protocolVersion"]}
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message, **more):
        return self.server.ask(body=message, headers=self.headers, **more)

    def request(self, method, params=None):
        self.next_id += 1
        return {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params or {}}

    def ask(self, method, params=None, **more):
        return self.post(self.request(method, params), **more)

    def call(self, name, meta=None, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments,
                                       **({"_meta": meta} if meta else {})})

    def begin(self, method, params=None):
        """Sends the request; the response, to be read bit by bit."""
        return self.server.open(body=self.request(method, params), headers=self.headers)

    def get(self, last=None):
        return self.server.open("GET", headers={**self.headers, "Last-Event-ID": last})


def next_event(response):
    """The next event of a stream: (id, message or None); a sign of life is skipped."""
    found = {}
    while True:
        line = response.readline()
        if not line:
            return None
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            key, value = line.split(":", 1)
            found[key] = value.strip()
        elif found:
            return found.get("id"), json.loads(found["data"]) if found.get("data") else None
