"""Ways around the names that a policy allows, each tried from inside against real servers: none of
them gets there."""
import os
import shutil

from harness.world import World, policy

RULES = ["web.test", "web.test:80", {"host": "web.test", "ports": [8443], "mode": "splice"},
         "*.web.test", "m\u00fcnchen.test:5432"]

SCRIPT = r"""
import socket, ssl, struct, sys
def hello(name):
    "The ClientHello that this Python would send."
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()
def with_extension(message, kind, body):
    "The same with one more extension."
    at = 5 + 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + struct.unpack(">H", message[at:at + 2])[0]
    at += 1 + message[at]
    extensions = message[at + 2:] + struct.pack(">HH", kind, len(body)) + body
    inner = message[9:at] + struct.pack(">H", len(extensions)) + extensions
    return message[:3] + struct.pack(">H",
                                     len(inner) + 4) + b"\x01" + struct.pack(">I", len(inner))[
                                         1:] + inner
def open_to(host, port, before=b""):
    s = socket.create_connection((host, port), 20)
    if before:
        s.sendall(before)
        got = b""
        while b"\r\n\r\n" not in got:
            data = s.recv(1000)
            if not data:
                raise ConnectionError("ended")
            got += data
        if b" 200 " not in got.split(b"\r\n")[0] + b" ":
            raise PermissionError(got.split(b"\r\n")[0].decode())
    return s
def talk(s, *parts):
    "Sends a part, waits for an answer, sends the next; what came last."
    try:
        for part in parts:
            s.sendall(part)
            got = s.recv(65536)
            if not got:
                return "end"
        return got
    except OSError as error:
        return type(error).__name__
def whole_answer(s, question):
    s.sendall(question)
    got = b""
    while data := s.recv(65536):
        got += data
    return got
def record(r):
    "What kind of TLS record an answer is: 2 for a ServerHello."
    return "hello" if isinstance(r,
                                 bytes) and r[:1] == b"\x16" and r[
                                     5] == 2 else "alert" if isinstance(r,
                                                                        bytes) and r[
                                                                            :1] == b"\x15" else r
def whole(port, name, **more):
    context = ssl.create_default_context(cafile="ca.pem")
    context.check_hostname = False
    with context.wrap_socket(open_to(name, port), server_hostname=name) as s:
        s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        return "got" if s.recv(100) else "end"
def show(name, r):
    print("%s|%s" % (name, r if isinstance(r, str)
                     else r.split(b"\r\n")[0].decode(errors="replace")), flush=True)
"""
PASSED = ("hello", "got")


def inside(t, world, script):
    ws = t.workspace({"script.py": SCRIPT + script})
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    r = world.ward("run", "-p", policy(t, RULES), "--", "/usr/bin/python3", "script.py", cwd=ws,
                   report=True, timeout=60)
    t.equal(r.rc, 0, "exit code")
    return dict(line.split("|", 1)
                for line in r.out.splitlines()), " ".join(d["why"]
                                                          for d in r.report["denials"]), " ".join(
                                                              d["remedy"] or ""
                                                              for d in r.report["denials"])


