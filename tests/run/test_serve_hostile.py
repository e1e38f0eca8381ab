"""Hostile clients, and a hostile sandbox, of ward serve: contained, and the server goes on."""
import contextlib
import http.client
import json
import os
import socket
import threading
import time

from harness import by_turns, serial, timeout
from harness.serve import messages, Server


def raw(s, data, seconds=10):
    """Sends bytes and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", s.port), seconds) as k:
        k.settimeout(seconds)
        seen = b""
        try:
            k.sendall(data)
            while more := k.recv(65536):
                seen += more
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
        return seen


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


BAD_HEADS = (
    b"\x00\x01\x02\x03\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    b"GET http://other/ HTTP/1.1\r\nHost: a\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n")


def test_serve_hostile_heads(t):
    s = Server(t)
    for head in BAD_HEADS:
        answer = raw(s, head)
        t.equal((head, status(answer)), (head, 400))
        t.equal(answer.count(b"HTTP/1.1 "), 1)	# nothing behind it was read as a request
    flood = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(
        b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(5000)) + b"\r\n"
    t.equal(status(raw(s, flood)) in (431, None), True)
    t.equal(status(raw(s, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"))
            in (400, 431, None), True)
    t.equal(s.ask("GET", "/healthz", key=False).status, 200)


def test_serve_hostile_chunks(t):
    s = Server(t)
    head = (b"POST /v2/sandboxes HTTP/1.1\r\nHost: a\r\nX-API-Key: " + s.key.encode()
            + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    for body in (b"zz\r\n", b"-1\r\n", b"5;x=y\r\nhello\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n",
                 b"ffffffffffffffff\r\n", b"5\r\nhelloXX0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n"):
        answer = raw(s, head + body)
        t.equal((body, status(answer), answer.count(b"HTTP/1.1 ")), (body, 400, 1))
    big = b"%x\r\n" % 400000 + b" " * 400000 + b"\r\n0\r\n\r\n"
    t.equal(status(raw(s, head + big)) in (413, None), True)
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])


def test_serve_hostile_bodies(t):
    s = Server(t)
    for body in ("", "{", "[]", "null", "5", '"x"', '{"templateID":5}', '{"templateID":"base",}',
                 '{"templateID":"base","templateID":"base"}', '{"templateID":"a\\u0000b"}',
                 "[" * 100000, '{"templateID":"base","metadata":{"a":5}}',
                 '{"templateID":"base","metadata":[]}', '{"templateID":"base","timeout":-5}',
                 '{"templateID":"base","timeout":1e9}', '{"templateID":"base","timeout":"5"}',
                 '{"templateID":"base","timeout":99999999999999999999}',
                 '{"templateID":"base","envVars":{"A=B":"x"}}',
                 '{"templateID":"base","envVars":{"":"x"}}',
                 '{"templateID":"base","envVars":{"LD PRELOAD":"x"}}', b"\xff\xfe",
                 json.dumps({"templateID": "base", "envVars": {"A": "x" * 50000}})):
        r = s.ask("POST", "/v2/sandboxes", body)
        t.equal((body[:60], r.status, r.json["code"]), (body[:60], 400, 400))
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])
    box = s.create()
    for path in (f"/sandboxes/{box.id}/../{box.id}", f"/sandboxes/{box.id}%00",
                 f"/sandboxes/%2e%2e/{box.id}", f"/sandboxes//{box.id}", "/sandboxes/" + "a" * 3000,
                 f"/sandboxes/{box.id.upper()}"):
        r = s.ask("GET", path)
        t.equal((path[:60], r.status, r.json["code"]), (path[:60], 404, 404))
    for name, port in ((box.id, "0"), (box.id, "65536"), (box.id, "-1"), (box.id, "x"),
                       (box.id, "")):
        r = s.ask("GET", "/", key=False, headers={"E2b-Sandbox-Id": name,
                                                  "E2b-Sandbox-Port": port})
        t.equal((port, r.status), (port, 400))
    for name in ("../x", "x", box.id + "x", ""):
        r = s.ask("GET", "/", key=False, headers={"E2b-Sandbox-Id": name,
                                                  "E2b-Sandbox-Port": "8000"})
        t.equal((name, r.status), (name, 502))


def test_serve_hostile_envelopes(t):
    box = Server(t).create()
    message = b'{"process":{"cmd":"/bin/true"}}'
    for body in (b"", b"\x00", b"\x00\x00\x00\x00\x05", b"\x00\xff\xff\xff\xff" + message,
                 b"\x01" + len(message).to_bytes(4, "big") + message,
                 b"\x00" + len(message).to_bytes(4, "big") + message + b"more",
                 b"\x00\x00\x00\x00\x02[]", b"\x00\x00\x00\x00\x01{"):
        r = box.ask("POST", "/process.Process/Start", body,
                    **{"Content-Type": "application/connect+json"})
        t.equal((body[:20], r.status, r.body[:1]), (body[:20], 200, b"\x02"))
        t.equal(json.loads(r.body[5:])["error"]["code"], "invalid_argument")
    r = box.ask("POST", "/process.Process/List", b"x" * 5_000_000)
    t.equal((r.status, r.json["code"]), (429, "resource_exhausted"))
    t.equal(box.sh("echo fine")[1], "fine\n")


@timeout(120)
def test_serve_hostile_slow_clients(t):
    """Heads that never end, and answers that nobody takes, cost a connection each and no more."""
    s = Server(t)
    box = s.create()
    slow = []
    for _ in range(100):
        k = socket.create_connection(("127.0.0.1", s.port), 10)
        k.sendall(b"GET /v2/sandb")
        slow.append(k)
    box.sh("head -c 50000000 /dev/zero > /tmp/big")
    for _ in range(5):
        k = socket.create_connection(("127.0.0.1", s.port), 10)
        k.sendall((f"GET /files?path=/tmp/big HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: {box.id}\r\n"
                   f"X-Access-Token: {box.token}\r\n\r\n").encode())
        slow.append(k)
    time.sleep(0.5)
    t.equal(box.sh("echo fine")[1], "fine\n")
    front, = s.children()
    with open(f"/proc/{front}/status") as f:
        kib = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
    t.equal((kib < 200_000, kib), (True, kib))
    for k in slow:
        k.close()


def test_serve_hostile_program_answers(t):
    """What a program inside answers cannot become a second answer, or another's."""
    s = Server(t)
    box = s.create()
    answers = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nsmuggled",
               b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\nok",
               b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
               b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nxx",
               b"not http at all", b"", b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n")
    for n, answer in enumerate(answers):
        port = 9000 + n
        box.sh(f"cat > /tmp/s.py <<'E'\nimport socket\ns = socket.socket()\n"
               f"s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
               f"s.bind(('127.0.0.1', {port}))\ns.listen()\nprint('up', flush=True)\n"
               f"k, _ = s.accept()\nk.recv(65536)\nk.sendall({answer!r})\nk.close()\nE\n"
               f"setsid python3 /tmp/s.py > /tmp/up{n} 2>&1 & "
               f"while ! grep -q up /tmp/up{n}; do sleep 0.05; done")
        k = socket.create_connection(("127.0.0.1", s.port), 10)
        k.sendall((f"GET / HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: {box.id}\r\n"
                   f"E2b-Sandbox-Port: {port}\r\n\r\n"
                   "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").encode())
        seen = b""
        while more := k.recv(65536):
            seen += more
        k.close()
        t.equal((answer, b"smuggled" in seen), (answer, False))
        if n:
            t.equal((answer, status(seen)), (answer, 502))
        else:
            t.equal(seen.count(b"HTTP/1.1 "), 2)
            t.equal(seen.endswith(b'{"status":"ok"}'), True)


