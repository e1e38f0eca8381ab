"""Ways to answer beside the terminal of a run: ward approve with keys, programs on a socket, a
webhook with signed answers, a desktop notification."""
import hashlib
import hmac
import http.server
import json
import os
import threading
import time

from harness import screen
from harness.boxes import clean

ASK = r"""
import socket, sys
s = socket.create_connection((sys.argv[1], 443), 60)
try:
    s.sendall(b"hello")
    print(sys.argv[1], s.recv(5).decode() or "closed", flush=True)
except OSError as error:
    print(sys.argv[1], type(error).__name__, flush=True)
"""
KEY = b"0123456789abcdef0123456789abcdef"


def start(t, timeout=60):
    """A detached idle sandbox that asks; returns (id, workspace)."""
    ws = t.workspace({"ask.py": ASK, "ward.yaml": "network:\n  mode: restricted\n"
                      "  egress_allowlist:\n    - {host: \"*\", ask: true}\n"
                      f"approvals: {{mode: ask, timeout_seconds: {timeout}}}\n"})
    t.defer(clean, t)
    r = t.ward("run", "-d", "-p", os.path.join(ws, "ward.yaml"), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def connect(t, box, ws, name):
    return t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "ask.py", name), cwd=ws)


def got(process):
    return process.communicate(timeout=60)[0].decode().strip()


def questions(t):
    return json.loads(t.ward("approve", "--json").out)["questions"]


def asked(t):
    t.wait_until(lambda: questions(t), 20, "nothing is asked")
    return questions(t)[0]


def answers(t, box):
    r = t.ward("audit", "show", box, "--json")
    return [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "approval.answer"]


def test_keys(t):
    """ward approve on a terminal: one question after the other, answered by keys; it ends when
    none waits."""
    box, ws = start(t)
    first = connect(t, box, ws, "a.test")
    asked(t)
    second = connect(t, box, ws, "b.test")
    t.wait_until(lambda: len(questions(t)) == 2, 20, "two questions")
    with screen.Screen(t) as s:
        s.ward("approve", "--for", "90")
        s.see("a.test:443")
        s.see("t 90 s")
        time.sleep(0.6)
        s.type("n")
        s.see("b.test:443")
        time.sleep(0.6)
        s.type("?")
        s.see("the rule that asks: *")
        s.see("approval.ask")	# history
        s.type("x")	# no answer
        time.sleep(0.6)
        s.type("d")
        s.see("b.test:443: denied")
        t.equal(got(second), "b.test ConnectionResetError", "denied")
        s.wait(lambda shown: shown.count("a.test:443") >= 2, "the one that was skipped")
        time.sleep(0.6)
        s.type("t")
        s.see("a.test:443: allowed")
        s.see("no question waits")
        s.prompt()
    got(first)
    one, two = answers(t, box)
    t.equal((one["action"], one["via"], one["from"][:8]), ("deny", "watch", "/dev/pts"), "by whom")
    t.equal((two["action"], two["scope"], two["value"], two["unit"]),
            ("approve", "time", 90, "seconds"), "for a time")


BRIDGE = r"""
import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])

def read():
    try:
        while data := s.recv(4096):
            os.write(1, data)
    except ConnectionResetError:
        pass
    os._exit(0)
threading.Thread(target=read, daemon=True).start()
while data := os.read(0, 4096):
    s.sendall(data)
"""


class Program:
    """A program of the user's on the socket."""

    def __init__(self, t, path):
        self.process = t.popen(["/usr/bin/python3", "-c", BRIDGE, path], stdin=-1)

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, event):
        """The next line of this kind."""
        while True:
            line = json.loads(self.process.stdout.readline())
            if line["event"] == event:
                return line


def open_socket(t, *more):
    path = os.path.join(t.fresh_dir("socket"), "s")
    process = t.popen(t.ward_argv("approve", "--socket", path, *more))
    t.wait_until(lambda: os.path.exists(path), 20, "no socket")
    return path, process


