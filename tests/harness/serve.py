"""A `ward serve` of the test's own, a client that speaks its wire by hand, and the stock SDKs."""
import base64
import fcntl
import http.client
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

from . import context, users

LINE = re.compile(r"export E2B_API_URL=\S+:(\d+) E2B_SANDBOX_URL=\S+ E2B_API_KEY=(\S+)")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Server:
    """Ends with the test, and its sandboxes with it."""

    def __init__(self, t, *options, state=None, env=None, before=()):
        self.t, self.options, self.env, self.before = t, options, env, before
        self.state = state or t.fresh_dir("serve")
        self.key = None
        self.port = 0
        self.start()
        t.defer(self.stop)

    def start(self):
        log = open(os.path.join(self.t.directory, "serve.log"), "ab")
        self.process = self.t.popen(
            [*self.before, self.t.ward_path, "serve", "--dev", "--listen",
             f"127.0.0.1:{self.port}", "--state", self.state, *self.options],
            env=self.env, stderr=log)
        log.close()
        # it ends its sandboxes when it is asked to end: stop() does that, not the test's end
        self.t._running.remove(self.process)
        text = ""
        while not (found := LINE.search(text)):
            line = self.process.stdout.readline().decode()
            if not line:
                raise context.Failed(f"ward serve ended: {self.log()[-2000:]}")
            text += line
        self.port, self.key = int(found[1]), found[2]

    def log(self):
        return self.t.read(self.t.directory, "serve.log") or ""

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            finally:
                self.process.kill()

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def connection(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, key=True, headers=None, timeout=30):
        """One request of the control plane, or any other with headers of its own."""
        c = self.connection(timeout)
        headers = dict(headers or {})
        if key:
            headers["X-API-KEY"] = self.key if key is True else key
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        c.request(method, path, body, headers)
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        c.close()
        return answer

    def create(self, template="base", **more):
        r = self.ask("POST", "/v2/sandboxes", {"templateID": template, **more})
        if r.status != 201:
            raise context.Failed(f"create: {r}\n{self.log()[-2000:]}")
        return Box(self, r.json)

    def wait_log(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text not in self.log():
            if time.monotonic() > end:
                raise context.Failed(f"no {text!r} in the log:\n{self.log()[-3000:]}")
            time.sleep(0.02)


class Box:
    """A sandbox of a server, over the wire."""

    def __init__(self, server, info):
        self.server, self.info = server, info
        self.id, self.token = info["sandboxID"], info["envdAccessToken"]

    def headers(self, port=49983, **more):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port),
                "X-Access-Token": self.token, **more}

    def ask(self, method, path, body=None, port=49983, **headers):
        return self.server.ask(method, path, body, key=False,
                               headers=self.headers(port, **headers))

    def rpc(self, method, message):
        r = self.ask("POST", f"/{method}", message)
        return r.status, r.json

    def stream(self, method, message, timeout=30, **headers):
        """Begins a stream; its messages are what messages() yields."""
        c = self.server.connection(timeout)
        body = json.dumps(message).encode()
        c.request("POST", f"/{method}", struct.pack(">BI", 0, len(body)) + body,
                  self.headers(**{"Content-Type": "application/connect+json",
                                  "Connect-Protocol-Version": "1", **headers}))
        r = c.getresponse()
        if r.status != 200:
            raise context.Failed(f"{method}: {r.status} {r.read()!r}")
        return c, r

    def start(self, cmd, *args, timeout=30, **more):
        envs = more.pop("envs", {})
        return self.stream("process.Process/Start",
                           {"process": {"cmd": cmd, "args": list(args), "envs": envs}, **more},
                           timeout)

    def sh(self, script, **more):
        """Runs a script: (exit code, stdout, stderr)."""
        c, r = self.start("/bin/sh", "-c", script, stdin=False, **more)
        out, err, code = b"", b"", None
        for event in (m["event"] for m in messages(r) if "event" in m):
            out += base64.b64decode(event.get("data", {}).get("stdout", ""))
            err += base64.b64decode(event.get("data", {}).get("stderr", ""))
            if "end" in event:
                code = event["end"].get("exitCode", 0)
        c.close()
        return code, out.decode(), err.decode()

    def kill(self):
        return self.server.ask("DELETE", f"/sandboxes/{self.id}").status


def environment(s):
    """What points a stock SDK at the server."""
    url = f"http://127.0.0.1:{s.port}"
    return {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": s.key}


def messages(response):
    """The messages of a stream; the last one is {"end": what the end said}. A stream that breaks
    off has no such one."""
    while True:
        try:
            head = response.read(5)
            if len(head) < 5:
                return
            flags, size = struct.unpack(">BI", head)
            body = json.loads(response.read(size))
        except (http.client.HTTPException, OSError):
            return
        if flags & 2:
            yield {"end": body}
            return
        yield body


def sdk(t, kind, *names):
    """The directory with the stock SDK, or other packages, fetched once by npm or pip; skips where
    they cannot."""
    names = names or ("e2b",)

    def command(work):
        return {"npm": ["npm", "install", "--no-audit", "--no-fund", "--prefix", work, *names],
                "pip": ["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", work, *names]
                }[kind]
    return fetch_once(t, f"{re.sub(r'[^a-z0-9.]+', '-', '-'.join(names))}-{kind}", command)


def fetch_once(t, name, command):
    """A directory that all tests share, made once by command(DIRECTORY); skips where that fails,
    because packages cannot be fetched, and does not try again."""
    place = os.path.join(t.cache, name)
    with users.as_root() if users.IS_ROOT else open(os.devnull):
        with open(place + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(place + ".failed"):
                with open(place + ".failed") as f:
                    raise context.Skipped(f.read())
            if not os.path.exists(place):
                fetch(t, name, place, command)
    return place


def fetch(t, name, place, command):
    work = tempfile.mkdtemp(dir=t.cache)
    os.chmod(work, 0o755)
    try:
        r = subprocess.run(command(work), capture_output=True, text=True, timeout=240, cwd=work,
                           **users.whole())
        problem = r.stderr[-300:] if r.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem:
        shutil.rmtree(work, ignore_errors=True)
        with open(place + ".failed", "w") as f:
            f.write(f"{name} cannot be fetched: {problem}")
        raise context.Skipped(f"{name} cannot be fetched: {problem}")
    os.rename(work, place)
