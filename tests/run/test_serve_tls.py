"""ward serve --tls-dir: TLS in a process of its own, which has the key and reads no HTTP
(docs/serve.md), and the way in which the stock SDKs find sandboxes by host names."""
import http.client
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import time

from harness import users
from harness.serve import Server, messages, sdk

DOMAIN = "ward.test"
# names below the domain are this machine: as wildcard DNS would have it
NODE_DNS = """
const dns = require('dns'), lookup = dns.lookup
dns.lookup = (name, options, done) => {
  if (!name.endsWith('.ward.test')) return lookup(name, options, done)
  if (typeof options === 'function') { done = options; options = {} }
  options && options.all ? done(null, [{address: '127.0.0.1', family: 4}])
                         : done(null, '127.0.0.1', 4)
}
"""
NODE = """
import { Sandbox } from 'e2b'
import assert from 'node:assert'
const box = await Sandbox.create()
assert.equal((await box.commands.run('echo hello')).stdout, 'hello\\n')
await box.files.write('/home/user/a.txt', 'by name')
assert.equal(await (await fetch(await box.downloadUrl('/home/user/a.txt'))).text(), 'by name')
await box.commands.run('cd /home/user; python3 -m http.server 8123', { background: true })
assert.equal(box.getHost(8123), `8123-${box.sandboxId}.${process.env.E2B_DOMAIN}`)
let text = ''
for (let i = 0; i < 100 && text != 'by name'; i++) {
  const r = await fetch(`https://${box.getHost(8123)}/a.txt`).catch(() => null)
  text = r && r.ok ? await r.text() : ''
  await new Promise(done => setTimeout(done, 50))
}
assert.equal(text, 'by name')
await box.kill()
console.log('all fine')
"""


def certificate(t, directory, authority=None):
    """A wildcard certificate and its key in the directory; returns the file of its authority."""
    def openssl(*args):
        t.equal(subprocess.run(["openssl", *args], cwd=directory, capture_output=True).returncode,
                0)

    name = os.path.join(directory, "ca")
    if not authority:
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", name + ".key", "-out", name + ".pem", "-days", "2", "-subj", "/CN=ca",
                "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign")
        authority = name
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            "key.new", "-out", "csr.pem", "-subj", f"/CN={DOMAIN}")
    with open(os.path.join(directory, "ext"), "w") as f:
        f.write(f"subjectAltName=DNS:{DOMAIN},DNS:*.{DOMAIN},IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "csr.pem", "-CA", authority + ".pem", "-CAkey",
            authority + ".key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out",
            "cert.new")
    os.chmod(os.path.join(directory, "key.new"), 0o600)
    for what in ("cert", "key"):
        os.rename(os.path.join(directory, what + ".new"), os.path.join(directory, what + ".pem"))
    return authority


def client_certificate(t):
    """A directory with cert.pem and key.pem of a client, and the name of its authority's files."""
    directory = t.fresh_dir("client")
    return directory, certificate(t, directory)