def test_serve_hostile_resident(t):
    """A program inside that pretends to be ward-envd harms its own sandbox only."""
    s = Server(t)
    box, other = s.create(), s.create()
    code = ("import socket, os\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "os.system('pkill -9 ward-envd')\n"
            "while True:\n"
            "    try:\n        s.bind('\\0ward-envd-1')\n        break\n"
            "    except OSError:\n        pass\n"
            "s.listen()\n"
            "while True:\n"
            "    k, _ = s.accept()\n"
            "    _, fds, _, _ = socket.recv_fds(k, 10, 2)\n"
            "    if len(fds) == 2: os.write(fds[1], os.urandom(100000))\n")
    box.ask("POST", "/files?path=/tmp/evil.py", code)
    # ward-envd is killed by its own sandbox, and somebody else takes its name
    c, _ = box.start("/bin/sh", "-c", "exec > /dev/null 2>&1; sleep 0.5; "
                     "exec python3 /tmp/evil.py", stdin=False)
    c.close()
    time.sleep(2)

    def is_noticed():
        with contextlib.suppress(OSError, http.client.HTTPException):
            box.ask("GET", "/envs")
        return "sandbox_protocol" in s.log()

    t.wait_until(is_noticed, 20)
    t.equal(other.sh("echo fine")[1], "fine\n")
    t.equal(box.kill(), 204)
    s.wait_log(f'"sandbox_gone","sandbox":"{box.id}"')


