"""The ways from a client to a TLS server that inspection's bench compares, and the server itself.

A way is a context manager over a Place and yields (argv, env, relays): argv(word, count) is the
command line of one measurement, env what it needs to trust the right authority, relays(client) the
processes whose time and memory count as the relay's. WAYS is the table.

enter_namespaces() moves this process into namespaces of its own: network (one end of a cable, the
other is nginx's) and mounts (an /etc/hosts that knows the server). Everything in them ends with it.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import time

from net_peers import daemon, end, free_port, tree, which

NAME, SERVER, HERE = "web.bench.test", "192.0.2.10", "192.0.2.1"
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
SECRET = "INSPECTxBENCHxSECRETxVALUE"


def enter_namespaces():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    run("mount", "--make-rprivate", "/")
    run("ip", "link", "set", "lo", "up")


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL, **more)


def pem_pair(base, name, subject, more, signed_by=None):
    """A key and a certificate (P-256)."""
    key, cert = base / f"{name}.key", base / f"{name}.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", subject,
            "-keyout", key, "-out", cert]
    for extension in more:
        argv += ["-addext", extension]
    if signed_by:
        argv += ["-CA", signed_by[1], "-CAkey", signed_by[0]]
    run(*argv, stderr=subprocess.DEVNULL)
    return key, cert


class Place:
    """Where a run happens: a directory, the server behind its cable, ward and the client."""

    def __init__(self, base, build):
        self.base, self.work = pathlib.Path(base), pathlib.Path(base) / "work"
        self.ward, self.load = build / "src/cli/ward", build / "bench/inspect-load"
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        os.chmod(self.base, 0o755)
        self.work.mkdir()
        shutil.copy(self.load, self.work)
        ca = pem_pair(self.base, "ca", "/CN=bench root", ["basicConstraints=critical,CA:TRUE"])
        self.key, self.cert = pem_pair(self.base, "server", f"/CN={NAME}",
                                       [f"subjectAltName=DNS:{NAME}",
                                        "basicConstraints=critical,CA:FALSE"], ca)
        host_roots = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        self.roots = self.base / "roots.pem"
        self.roots.write_text((host_roots.read_text() if host_roots.exists() else "")
                              + ca[1].read_text())
        self.start_server()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start_server(self):
        """nginx in a namespace of its own, and the names that lead to it."""
        sleeper = subprocess.Popen(["unshare", "-n", "sleep", "100000"])
        self.stack.callback(end, sleeper)
        mine = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{sleeper.pid}/ns/net") == mine or pathlib.Path(
            f"/proc/{sleeper.pid}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
        run("ip", "link", "add", "bench0", "type", "veth", "peer", "name", "bench1", "netns",
            sleeper.pid)
        run("ip", "addr", "add", f"{HERE}/24", "dev", "bench0")
        run("ip", "link", "set", "bench0", "up")
        run("nsenter", "-t", sleeper.pid, "-n", "sh", "-ec",
            f"ip link set lo up; ip addr add {SERVER}/24 dev bench1; ip link set bench1 up")
        hosts = self.base / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{SERVER} {NAME}\n")
        run("mount", "--bind", hosts, "/etc/hosts")
        (self.base / "www").mkdir()
        (self.base / "www/small").write_bytes(os.urandom(1024))
        (self.base / "www/large").write_bytes(os.urandom(16 << 20))
        config = self.base / "nginx.conf"
        config.write_text(
            f"""daemon off; worker_processes 1; pid {self.base}/nginx.pid; error_log {self.base}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {self.base}/body; proxy_temp_path {self.base}/proxy; fastcgi_temp_path {self.base}/f; uwsgi_temp_path {self.base}/u; scgi_temp_path {self.base}/s;
  keepalive_requests 1000000; client_max_body_size 0; client_body_buffer_size 20m;
  server {{
    listen {SERVER}:443 ssl; ssl_certificate {self.cert}; ssl_certificate_key {self.key}; ssl_protocols TLSv1.2 TLSv1.3;
    root {self.base}/www; default_type application/octet-stream;
    location /up {{ proxy_pass http://127.0.0.1:8081; }}
  }}
  server {{ listen 127.0.0.1:8081; location / {{ return 200 "taken"; }} }}
}}
""")
        nginx = subprocess.Popen(["nsenter", "-t", str(sleeper.pid), "-n", which("nginx"), "-c",
                                  str(config)], stderr=subprocess.DEVNULL)
        self.stack.callback(end, nginx)
        for _ in range(200):
            if (self.base / "nginx.pid").exists():
                return
            time.sleep(0.05)
        raise RuntimeError("nginx does not start")


# -- the ways

@contextlib.contextmanager
def direct(place):
    yield lambda word, count: [place.load, word, NAME, 443,
                               count], {"SSL_CERT_FILE": str(place.roots)}, lambda client: []


def of_ward(client):
    return [pid for pid, name in tree(client.pid).items()
            if name in ("ward-gateway", "ward-dial", "ward-keys", "ward-secrets")]


def ward_policy(place, name, more):
    policy = place.base / f"{name}.yaml"
    policy.write_text(f"version: 1\nnetwork: {{mode: restricted, egress_allowlist: [{{host: "
                      f"{NAME}, mode: inspect, methods: [GET, POST], paths: ['/*']}}]}}\n{more}")
    return lambda word, count: [place.ward, "run", "-p", policy, "--", "./inspect-load", word, NAME,
                                443, count]


@contextlib.contextmanager
def ward(place):
    yield ward_policy(place, "plain", ""), {"SSL_CERT_FILE": str(place.roots)}, of_ward


@contextlib.contextmanager
def ward_secret(place):
    secret = place.base / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    grants = (f"credentials: {{mode: just_in_time, grants: [{{name: bench, source: "
              f"'file:{secret}', hosts: [{NAME}], as: BENCH_KEY}}]}}\n")
    yield ward_policy(place, "secret", grants), {"SSL_CERT_FILE": str(place.roots)}, of_ward


@contextlib.contextmanager
def mitmproxy(place):
    port, home = free_port(), place.base / "mitmproxy"
    argv = [which("mitmdump"), "-q", "--listen-host", "127.0.0.1", "-p", port, "--set",
            f"confdir={home}", "--set", f"ssl_verify_upstream_trusted_ca={place.roots}"]
    with daemon(argv, port, env={**os.environ, "HOME": str(place.base)}) as process:
        yield (lambda word, count: [place.load, word, NAME, 443, count, port],
               {"SSL_CERT_FILE": str(home / "mitmproxy-ca-cert.pem")},
               lambda client: list(tree(process.pid)))


@contextlib.contextmanager
def squid(place):
    port, home = free_port(), place.base / "squid"
    home.mkdir()
    key, cert = pem_pair(home, "bump", "/CN=squid bench",
                         ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"])
    certgen = "/usr/lib/squid/security_file_certgen"
    run(certgen, "-c", "-s", home / "db", "-M", "4MB")
    config = home / "squid.conf"
    config.write_text(
        f"""http_port 127.0.0.1:{port} ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=4MB tls-cert={cert} tls-key={key}