def test_socket(t):
    """A program sees what comes and goes, and answers; what is not an answer is an error; the first
    answer counts."""
    box, ws = start(t)
    path, process = open_socket(t)
    t.equal(os.stat(path).st_mode & 0o777, 0o600, "its mode")
    p, other = Program(t, path), Program(t, path)
    waits = connect(t, box, ws, "a.test")
    q = p.hear("question")
    t.equal((q["sandbox"], q["subject"], q["host"]), (box, "a.test:443", "a.test"), "the question")
    t.equal(other.hear("question")["id"], q["id"], "everybody hears it")
    for bad in ("", "x", "[]", "{}", '{"id": "%s", "answer": "yes"}' % q["id"],
                '{"id": "%s", "answer": "deny", "more": 1}' % q["id"],
                '{"id": "%s", "answer": "deny", "answer": "run"}' % q["id"],
                '{"id": "%s", "answer": "time"}' % q["id"],
                '{"id": "%s", "answer": "once", "seconds": 5}' % q["id"],
                '{"id": "%s", "answer": "always"}' % q["id"],
                '{"id": "nobody:1", "answer": "deny"}'):
        p.say(bad)
        t.equal(p.hear("answer")["counts"], False, f"{bad!r}")
    t.check(waits.poll() is None, "it waits")
    p.say(json.dumps({"id": q["id"], "answer": "deny", "by": "a robot"}))
    t.equal(p.hear("answer")["counts"], True, "an answer")
    t.equal(got(waits), "a.test ConnectionResetError", "denied")
    t.equal(p.hear("gone")["id"], q["id"], "gone")
    other.say(json.dumps({"id": q["id"], "answer": "run"}))
    t.equal(other.hear("answer")["counts"], False, "too late")
    first = answers(t, box)[0]
    t.equal((first["via"], first["from"]), ("socket", f"process {p.process.pid} by a robot"),
            "by whom")
    p.say("x" * 9000)	# a line without end
    t.equal(p.process.wait(20), 0, "dropped")
    waits = connect(t, box, ws, "b.test")
    q = other.hear("question")
    other.say(json.dumps({"id": q["id"], "answer": "time", "seconds": 60}))
    t.equal(other.hear("answer")["counts"], True, "for a time")
    got(waits)
    process.terminate()
    t.equal(process.wait(20), 0)
    t.check(not os.path.exists(path), "the socket is gone")


def test_socket_from_inside(t):
    """A sandbox that sees the socket is not let in."""
    box, ws = start(t)
    path = os.path.join(ws, "s")
    t.popen(t.ward_argv("approve", "--socket", path))
    t.wait_until(lambda: os.path.exists(path), 20, "no socket")
    waits = connect(t, box, ws, "a.test")
    q = asked(t)
    r = t.ward("exec", box, "/usr/bin/python3", "-c",
               "import socket, json\n"
               "s = socket.socket(socket.AF_UNIX)\n"
               "s.settimeout(5)\n"
               "try:\n"
               "    s.connect('s')\n"
               f"    line = json.dumps({{'id': '{q['id']}', 'answer': 'run'}})\n"
               "    s.sendall(line.encode() + b'\\n')\n"
               "    print('heard', s.recv(1000))\n"
               "except OSError as error:\n"
               "    print(type(error).__name__)\n", cwd=ws)
    t.check("heard b'{" not in r.out, f"inside: {r.out} {r.err}")
    t.equal(len(questions(t)), 1, "it still waits")
    t.equal(answers(t, box), [], "nobody answered")
    waits.terminate()