def test_tls(t):
    """A second greeting with another name, a hidden name, another name through the proxy."""
    world = World(t)
    got, why, remedies = inside(t, world, r"""
show("retry-right", whole(8443, "web.test"))	# its server asks for another key
show("retry-same", record(talk(open_to("web.test", 8443), hello("web.test"), hello("web.test"))))
show("retry-evil", record(talk(open_to("web.test", 8443), hello("web.test"), hello("evil.test"))))
show("retry-none", record(talk(open_to("web.test", 8443), hello("web.test"), hello(None))))
show("retry-early", record(talk(open_to("web.test", 8443), hello("web.test") + hello("evil.test"))))
show("plain", record(talk(open_to("web.test", 443), hello("web.test"))))
show("ech", record(talk(open_to("web.test", 443), with_extension(hello("web.test"), 0xfe0d, bytes(100)))))
show("other", record(talk(open_to("web.test", 443), with_extension(hello("web.test"), 0x3333, bytes(100)))))
wide = hello("wxxeb.test").replace(b"wxxeb", b"\xef\xbd\x97eb")	# a wide w, which is one in other spellings of names
show("wide", record(talk(open_to("web.test", 443), wide)))
show("wide-host", talk(open_to("web.test", 80), b"GET / HTTP/1.1\r\nHost: \xef\xbd\x97eb.test\r\n\r\n"))
connect = b"CONNECT web.test:443 HTTP/1.1\r\nHost: web.test:443\r\n\r\n"
show("proxy-right", record(talk(open_to("127.0.0.1", 3128, connect), hello("web.test"))))
show("proxy-evil", record(talk(open_to("127.0.0.1", 3128, connect), hello("evil.test"))))
show("proxy-ssh", record(talk(open_to("127.0.0.1", 3128, connect), b"SSH-2.0-x\r\n")))
""")
    for name in ("retry-right", "retry-same", "plain", "other", "proxy-right"):
        t.check(got[name] in PASSED or (name == "retry-same" and got[name] == "alert"),
                f"{name}: {got[name]}")
    t.check("200" not in got["wide-host"], f"a host that no server knows: {got['wide-host']}")
    for name in ("retry-evil", "retry-none", "ech", "proxy-evil", "proxy-ssh", "wide"):
        t.check("Reset" in got[name] or got[name] == "end", f"{name}: {got[name]}")
    # the first of the two may have been answered before the second was looked at
    t.check(got["retry-early"] != "alert", f"retry-early: {got['retry-early']}")
    t.equal([line for line in world.log() if line.startswith("tls evil")], [],
            "names that came out")
    for part in ("names a different server", "has no server name", "encrypts its server name",
                 "not TLS"):
        t.contains(why, part, "reasons")
    t.contains(remedies, "turn ECH off in the program, or set mode: inspect in the rule for "
               "web.test:443", "the way out for a hidden name")


def test_proxy_spellings(t):
    """What a proxy is asked for is one name or address in its usual form, or nothing."""
    world = World(t)
    got, _, _ = inside(t, world, r"""
def ask(target):
    try:
        open_to("127.0.0.1", 3128, b"CONNECT %s HTTP/1.1\r\n\r\n" % target).close()
        return "open"
    except OSError as error:
        return str(error)
for target in (b"WEB.test.:443", b"web.test:443", b"web.test.evil.test:443", b"evil.test:443",
               b"0xc0.0.2.10:443", b"3221225994:443",
               b"192.0.2.10:443", b"web.test@evil.test:443", b"evil.test@web.test:443",
               b"[::ffff:127.0.0.1]:443", b"w\xd0\xb5b.test:443",
               b"web.test:444", b"www.web.test:443", b"web.test"):
    show(target.decode(), ask(target))
def socks(name, command=1):
    s = socket.create_connection(("127.0.0.1", 1080), 20)
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(bytes([5, command, 0, 3, len(name)]) + name + struct.pack(">H", 443))
    got = s.recv(10)
    return str(got[1]) if got else "end"
show("socks", socks(b"Web.Test"))
show("socks-nul", socks(b"web.test\0.evil.test"))
show("socks-bind", socks(b"web.test", 2))
show("socks-udp", socks(b"web.test", 3))
show("socks-evil", socks(b"evil.test"))
""")
    for name in ("WEB.test.:443", "web.test:443", "www.web.test:443"):
        t.equal(got.pop(name), "open", name)
    t.equal(got.pop("socks"), "0", "SOCKS with another case")
    for name, answer in got.items():
        t.check(answer != "open" and answer != "0", f"{name}: {answer}")
    log = world.log()
    t.check(not any("203.0.113.5" in line for line in log), f"evil.test was reached: {log}")


def test_http_tunnels(t):
    """A websocket may begin; what is no HTTP any more otherwise may not; names in other scripts are
    the same names."""
    world = World(t)
    got, why, _ = inside(t, world, r"""
upgrade = lambda to: b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n" % to
get = b"GET /two HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n"
show("h2c", str(whole_answer(open_to("web.test", 80), upgrade(b"h2c") + get).count(b"200 OK")))	# this server declines, HTTP goes on
show("preface", talk(open_to("web.test", 80), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
show("connect", talk(open_to("web.test", 80), b"CONNECT evil.test:443 HTTP/1.1\r\nHost: web.test\r\n\r\n"))
show("idn", talk(open_to("xn--mnchen-3ya.test", 5432), b"hello"))
""")
    t.equal(got["h2c"], "2", "answers to a request that asked for HTTP/2 and to the next one")
    t.check("200" not in got["preface"] and "200" not in got["connect"], f"{got}")
    t.equal(got["idn"], "hello", "a name in another script")
    t.contains(why, "not HTTP/1", "reasons")
    t.check(not any("evil" in line for line in world.log()),
            f"another host came out: {world.log()}")
