"""A small internet for tests of the network: two namespaces with a cable between them.

`World(t)` makes a *home* namespace, in which ward runs (its only way out is the cable, its resolver
is the world's), and a *world* namespace with the servers of world_servers.py: DNS, TLS and plain
HTTP, echo. Addresses are of the documentation ranges, which count as public. `world.ward(...)` is
t.ward() at home. Everything dies with the test.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

from . import users

HERE = os.path.dirname(os.path.abspath(__file__))
SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "192.0.2.1"
DNS = "192.0.2.53"
WEB, OTHER, THIRD = "192.0.2.10", "198.51.100.10", "203.0.113.5"
PRIVATE, METADATA = "10.99.0.5", "169.254.169.254"
NAMES = {
    "web.test": [WEB], "www.web.test": [WEB], "other.test": [OTHER], "db.test": [OTHER],
    "evil.test": [THIRD],
    "dead-first.test": ["198.51.100.99", WEB],	# the first address answers nobody
    "private.test": [PRIVATE], "loop.test": ["127.0.0.1"], "home.test": [HOME],
    "metadata.test": [METADATA],
    "mixed.test": [PRIVATE, WEB],
    "xn--mnchen-3ya.test": [WEB],
}


RULES = ["web.test", "web.test:80", "*.web.test", "db.test:5432", "db.test:22", f"{OTHER}:7",
         "dead-first.test:5432",
         "private.test:5432", "loop.test:5432", "home.test:5432", "metadata.test:5432",
         "mixed.test:5432", "hosted.test:5432",
         "nowhere.test:5432"]


class World:
    """The two namespaces of one test. names: name -> list of addresses, over NAMES; certified:
    those of them that the servers' certificate is for as well."""

    def __init__(self, t, names=None, resolvers=1, certified=()):
        if not users.IS_ROOT:
            t.skip("network namespaces with a cable need root")
        self.t = t
        self.dir = t.fresh_dir("world")
        self.log_path = os.path.join(self.dir, "log")
        self.world = self._namespace()
        self.home = self._namespace()
        self._cable()
        self.certificates = certificates(t, certified)
        self._settings({**NAMES, **(names or {})}, resolvers)
        self.server = t.popen(["nsenter", "-t", str(self.world), "-n", sys.executable,
                               os.path.join(HERE, "world_servers.py"), self.dir, self.certificates],
                              root=True)
        t.wait_until(lambda: os.path.exists(os.path.join(self.dir, "ready")), 20,
                     "the world's servers do not start")

    def _namespace(self):
        process = self.t.popen(["unshare", "-n", "-m", "sleep", "1000"], root=True)
        mine = os.readlink("/proc/self/ns/mnt")
        with self.t.root():
            self.t.wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/mnt") != mine and
                              open(f"/proc/{process.pid}/comm").read() == "sleep\n", 10)
        return process.pid

    def _cable(self):
        """Few processes, for most tests of the network have a world of their own."""
        ip = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")
        home, world = f"h{self.home}", f"w{self.home}"
        self.t.run(ip, "link", "add", home, "netns", str(self.home), "type", "veth", "peer", "name",
                   world, "netns", str(self.world), root=True, check=True)
        addresses = ("192.0.2.254", DNS, WEB, OTHER, THIRD, PRIVATE, METADATA)
        for pid, lines in ((self.home, ["link set lo up", f"addr add {HOME}/24 dev {home}",
                                        f"link set {home} up",
                                        "route add default via 192.0.2.254"]),
                           (self.world, ["link set lo up", f"link set {world} up",
                                         *(f"addr add {a}/24 dev {world}" for a in addresses)])):
            self.t.run("nsenter", "-t", str(pid), "-n", ip, "-batch", "-", root=True, check=True,
                       input="".join(f"{line}\n" for line in lines))

    def _settings(self, names, resolvers):
        self.t.write(self.dir,
                     {"names.json": json.dumps(names),
                      "resolv.conf": f"nameserver {DNS}\n" * resolvers,
                      "hosts": f"127.0.0.1 localhost\n{OTHER} hosted.test\n", "log": ""})
        for name in ("resolv.conf", "hosts"):
            os.chmod(os.path.join(self.dir, name), 0o644)
        self.t.run("nsenter", "-t", str(self.home), "-m", "sh", "-ec",
                   "for n in resolv.conf hosts; do mount --bind \"$0/$n\" \"/etc/$n\"; done",
                   self.dir, root=True, check=True)

    # -- use

    def wrap(self, cwd):
        """The beginning of a command line that runs at home in cwd (as root: ward_argv() drops
        rights behind it)."""
        return ["nsenter", "-t", str(self.home), "-n", "-m", "sh", "-c",
                'cd "$0" && exec "$@"', cwd]

    def ward(self, *args, cwd, **options):
        """t.ward() at home."""
        return self.t.ward(*args, cwd=cwd, wrap=self.wrap(cwd), **options)

    def run(self, *argv, cwd, **options):
        """A program at home, outside of any sandbox."""
        return self.t.run(*self.wrap(cwd), *users.setpriv(self.t.person), *argv, root=True,
                          **options)

    def log(self):
        """What the servers saw, a list of lines: "dns NAME TYPE", "tcp ADDRESS PORT", "tls NAME",
        "http HOST PATH"."""
        return (self.t.read(self.log_path) or "").splitlines()


def need(t, *programs):
    """The paths of programs, or the test is skipped."""
    found = [shutil.which(name, path=SBIN) for name in programs]
    for name, path in zip(programs, found):
        if not path:
            t.skip(f"there is no {name} here")
    return found