def test_serve_resident_is_killed(t):
    """Without its ward-envd a sandbox gets another one."""
    s = Server(t)
    box = s.create()
    box.ask("POST", "/files?path=/tmp/kept", b"x")
    c, _ = box.start("/bin/sh", "-c", "pkill -9 ward-envd", stdin=False)
    c.close()
    t.wait_until(lambda: box.ask("GET", "/files?path=/tmp/kept").body == b"x", 20)


def test_serve_front_dies(t):
    """If the process that reads clients dies, the server ends and says so; the next one finds the
    sandboxes."""
    s = Server(t)
    box = s.create()
    front, = s.children()
    t.run("kill", "-9", str(front), check=True)
    t.equal(s.process.wait(20) != 0, True)
    s.start()
    t.equal(box.sh("echo fine")[1], "fine\n")


def upload(box):
    """The head of a request with a body that never ends."""
    return (f"POST /files?path=/tmp/x HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: {box.id}\r\n"
            f"X-Access-Token: {box.token}\r\nContent-Type: application/octet-stream\r\n"
            "Content-Length: 500000000\r\n\r\n").encode()


def test_serve_hostile_pipe(t):
    """ward-envd dies while bytes are on their way to it: the server and the others live on."""
    s = Server(t)
    other = s.create()
    front, = s.children()
    for _ in range(3):
        box = s.create()
        going = [socket.create_connection(("127.0.0.1", s.port), 10) for _ in range(8)]
        for k in going:
            k.sendall(upload(box))
        ended = threading.Event()

        def pour(k):
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    k.sendall(bytes(20000))

        threads = [threading.Thread(target=pour, args=(k,)) for k in going]
        for thread in threads:
            thread.start()
        c, _ = box.start("/bin/sh", "-c", "sleep 0.3; pkill -9 ward-envd", stdin=False)
        c.close()
        for thread in threads:	# each is told, by the end of its connection
            thread.join(20)
        t.equal([thread.is_alive() for thread in threads], [False] * len(threads))
        ended.set()
        for k in going:
            k.close()
        t.equal(s.children(), [front])
        t.equal(other.sh("echo fine")[1], "fine\n")
        t.equal(box.kill(), 204)


# A program inside that takes ward-envd's name, and gives each request an answer of its own.
PRETENDER = r"""import os, socket, struct, sys, threading
kind = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.system("pkill -9 ward-envd")
while True:
    try:
        s.bind("\0ward-envd-1")
        break
    except OSError:
        pass
s.listen()
def serve(given, taken):
    def frame(stream, kind, body):
        os.write(taken, struct.pack("<II", stream, kind << 24 | len(body)) + body)
    seen = b""
    while more := os.read(given, 65536):
        seen += more
        while len(seen) >= 8:
            stream, second = struct.unpack("<II", seen[:8])
            size = second & 0xffffff
            if len(seen) < 8 + size:
                break
            if second >> 24 == 2:
                length = 2**64 - 1 if kind == "200" else 100
                frame(stream, 4, struct.pack("<HB5xQ", int(kind), 3, length))
                frame(stream, 5, b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled")
                frame(stream, 6, b"")
            seen = seen[8 + size:]
while True:
    k, _ = s.accept()
    _, fds, _, _ = socket.recv_fds(k, 10, 2)
    if len(fds) == 2:
        threading.Thread(target=serve, args=fds).start()
"""


def pretend(box, kind):
    box.ask("POST", "/files?path=/tmp/evil.py", PRETENDER)
    c, _ = box.start("/bin/sh", "-c", "exec > /dev/null 2>&1; sleep 0.3; "
                     f"exec python3 /tmp/evil.py {kind}", stdin=False)
    c.close()
    time.sleep(1)