class Hook(http.server.ThreadingHTTPServer):
    """A webhook on this machine; decide(question, times) -> (status, signature or None, body)."""

    daemon_threads = True

    def __init__(self, t, decide):
        self.decide, self.seen, self.bad = decide, [], []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        t.defer(self.shutdown)

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/ask"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp = self.headers["Ward-Timestamp"]
        right = hmac.new(KEY, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        if self.headers["Ward-Signature"] != f"v1={right}" or abs(int(stamp) - time.time()) > 60:
            self.server.bad.append(body)
        q = json.loads(body)
        self.server.seen.append(q)
        status, signature, answer = self.server.decide(q, len(self.server.seen))
        self.send_response(status)
        if signature:
            self.send_header("Ward-Signature", signature)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def sign(q, body, key=KEY):
    return "v1=" + hmac.new(key, b"answer." + q["nonce"].encode() + b"." + body,
                            hashlib.sha256).hexdigest()


def body_of(q, answer, **more):
    return json.dumps({"id": q["id"], "answer": answer, **more}).encode()


def open_hook(t, hook):
    key = os.path.join(t.fresh_dir("key"), "key")
    fd = os.open(key, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, KEY + b"\n")
    os.close(fd)
    return t.popen(t.ward_argv("approve", "--webhook", hook.url(), "--key", key)), key


def test_webhook(t):
    """Questions are signed, and so must be the answers; 202 is asked again."""
    def decide(q, times):
        if times == 1:
            return 202, None, b""
        answer = body_of(q, "deny", by="carol", nonce=q["nonce"])
        return 200, sign(q, answer), answer
    hook = Hook(t, decide)
    box, ws = start(t)
    open_hook(t, hook)
    waits = connect(t, box, ws, "a.test")
    t.equal(got(waits), "a.test ConnectionResetError", "denied")
    t.equal((hook.bad, len(hook.seen)), ([], 2), "all were signed")
    t.equal((hook.seen[0]["subject"], hook.seen[0]["nonce"]),
            ("a.test:443", hook.seen[1]["nonce"]), "one question")
    e = answers(t, box)[0]
    t.equal((e["via"], e["from"], e["action"]),
            ("webhook", f"127.0.0.1:{hook.server_address[1]} by carol", "deny"), "by whom")


def test_webhook_forged(t):
    """No answer counts that is not signed with the key for this question: unsigned, another key,
    what ward itself sent, another question's, cut off, or not an answer."""
    old = {}

    def decide(q, times):
        yes = body_of(q, "run")
        old.setdefault("answer", (sign(q, yes), yes))
        stamp = b"1"
        return [(200, None, yes), (200, sign(q, yes, b"another key of 16 bytes"), yes),
                (200, "v1=" + hmac.new(KEY, stamp + b"." + yes, hashlib.sha256).hexdigest(), yes),
                (200, old["answer"][0], old["answer"][1]),
                (200, sign(q, yes), yes[:-1]), (200, sign(q, yes + b" x"), yes + b" x"),
                (200, sign(q, b"{}"), b"{}"), (500, sign(q, yes), yes), (302, sign(q, yes), yes),
                (200, "v1=" + "0" * 63, yes)][q["port_of_test"] if "port_of_test" in q else
                                             int(q["host"][1])]
    hook = Hook(t, decide)
    box, ws = start(t, timeout=20)
    process, key = open_hook(t, hook)
    hosts = [f"h{i}.test" for i in range(10)]
    old_first = connect(t, box, ws, hosts[0])
    t.wait_until(lambda: len(hook.seen) >= 1, 20, "the first")
    waiting = [old_first] + [connect(t, box, ws, host) for host in hosts[1:]]
    t.wait_until(lambda: len({q["host"] for q in hook.seen}) == 10, 20, "all are sent")
    time.sleep(0.5)
    t.equal(len(questions(t)), 10, "all still wait")
    t.equal(answers(t, box), [], "nobody answered")
    for process in waiting:
        process.terminate()
    r = t.ward("approve", "--webhook", hook.url())
    t.equal(r.rc, 2, "without a key")
    os.chmod(key, 0o644)
    r = t.ward("approve", "--webhook", hook.url(), "--key", key)
    t.equal(r.rc, 125, "a key that others can read")
    t.contains(r.err, "chmod 600", "the remedy")
    os.chmod(key, 0o600)
    r = t.ward("approve", "--webhook", "ftp://x", "--key", key)
    t.contains(r.err, "not a URL", "another scheme")


def test_notified(t):
    """ward run --notify tells of a question."""
    directory, log = t.fresh_dir("bin"), os.path.join(t.fresh_dir("log"), "calls")
    t.write(directory, {"notify-send": f"#!/bin/sh\nprintf '%s|' \"$@\" >>{log}\necho >>{log}\n"})
    os.chmod(os.path.join(directory, "notify-send"), 0o755)
    ws = t.workspace({"ask.py": ASK})
    process = t.popen(t.ward_argv("run", "--notify", "--ask", "--", "/usr/bin/python3", "ask.py",
                                  "a.test"), cwd=ws,
                      env={"PATH": f"{directory}:/usr/bin:/bin:/usr/sbin"})
    q = asked(t)
    t.wait_until(lambda: "a question waits" in (t.read(log) or ""), 20, "no notification")
    t.contains(t.read(log), "python3 asks for a.test:443; ward approve", "its text")
    t.equal(t.ward("approve", q["id"], "--deny").rc, 0, "the answer")
    process.communicate(timeout=30)