def serve(t, world, argv, port, root=True):
    """Starts a server in the world; waits until it listens."""
    wrap = ["nsenter", "-t", str(world.world), "-n", "-m"]
    if not root:
        wrap += ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    process = t.popen([*wrap, *argv], root=True)
    probe = ["nsenter", "-t", str(world.world), "-n", "sh", "-c",
             f"ss -Htln 'sport = :{port}' | grep -q ."]
    for _ in range(200):
        if t.run(*probe, root=True).rc == 0:
            return process
        if process.poll() is not None:
            t.fail(f"{argv[0]} ended: {process.stdout.read()} {process.stderr.read()}")
        time.sleep(0.05)
    return t.fail(f"{argv[0]} does not listen")


def certificates(t, more=()):
    """A CA and a server's certificate for NAMES and more, made once for all tests; returns the
    directory."""
    path = os.path.join(t.cache, "-".join(["certificates", *more]))
    if os.path.exists(path):
        return path
    work = f"{path}.{os.getpid()}"
    with users.as_root() if users.IS_ROOT else contextlib.nullcontext():
        os.mkdir(work, 0o755)
        names = "subjectAltName=" + ",".join(f"DNS:{name}" for name in [*NAMES, *more])
        run = lambda *argv: subprocess.run(["openssl", *argv], cwd=work, check=True,
                                           capture_output=True)
        ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        run("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj",
            "/CN=ward tests")
        run("req", *ec, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=web.test",
            "-addext", names)
        with open(os.path.join(work, "ext"), "w") as f:
            f.write(names + "\n")
        run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "30",
            "-out", "server.pem", "-extfile", "ext")
        with contextlib.suppress(OSError):
            os.rename(work, path)
    return path


def trusted_world(t, **options):
    """A world whose certificates the host trusts."""
    world = World(t, **options)
    with open("/etc/ssl/certs/ca-certificates.crt") as store, open(
        os.path.join(world.certificates, "ca.pem")) as ca:
        t.write(world.dir, {"bundle.pem": store.read() + ca.read()})
    bundle = os.path.join(world.dir, "bundle.pem")
    os.chmod(bundle, 0o644)
    t.run("nsenter", "-t", str(world.home), "-m", "mount", "--bind", bundle,
          "/etc/ssl/certs/ca-certificates.crt", root=True,
          check=True)
    return world


def policy(t, rules=None, **network):
    """Writes a policy outside of every workspace; returns its path."""
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    document = {"version": 1, "network": {"mode": "restricted", "egress_allowlist": RULES
                                          if rules is None else rules,
                                          **network}}
    with open(path, "w") as f:
        f.write(json.dumps(document))
    return path


def denial(t, report, what):
    """The denial of this in a report."""
    for d in report["denials"]:
        if d["what"] == what:
            return d
    return t.fail(f"no denial of {what!r} in {report['denials']}")


TRY = r"""
import errno, socket, sys, time
def attempt(host, port, kind=socket.SOCK_STREAM):
    began = time.monotonic()
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, 0, kind):
            s = socket.socket(family, kind)
            s.settimeout(10)
            s.connect(address)
            s.send(b"hello")
            got = s.recv(100)
            return ("got " + got.decode()) if got else "end"
    except socket.gaierror as error:
        return {socket.EAI_NONAME: "EAI_NONAME",
                socket.EAI_AGAIN: "EAI_AGAIN"}.get(error.errno, str(error))
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))
    finally:
        if time.monotonic() - began > 2:
            print("slow:", host, port, time.monotonic() - began)
for line in sys.argv[1:]:
    host, port, *kind = line.split()
    print(line, "->", attempt(host, int(port), socket.SOCK_DGRAM if kind else socket.SOCK_STREAM),
          flush=True)
"""


def attempts(t, world, *lines, rules=None, wrap=(), **network):
    """Tries each "host port [udp]" inside; returns {line: what came of it} and the report."""
    ws = t.workspace({"try.py": TRY})
    if wrap:
        r = t.ward("run", "-p", policy(t, rules, **network), "--", "/usr/bin/python3", "try.py",
                   *lines, cwd=ws,
                   report=True, timeout=60, wrap=[*world.wrap(ws), *wrap])
    else:
        r = world.ward("run", "-p", policy(t, rules, **network), "--", "/usr/bin/python3", "try.py",
                       *lines, cwd=ws,
                       report=True, timeout=60)
    t.equal(r.rc, 0, "exit code")
    t.check("slow:" not in r.out, f"an attempt took long: {r.out}")
    return dict(line.split(" -> ") for line in r.out.splitlines() if " -> " in line), r.report


HOME_SERVER = """
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 5432))
s.listen(64)
print("up", flush=True)
while True:
    c, _ = s.accept()
    open(sys.argv[1], "a").write("home was reached\\n")
    c.close()
"""


def scene(s, rules=None, names=None, resolvers=1, **network):
    """Puts the two runs of an attack into a world: plainly at home, and there in a sandbox with
    these rules."""
    s.world = World(s.t, names, resolvers)
    s.wrap = s.world.wrap(s.ws)
    s.options += ["-p", policy(s.t, rules, **network)]
    return s.world


def serve_at_home(s):
    """Something that answers on every address of the scene's home, at port 5432, and writes down
    who came."""
    server = s.t.popen(["nsenter", "-t", str(s.world.home), "-n", "/usr/bin/python3", "-c",
                        HOME_SERVER, s.world.log_path], root=True)
    server.stdout.readline()