@by_turns
@timeout(180)
def test_serve_hostile_statuses(t):
    """A status that has no body, and the answer to HEAD, leave no bytes for the next answer."""
    s = Server(t)
    other = s.create()
    for kind, method in (("200", "HEAD"), ("204", "GET"), ("205", "GET"), ("304", "GET")):
        box, before, seen = s.create(), s.log().count("sandbox_protocol"), b""
        pretend(box, kind)

        def is_answered():
            """By the pretender; where the true one was back first, it tries again."""
            nonlocal seen
            seen = raw(s, (f"{method} /files?path=/tmp/x HTTP/1.1\r\nHost: a\r\n"
                           f"E2b-Sandbox-Id: {box.id}\r\nX-Access-Token: {box.token}\r\n\r\n"
                           "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                           ).encode())
            if status(seen) == 404:
                pretend(box, kind)
            return (f"HTTP/1.1 {kind}".encode() in seen[:12]
                    or s.log().count("sandbox_protocol") > before)

        t.wait_until(is_answered, 40)
        t.equal((kind, b"smuggled" in seen), (kind, False))
        if kind == "200":	# nothing stands between its head and the next answer
            first, _, rest = seen.partition(b"\r\n\r\n")
            t.equal((status(first), status(rest), b"chunked" in first), (200, 200, False))
        else:
            t.equal((kind, seen), (kind, b""))
        t.equal(other.sh("echo fine")[1], "fine\n")
        t.equal(box.kill(), 204)


@serial
def test_serve_hostile_pages(t):
    """The port of the debug mode answers programs, and no page in a browser."""
    s = Server(t, "--debug")
    s.wait_log("sandbox_started")
    s.port = 49983
    for fields in ("Host: localhost:49983\r\nOrigin: http://evil.example",
                   "Host: localhost:49983\r\nOrigin: null",
                   "Host: localhost:49983\r\nSec-Fetch-Site: cross-site",
                   "Host: evil.example:49983", "Host: 192.0.2.1:49983",
                   "Host: localhost.evil.example", "Host: [::1]:49983"):
        for method, path in (("GET", "/envs"), ("OPTIONS", "/files"), ("GET", "/health"),
                             ("POST", "/files?path=/tmp/x")):
            answer = raw(s, f"{method} {path} HTTP/1.1\r\n{fields}\r\nContent-Length: 0\r\n"
                         "Connection: close\r\n\r\n".encode())
            t.equal((fields, method, path, status(answer)), (fields, method, path, 403))
            t.equal(b"Access-Control" in answer, False)
    for host in ("localhost:49983", "127.0.0.1:49983", "127.0.0.1"):
        answer = raw(s, (f"GET /envs HTTP/1.1\r\nHost: {host}\r\n"
                         "Connection: close\r\n\r\n").encode())
        t.equal((host, status(answer), b"Access-Control" in answer), (host, 200, False))


def test_serve_hostile_metadata(t):
    s = Server(t)
    for metadata, wanted in (({"a": "x" * 4000}, 201), ({"a": "x" * 4100}, 400),
                             ({str(n): "x" * 80 for n in range(60)}, 400)):
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": metadata})
        t.equal((len(str(metadata)), r.status), (len(str(metadata)), wanted))
    for count, wanted in ((16, 200), (17, 400), (5000, 400)):
        fields = "%26".join(f"k{n}%3Dv" for n in range(count))
        r = s.ask("GET", f"/v2/sandboxes?metadata={fields}")
        t.equal((count, r.status), (count, wanted if count < 5000 else r.status))
        t.equal(r.status < 500, True)


def test_serve_hostile_denies(t):
    """What a request takes away is away, whichever family it names."""
    s = Server(t)
    for denied in (["0.0.0.0/0"], ["::/0"], ["0.0.0.0/0", "::/0"]):
        box = s.create(network={"denyOut": denied})
        t.equal((denied, s.ask("GET", f"/sandboxes/{box.id}").status), (denied, 200))
    state = os.stat(os.path.join(s.state, "registry.db"))
    t.equal(oct(state.st_mode & 0o777), "0o600")


def test_serve_hostile_secrets(t):
    """A program at a port is not told what opens the server, nor the sandbox."""
    s = Server(t)
    box = s.create()
    box.sh("cat > /tmp/s.py <<'E'\nimport http.server\n"
           "class H(http.server.BaseHTTPRequestHandler):\n"
           "    def do_GET(self):\n"
           "        text = str(self.headers).encode()\n        self.send_response(200)\n"
           "        self.send_header('Content-Length', str(len(text)))\n"
           "        self.end_headers()\n        self.wfile.write(text)\n"
           "k = http.server.HTTPServer(('127.0.0.1', 8000), H)\n"
           "print('up', flush=True)\nk.serve_forever()\nE\n"
           "setsid python3 /tmp/s.py > /tmp/up 2>&1 & "
           "while ! grep -q up /tmp/up; do sleep 0.05; done")
    r = box.ask("GET", "/", port=8000, **{"X-API-Key": s.key, "X-Other": "kept",
                                          "E2b-Traffic-Access-Token": "secret-1"})
    t.equal(r.status, 200)
    told = r.body.decode()
    t.contains(told, "kept")
    t.equal([word in told for word in (s.key, box.token, "secret-1")], [False] * 3)


def test_serve_hostile_deaf(t):
    """A sandbox that reads nothing keeps the server's memory small, and nobody else waits."""
    s = Server(t)
    other = s.create()
    box = s.create()
    front, = s.children()
    c, _ = box.start("/bin/sh", "-c", "pkill -STOP ward-envd", stdin=False)
    c.close()
    going = []
    for _ in range(60):
        k = socket.create_connection(("127.0.0.1", s.port), 10)
        k.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            k.send(upload(box))
        going.append(k)
    for _ in range(40):
        for k in going:
            with contextlib.suppress(BlockingIOError, OSError):
                k.send(bytes(65536))
        time.sleep(0.02)
    with open(f"/proc/{front}/status") as f:
        kib = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
    t.equal((kib < 40_000, kib), (True, kib))
    t.equal(other.sh("echo fine")[1], "fine\n")
    for k in going:
        k.close()
    t.equal(box.kill(), 204)


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])


