"""The network through the gateway: allowed names work for every program, everything else fails at
once and is explained."""
import os
import shutil

from harness import timeout
from harness.world import HOME, OTHER, WEB, World, attempts, denial, policy

def test_allowed_and_refused(t):
    """Names of the list are reached, the rest fails at once, and the report says which line would
    allow it."""
    world = World(t)
    got, report = attempts(t, world, "db.test 5432", "DB.Test. 5432", f"{OTHER} 7",
                           "dead-first.test 5432", "mixed.test 5432",
                           "hosted.test 5432", "evil.test 443", "web.test 25", f"{WEB} 443",
                           "8.8.8.8 53 udp", "db.test 5432 udp",
                           "nowhere.test 5432")
    for line in ("db.test 5432", "DB.Test. 5432", f"{OTHER} 7", "dead-first.test 5432",
                 "mixed.test 5432", "hosted.test 5432"):
        t.equal(got[line], "got hello", line)
    t.equal(got["evil.test 443"], "EAI_NONAME", "a name that is not listed")
    t.equal(got["web.test 25"], "ECONNREFUSED", "a port that is not listed")
    t.equal(got[f"{WEB} 443"], "ECONNREFUSED", "an address that is not listed")
    t.equal(got["8.8.8.8 53 udp"], "ECONNREFUSED", "UDP")
    t.equal(got["db.test 5432 udp"], "ECONNREFUSED", "UDP to an allowed name")
    t.equal(got["nowhere.test 5432"], "ECONNRESET", "an allowed name that does not exist")
    t.equal(denial(t, report, "name evil.test")["remedy"],
            'network.egress_allowlist: ["evil.test"]', "remedy")
    t.contains(denial(t, report, f"connection to {WEB}:443")["remedy"], f'"{WEB}:443"', "remedy")
    t.contains(denial(t, report, "connection to web.test:25")["why"], "but not this port", "why")
    t.contains(denial(t, report, "UDP to 8.8.8.8:53")["why"], "only TCP", "why")
    t.contains(denial(t, report, "connection to nowhere.test:5432")["why"], "no address", "why")
    t.equal(report["network"]["connections"], 6, "connections")
    t.check(report["network"]["bytes_in"] >= 30 and report["network"]["bytes_out"] >= 30,
            f"bytes: {report['network']}")
    t.check(not any("evil" in line for line in world.log()),
            f"something of a denied name went out: {world.log()}")
    t.check("dns hosted.test 1" not in world.log(), "a name of the host's table was asked for")


def test_forbidden_addresses(t):
    """What an allowed name resolves to is checked: private, loopback, metadata and the host's own
    are refused."""
    world = World(t)
    names = ("private.test 5432", "loop.test 5432", "home.test 5432", "metadata.test 5432")
    got, report = attempts(t, world, *names)
    for line in names:
        t.equal(got[line], "ECONNRESET", line)
    for name, word in (("private.test:5432", "private"), ("loop.test:5432", "loopback"),
                       ("home.test:5432", "an address of this host"),
                       ("metadata.test:5432", "metadata")):
        t.contains(denial(t, report, f"connection to {name}")["why"], word, name)
    t.check(not any(line.startswith("tcp ") for line in world.log()),
            f"a server was reached: {world.log()}")
    got, _ = attempts(t, world, "private.test 5432", "10.99.0.5 5432",
                      rules=[{"host": "private.test", "ports": [5432], "private": True},
                             {"host": "10.99.0.0/16", "ports": [5432], "private": True}])
    t.equal(set(got.values()), {"got hello"}, "private: true")


def test_rebinding(t):
    """A name that is public when asked first and private later: each connection is checked anew."""
    world = World(t, {"turn.test": [[OTHER], ["10.99.0.5"], ["127.0.0.1"]]})
    got, _ = attempts(t, world, "turn.test 5432", "turn.test  5432", "turn.test   5432",
                      rules=["turn.test:5432"])
    t.equal([got[k] for k in sorted(got, key=len)], ["got hello", "ECONNRESET", "ECONNRESET"],
            "the three turns")


