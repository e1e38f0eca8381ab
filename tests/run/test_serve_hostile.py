"""Hostile clients, and a hostile sandbox, of ward serve: contained, and the server goes on."""
import contextlib
import http.client
import json
import socket
import time

from harness import timeout
from harness.serve import Server


def raw(s, data, seconds=10):
    """Sends bytes and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", s.port), seconds) as k:
        k.settimeout(seconds)
        k.sendall(data)
        seen = b""
        try:
            while more := k.recv(65536):
                seen += more
        except (TimeoutError, ConnectionResetError):
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