@timeout(60)
def test_serve_hostile_idle(t):
    """Somebody without a key opens connections and says nothing: others get theirs, what is under
    way goes on, and a server without descriptors does not spin."""
    s = Server(t, before=("prlimit", "--nofile=120:120"))
    box = s.create()
    c, r = box.start("/bin/cat", stdin=True)
    stream = messages(r)
    pid = next(stream)["event"]["start"]["pid"]
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            k = stack.enter_context(socket.create_connection(("127.0.0.1", s.port), 5))
            with contextlib.suppress(ConnectionError):	# it may be the one that has to go
                k.sendall(b"GET /healthz HTTP/1.1\r\n")
        t.equal(s.ask("GET", "/healthz", key=False, timeout=5).status, 200)
        t.equal(box.rpc("process.Process/SendInput",
                        {"process": {"pid": pid}, "input": {"stdin": "aGk="}}), (200, {}))
        t.equal(next(stream), {"event": {"data": {"stdout": "aGk="}}})
        before = sum(map(cpu_ticks, s.children()))
        time.sleep(1)
        used = sum(map(cpu_ticks, s.children())) - before
        t.equal((used, used < os.sysconf("SC_CLK_TCK") / 2), (used, True))
    c.close()


def test_serve_hostile_pipeline(t):
    """Many requests at once, all of which are refused: each gets its answer."""
    s = Server(t)
    box = s.create()
    one = (f"GET /process.Process/List HTTP/1.1\r\nHost: 49983-{box.id}.a\r\n"
           f"X-Access-Token: {box.token}\r\n\r\n").encode()
    held = []
    for _ in range(520):	# more streams than a sandbox has
        k = socket.create_connection(("127.0.0.1", s.port), 10)
        k.sendall((f"POST /process.Process/List HTTP/1.1\r\nHost: 49983-{box.id}.a\r\n"
                   f"X-Access-Token: {box.token}\r\nContent-Length: 9\r\n\r\n").encode())
        held.append(k)
    time.sleep(0.2)
    count = 400
    with socket.create_connection(("127.0.0.1", s.port), 10) as k:
        k.sendall(one * count)
        seen = b""
        while seen.count(b"HTTP/1.1 429") < count:
            more = k.recv(65536)
            if not more:
                break
            seen += more
    t.equal(seen.count(b"HTTP/1.1 429"), count)
    for k in held:
        k.close()


def test_serve_hostile_polling(t):
    """Who asks for a sandbox's numbers without a pause holds up nobody who works with it, and no
    request is refused for it."""
    s = Server(t)
    box = s.create()
    stop = threading.Event()
    bad = []

    def poll():
        while not stop.is_set():
            r = s.ask("GET", f"/sandboxes/{box.id}/metrics")
            if r.status != 200 or len(r.json) != 1:
                bad.append(r)

    threads = [threading.Thread(target=poll) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
        t.equal(s.ask("POST", f"/sandboxes/{box.id}/connect", {}).status, 201)
        t.equal(box.ask("GET", "/envs").status, 200)	# the first one needs a new link
    stop.set()
    for thread in threads:
        thread.join()
    t.equal(bad, [])