class TlsServer(Server):
    def __init__(self, t, *options, before=(), clients=None):
        self.directory = t.fresh_dir("tls")
        self.authority = certificate(t, self.directory)
        if clients:
            shutil.copy(clients, os.path.join(self.directory, "clients.pem"))
            options += ("--tls-clients",)
        self.trust = ssl.create_default_context(cafile=self.authority + ".pem")
        super().__init__(t, "--tls-dir", self.directory, *options, before=before)

    def connection(self, timeout=30):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                           context=self.trust)

    def serial(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            with self.trust.wrap_socket(s, server_hostname="x." + DOMAIN) as c:
                return c.getpeercert()["serialNumber"]

    def tls_process(self):
        for pid in self.children():
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() == "wardd-tls":
                    return pid
        return None


def test_serve_tls(t):
    s = TlsServer(t)
    t.equal(s.ask("GET", "/healthz", key=False).json, {"status": "ok"})
    box = s.create()
    t.equal(len(box.sh("head -c 3000000 /dev/zero | tr '\\0' x")[1]), 3000000)
    big = os.urandom(5_000_000)
    r = box.ask("POST", "/files?path=/tmp/big", big, **{"Content-Type": "application/octet-stream"})
    t.equal(r.status, 200)
    t.equal(box.ask("GET", "/files?path=/tmp/big").body == big, True)
    # a killed sandbox breaks its streams off: no end of HTTP comes
    c, r = box.start("/bin/sleep", "60")
    events = messages(r)
    next(events)
    box.kill()
    t.equal(list(events), [])
    c.close()
    # the client's address comes with the connection
    events = s.ask("GET", "/ward/v1/audit").json["events"]
    t.equal({e["source"] for e in events}, {"127.0.0.1"})
    # HTTP without TLS is no HTTP here
    with socket.create_connection(("127.0.0.1", s.port), timeout=30) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            said = plain.recv(4096)
        except ConnectionResetError:
            said = b""
        t.equal(b"HTTP/1.1" in said, False)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    for protocols, chosen in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1")):
        old.set_alpn_protocols(protocols)
        with socket.create_connection(("127.0.0.1", s.port), timeout=30) as raw:
            with old.wrap_socket(raw) as c:
                t.equal((c.selected_alpn_protocol(), c.version() >= "TLSv1.2"), (chosen, True))


def test_serve_tls_reload(t):
    """SIGHUP takes a new certificate; a bad one is not taken; connections go on."""
    s = TlsServer(t)
    first = s.serial()
    kept = s.connection()
    kept.request("GET", "/healthz")
    kept.getresponse().read()
    certificate(t, s.directory, s.authority)
    t.equal(s.serial(), first)
    s.process.send_signal(signal.SIGHUP)
    s.wait_log("the certificate was read again")
    second = s.serial()
    t.equal(second != first, True)
    kept.request("GET", "/healthz")
    t.equal(kept.getresponse().status, 200)
    for name, text in (("cert.pem", "no certificate"), ("key.pem", "no key")):
        path = os.path.join(s.directory, name)
        with open(path) as f:
            before = f.read()
        with open(path, "w") as f:
            f.write(text)
        at = s.log().count("the old certificate stays")
        s.process.send_signal(signal.SIGHUP)
        t.wait_until(lambda: s.log().count("the old certificate stays") > at, 20)
        t.equal(s.serial(), second)
        with open(path, "w") as f:
            f.write(before)


def test_serve_tls_bad_directory(t):
    directory = t.fresh_dir("tls")
    state = t.fresh_dir("state")
    start = ("serve", "--state", state, "--listen", "127.0.0.1:0", "--tls-dir", directory)
    r = t.ward(*start)
    t.equal(r.rc, 2)
    t.contains(r.err, "key.pem")
    certificate(t, directory)
    os.chmod(os.path.join(directory, "key.pem"), 0o644)
    r = t.ward(*start)
    t.equal(r.rc, 2)
    t.contains(r.err, "everybody may read")
    t.contains(r.err, "chmod 600")
    r = t.ward("serve", "--state", state, "--listen", "0.0.0.0:0")
    t.equal(r.rc, 2)
    t.contains(r.err, "--tls-dir")


def test_serve_tls_clients(t):
    """With --tls-clients the handshake is for clients with a certificate; they need a key too."""
    known, authority = client_certificate(t)
    foreign, _ = client_certificate(t)
    s = TlsServer(t, clients=authority + ".pem")

    def ask(directory, path="/healthz"):
        trust = ssl.create_default_context(cafile=s.authority + ".pem")
        if directory:
            trust.load_cert_chain(os.path.join(directory, "cert.pem"),
                                  os.path.join(directory, "key.pem"))
        c = http.client.HTTPSConnection("127.0.0.1", s.port, timeout=30, context=trust)
        try:
            c.request("GET", path)
            return c.getresponse().status
        except (ssl.SSLError, ConnectionError):
            return None
        finally:
            c.close()

    t.equal([ask(d) for d in (None, foreign, known)], [None, None, 200])
    t.equal(ask(known, "/v2/sandboxes"), 401)
    # what SIGHUP reads counts for the next connection
    shutil.copy(os.path.join(foreign, "ca.pem"),
                os.path.join(s.directory, "clients.pem"))
    s.process.send_signal(signal.SIGHUP)
    s.wait_log("the certificate was read again")
    t.equal([ask(d) for d in (None, foreign, known)], [None, 200, None])
    # an empty list of authorities is none that counts
    with open(os.path.join(s.directory, "clients.pem"), "w"):
        pass
    s.process.send_signal(signal.SIGHUP)
    s.wait_log("the old certificate stays")
    t.equal([ask(d) for d in (None, foreign, known)], [None, 200, None])
    r = t.ward("serve", "--listen", "127.0.0.1:0", "--tls-clients", "--state", t.fresh_dir("s"))
    t.equal(r.rc, 2)
    t.contains(r.err, "--tls-dir")
    r = t.ward("serve", "--listen", "127.0.0.1:0", "--tls-clients", "--tls-dir", known, "--state",
               t.fresh_dir("s"))
    t.equal(r.rc, 2)
    t.contains(r.err, "clients.pem")


def test_serve_tls_hostile(t):
    """Garbage, half handshakes and floods of them hold nobody up, and end nothing."""
    s = TlsServer(t)
    # more of them than there are descriptors
    resource.prlimit(s.tls_process(), resource.RLIMIT_NOFILE, (150, 16384))
    held = []
    for n in range(200):
        c = socket.create_connection(("127.0.0.1", s.port), timeout=30)
        c.sendall((b"\x16\x03\x01\x02\x00\x01", os.urandom(2000), b"\x80\x2e\x01", b"")[n % 4])
        held.append(c)
    begin = time.monotonic()
    t.equal(s.ask("GET", "/healthz", key=False).status, 200)
    t.equal(time.monotonic() - begin < 5, True)
    for c in held:
        c.close()
    # cut off in the middle of a request and of an answer
    for size in (1, 100):
        raw = socket.create_connection(("127.0.0.1", s.port), timeout=30)
        c = s.trust.wrap_socket(raw, server_hostname="x." + DOMAIN)
        c.sendall((b"GET /ward/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 50)[:size * 40])
        os.close(c.detach())
    box = s.create()
    t.equal(box.sh("echo alive")[1], "alive\n")
    box.kill()
    s.wait_log("sandbox_gone")
    # when it is killed, the server ends, and does not go on without TLS
    os.kill(s.tls_process(), signal.SIGKILL)
    s.process.wait(30)
    s.wait_log("tls_ended")


def test_serve_tls_makes_room(t):
    """Where descriptors are short, clients that ask nothing give way to those that do."""
    s = TlsServer(t, before=("prlimit", "--nofile=256:256"))
    held = []
    for n in range(180):
        c = socket.create_connection(("127.0.0.1", s.port), timeout=30)
        held.append(c if n % 3 else s.trust.wrap_socket(c, server_hostname="x." + DOMAIN))
        if n % 60 == 59:
            begin = time.monotonic()
            t.equal(s.ask("GET", "/healthz", key=False).status, 200)
            t.equal(time.monotonic() - begin < 5, True)
    box = s.create()
    t.equal(box.sh("echo alive")[1], "alive\n")
    for c in held:
        c.close()


def test_serve_tls_rights(t):
    """The process with the key has no registry and no file but the certificate's; the front has no
    descriptor of the key and does not listen."""
    s = TlsServer(t)
    pid = s.tls_process()
    with users.as_root() if users.IS_ROOT else open(os.devnull):
        with open(f"/proc/{pid}/status") as f:
            status = f.read()
        t.contains(status, "Seccomp:\t2")
        t.contains(status, "NoNewPrivs:\t1")
        t.equal(re.search(r"CapEff:\t(\w+)", status)[1], "0" * 16)
        fds = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")] \
            if users.IS_ROOT else []
    t.equal([n for n in fds if "registry" in n or s.state in n or "key" in n], [])


def test_serve_tls_npm_domain(t):
    place = sdk(t, "npm")
    s = TlsServer(t)
    work = t.fresh_dir("js")
    os.symlink(os.path.join(place, "node_modules"), os.path.join(work, "node_modules"))
    for name, text in (("dns.cjs", NODE_DNS), ("t.mjs", NODE)):
        with open(os.path.join(work, name), "w") as f:
            f.write(text)
    r = t.run("node", "-r", "./dns.cjs", "t.mjs", cwd=work, timeout=60, env={
        "E2B_DOMAIN": f"{DOMAIN}:{s.port}", "E2B_API_KEY": s.key,
        "NODE_EXTRA_CA_CERTS": s.authority + ".pem"})
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))