def test_mode_open(t):
    """open reaches every public name and address, still no private one, and says so."""
    world = World(t)
    got, _ = attempts(t, world, "evil.test 5432", f"{OTHER} 7", "private.test 5432",
                      "10.99.0.5 5432", "169.254.169.254 80",
                      f"{HOME} 5432", "8.8.8.8 53 udp", rules=[], mode="open")
    t.equal(got["evil.test 5432"], "got hello", "a public name")
    t.equal(got[f"{OTHER} 7"], "got hello", "a public address")
    for line in ("private.test 5432", "10.99.0.5 5432", "169.254.169.254 80", f"{HOME} 5432",
                 "8.8.8.8 53 udp"):
        t.check(got[line] in ("ECONNRESET", "ECONNREFUSED"), f"{line}: {got[line]}")


CLIENTS = {
    "curl": "curl -sS --cacert ca.pem https://web.test/ && curl -sS http://web.test/",
    "wget": "wget -q --ca-certificate=ca.pem -O- https://web.test/ && wget -q -O- http://web.test/",
    "python3": "python3 -c \"import ssl, urllib.request as u; c = "
    "ssl.create_default_context(cafile='ca.pem'); "
               "print(u.urlopen('https://www.web.test/', context=c).read().decode(), "
    "u.urlopen('http://web.test/').read().decode())\"",
    "openssl": "printf 'GET / HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n' | openssl s_client -quiet "
    "-verify_return_error -CAfile ca.pem "
               "-servername web.test -connect web.test:443 2>/dev/null",
    "node": "NODE_EXTRA_CA_CERTS=ca.pem node -e \"fetch('https://web.test/').then(r => "
    "r.text()).then(console.log)\"",
    "busybox": "busybox wget -q -O- http://web.test/",
    "git": "git -c http.sslCAInfo=$PWD/ca.pem clone -q https://web.test/repo.git there && cat "
    "there/README",
    "perl": "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(\"web.test:80\") or die; "
    "print $s "
            "\"GET / HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n\"; print <$s>'",
}


@timeout(120)
def test_programs(t):
    """Whatever program, without a proxy variable."""
    world = World(t)
    repo = t.git_repo({"README": "hello from git\n"})
    t.run("git", "clone", "-q", "--bare", repo, os.path.join(world.dir, "repo.git"), check=True)
    t.run("git", "-C", os.path.join(world.dir, "repo.git"), "update-server-info", check=True)
    ws = t.workspace()
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    script = "".join(f"echo; echo '== {name}'; if command -v {name} >/dev/null; then {line} || "
                     "echo failed $?; else echo absent; fi\n"
                     for name, line in CLIENTS.items())
    r = world.ward("run", "-p", policy(t), "--", "/bin/sh", "-c", script, cwd=ws, timeout=100,
                   report=True)
    t.equal(r.rc, 0, "exit code")
    for part in r.out.split("== ")[1:]:
        name, text = part.split("\n", 1)
        t.check("hello from" in text or text.strip() == "absent", f"{name}: {text} {r.err}")
    t.equal([d for d in r.report["denials"] if d["what"].startswith(("name", "connection"))], [],
            "denials")


def test_server_first(t):
    """A server that speaks first (ssh and its like), over an explicit port."""
    world = World(t)
    ws = t.workspace()
    script = ("import socket; s = socket.create_connection(('db.test', 22), 10); "
              "print(s.recv(100).decode())")
    r = world.ward("run", "-p", policy(t), "--", "/usr/bin/python3", "-c", script, cwd=ws)
    t.contains(r.out, "SSH-2.0-first", "greeting")