sslcrtd_program {certgen} -s {home}/db -M 4MB
sslcrtd_children 2
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
tls_outgoing_options cafile={place.roots}
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {home}/cache.log
cache_store_log none
pid_filename {home}/pid
coredump_dir {home}
hosts_file /etc/hosts
dns_nameservers 127.0.0.1
shutdown_lifetime 0 seconds
client_persistent_connections on
server_persistent_connections on
""")
    run("chown", "-R", "proxy:", home)
    with daemon([which("squid"), "-N", "-f", config], port) as process:
        yield (lambda word, count: [place.load, word, NAME, 443, count, port],
               {"SSL_CERT_FILE": str(cert)}, lambda client: list(tree(process.pid)))


# name, what it is, {program: Debian package} it needs, how it starts, how much of the load it gets
WAYS = [
    ("direct", "to the server, nothing between", {}, direct, 1),
    ("ward", "a sandbox, requests parsed, decided about and written anew", {}, ward, 1),
    ("ward, with a secret", "the same, and all that leaves looked through for a secret", {},
     ward_secret, 1),
    ("mitmproxy", "mitmdump, no script", {"mitmdump": "mitmproxy"}, mitmproxy, 0.25),
    ("squid", "ssl-bump, no cache, no log",
     {"/usr/lib/squid/security_file_certgen": "squid-openssl"}, squid, 0.5),
]