BULK = r"""
import hashlib, socket, threading
block = hashlib.sha256(b"ward").digest() * 2048
def down(n):
    s = socket.create_connection(("db.test", 5432), 20)
    s.sendall(b"SIZE %d\n" % n)
    h, got = hashlib.sha256(), 0
    while data := s.recv(1 << 16):
        h.update(data)
        got += len(data)
    want = hashlib.sha256()
    for at in range(0, n, len(block)):
        want.update(block[:min(len(block), n - at)])
    assert got == n and h.digest() == want.digest(), got
def both(n):
    s = socket.create_connection(("db.test", 5432), 20)
    sent = hashlib.sha256()
    def up():
        for i in range(n):
            data = hashlib.sha256(b"%d" % i).digest() * 1024
            sent.update(data)
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=up)
    t.start()
    back = hashlib.sha256()
    while data := s.recv(1 << 16):
        back.update(data)
    t.join()
    assert back.digest() == sent.digest()
down(20 << 20)
both(300)
many = [threading.Thread(target=down, args=(10000 + i,)) for i in range(60)]
for t in many: t.start()
for t in many: t.join()
idle = [socket.create_connection(("db.test", 5432), 20) for _ in range(100)]
for s in idle: s.sendall(b"x")
for s in idle: assert s.recv(1) == b"x"
for s in idle: s.shutdown(socket.SHUT_WR)
for s in idle: assert s.recv(1) == b""
for n in [1, 1000, 65536, 65537, 200000] * 8:    # the last bytes and the end at once
    s = socket.create_connection(("db.test", 5432), 20)
    word = b"last" * (n // 4) + b"." * (n % 4)
    threading.Thread(target=lambda: (s.sendall(word), s.shutdown(socket.SHUT_WR))).start()
    back = b""
    while data := s.recv(1 << 16):
        back += data
    assert back == word, (n, len(back))
print("good")
"""


@timeout(90)
def test_bytes(t):
    """Much, both ways, many at a time, half-closed, ended at once: every byte arrives, and only
    those."""
    world = World(t)
    ws = t.workspace({"bulk.py": BULK})
    r = world.ward("run", "-p", policy(t), "--", "/usr/bin/python3", "bulk.py", cwd=ws, timeout=80,
                   report=True)
    t.contains(r.out, "good", "bulk transfer")
    t.check(r.report["network"]["bytes_in"] > (20 << 20), f"counted: {r.report['network']}")


def test_detached(t):
    """A detached sandbox reaches the same names, its supervisor confined or not, the first time and
    later."""
    from harness import boxes
    from harness.world import TRY
    world = World(t)
    ws = t.workspace({"try.py": TRY})
    t.defer(boxes.clean, t)
    r = world.ward("run", "-d", "--name", "netbox", "-p", policy(t), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    pid = boxes.supervisor(t, r.out.strip())
    for _ in range(2):
        r = t.ward("exec", "netbox", "/usr/bin/python3", "try.py", "db.test 5432", "evil.test 443",
                   timeout=60)
        t.contains(r.out, "db.test 5432 -> got hello", "an allowed name")
        t.contains(r.out, "evil.test 443 -> EAI_NONAME", "another name")
    t.wait_until(lambda: "Seccomp:\t2" in boxes.look(t, f"/proc/{pid}/status"), 20,
                 "the supervisor is not confined")


LEAVE = """
import re, socket
server = socket.create_server(("127.0.0.1", 7003), backlog=64)
for _ in range(1500):
    client = socket.create_connection(("127.0.0.1", 7003))
    accepted, _ = server.accept()
    accepted.close()    # who ends first waits
    client.recv(1)
    client.close()
print(re.search(r"tw (\\d+)", open("/proc/net/sockstat").read())[1])
"""


def test_ended_connections(t):
    """Connections that have ended do not pile up in the kernel."""
    r = t.ward("run", "-p", policy(t, ["web.test"]), "--", "/usr/bin/python3", "leave.py",
               cwd=t.workspace({"leave.py": LEAVE}))
    t.equal(r.rc, 0, f"the program ({r.err})")
    t.check(0 < int(r.out) <= 1024, f"{r.out} are waiting")
