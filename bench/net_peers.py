"""The ways from a client to a server that the network's bench compares, and the processes that
carry the bytes on each.

A way is a context manager over a Place. It starts what it needs and yields (argv, relays):
argv(word, count) is the command line of one measurement, relays(client) the processes whose time
counts as the relay's while that client runs. WAYS is the table; what a row needs and is not there
is named with the command that brings it (absent()), never left out in silence.

Everything stays on this machine: servers and proxies on 127.0.0.1, and for pasta and slirp4netns a
network namespace whose router (an address of the documentation range) they map to it.
"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                     or pathlib.Path.home() / ".cache") / "ward-bench" / "npm"
# slirp4netns is always the second of its network
ROUTER, INSIDE, SLIRP = "198.51.100.1", "198.51.100.9", "198.51.100.2"
APT = "apt-get install -y --no-install-recommends"


def which(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Place:
    """Where a run happens: a directory of its own, ward, net-load, and the server's port."""

    def __init__(self, base, build):
        self.base, self.work = pathlib.Path(base), pathlib.Path(base) / "work"
        self.ward, self.load = build / "src/cli/ward", build / "bench/net-load"
        self.port = free_port()
        self.work.mkdir()
        shutil.copy(self.load, self.work)
        self.policy = self.base / "policy.yaml"
        self.policy.write_text(f'version: 1\nnetwork: {{mode: restricted, host_services: '
                               f'["bench=127.0.0.1:{self.port}"]}}\n')


# -- processes

def children_of():
    """{pid: [pid]}, and {pid: name}, of every process there is."""
    below, names = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{entry}/stat").read_text()
            names[int(entry)] = text[text.index("(") + 1:text.rindex(")")]
            below.setdefault(int(text[text.rindex(")") + 1:].split()[1]), []).append(int(entry))
    return below, names


def tree(pid):
    """{pid: name} of a process and all below it."""
    below, names = children_of()
    found, todo = {}, [pid]
    while todo:
        one = todo.pop()
        if one in names and one not in found:
            found[one] = names[one]
            todo += below.get(one, [])
    return found


def cpu_seconds(pids):
    """Of these processes and of the children that they have waited for."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(int(n) for n in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def end(process):
    """Ends what was started here, and what that started."""
    pids = tree(process.pid)
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in pids:
        with contextlib.suppress(OSError):
            if pid != process.pid:
                os.kill(pid, 9)


@contextlib.contextmanager
def daemon(argv, port=None, **more):
    process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        for _ in range(200 if port else 0):
            if process.poll() is not None:
                raise RuntimeError(f"{argv[0]} ended with {process.returncode}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield process
    finally:
        end(process)


# -- the ways

@contextlib.contextmanager
def direct(place):
    yield lambda word, count: [place.load, word, "127.0.0.1", place.port, count], lambda client: []


def of_ward(client):
    return [pid for pid, name in tree(client.pid).items() if name in ("ward-gateway", "ward-dial")]


@contextlib.contextmanager
def ward(place):
    yield lambda word, count: [place.ward, "run", "-p", place.policy, "--", "./net-load", word,
                               "bench", place.port, count], of_ward


@contextlib.contextmanager
def ward_ports(place):
    yield lambda word, count: [place.load, "without-nft", place.ward, "run", "-p", place.policy,
                               "--", "./net-load", word, "bench",
                               place.port, count], of_ward


@contextlib.contextmanager
def haproxy(place):
    port = free_port()
    config = place.base / "haproxy.cfg"
    config.write_text(f"""global
  nbthread 1
  maxconn 3000
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option splice-auto
listen bench
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{place.port}
""")
    with daemon([which("haproxy"), "-db", "-f", config], port) as process:
        yield lambda word, count: [place.load, word, "127.0.0.1", port,
                                   count], lambda client: tree(process.pid)


def proxied(place, port, process):
    return lambda word, count: [place.load, word, "127.0.0.1", place.port, count,
                                port], lambda client: tree(process.pid)


@contextlib.contextmanager
def squid(place):
    port, state = free_port(), place.base / "squid"
    state.mkdir()
    if os.geteuid() == 0:
        shutil.chown(state, "proxy", "proxy")
        place.base.chmod(0o755)
    config = place.base / "squid.conf"
    config.write_text(f"""http_port 127.0.0.1:{port}
acl CONNECT method CONNECT
http_access allow CONNECT
http_access deny all
access_log none
cache_log {state}/cache.log
pid_filename {state}/squid.pid
cache deny all
shutdown_lifetime 0 seconds
workers 1
coredump_dir {state}
pinger_enable off
""")
    with daemon([which("squid"), "-N", "-f", config], port) as process:
        yield proxied(place, port, process)


@contextlib.contextmanager
def tinyproxy(place):
    port = free_port()
    config = place.base / "tinyproxy.conf"
    config.write_text(f"""Port {port}
Listen 127.0.0.1
Timeout 60
MaxClients 1000
LogFile "{place.base}/tinyproxy.log"
LogLevel Critical
""")    # at its usual level it syncs its log after every line: 50 connections a second
    with daemon([which("tinyproxy"), "-d", "-c", config], port) as process:
        yield proxied(place, port, process)


@contextlib.contextmanager
def namespace():
    """A network namespace of its own; yields its holder's pid."""
    holder = subprocess.Popen(["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
                               "echo up && exec sleep 3600"], stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        yield holder.pid
    finally:
        end(holder)


def wait_for_route(pid):
    for _ in range(200):
        if len(pathlib.Path(f"/proc/{pid}/net/route").read_text().splitlines()) > 1:
            return
        time.sleep(0.05)
    raise RuntimeError("no route came up in the namespace")


def entered(place, pid, host, process):
    return (lambda word, count: ["nsenter", "--preserve-credentials", "--user", "--net", "--target",
                                 pid, place.load, word, host, place.port, count],
            lambda client: tree(process.pid))


@contextlib.contextmanager
def pasta(place, host=ROUTER):
    as_root = ["--runas", "0"] if os.geteuid() == 0 else []
    with namespace() as pid, daemon([which("pasta"), "-f", "-q", "--config-net", "-a", INSIDE, "-n",
                                     "24", "-g", ROUTER, "-T", place.port,
                                     "-t", "none", "-u", "none", "-U", "none", *as_root,
                                     pid]) as process:
        wait_for_route(pid)
        yield entered(place, pid, host, process)


@contextlib.contextmanager
def pasta_spliced(place):
    with pasta(place, "127.0.0.1") as way:
        yield way


@contextlib.contextmanager
def slirp(place):
    with namespace() as pid, daemon([which("slirp4netns"), "--configure", "--mtu=65520",
                                     "--cidr=198.51.100.0/24", pid, "tap0"]) as process:
        wait_for_route(pid)
        yield entered(place, pid, SLIRP, process)


SRT_CLIENT = """
import base64, os, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
login = ":".join(urllib.parse.unquote(part or "") for part in (proxy.username, proxy.password))
header = ["Proxy-Authorization: Basic "
          + base64.b64encode(login.encode()).decode()] if proxy.username else []
os.execv(sys.argv[1], [*sys.argv[1:], str(proxy.port), *header])
"""


@contextlib.contextmanager
def srt(place):
    settings, script = place.base / "srt.json", place.work / "client.py"
    settings.write_text('{"network": {"allowedDomains": ["127.0.0.1"], "deniedDomains": []},'
                        ' "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}')
    script.write_text(SRT_CLIENT)

    def argv(word, count):
        return ["env", f"PATH={CACHE}/node_modules/.bin:{os.environ['PATH']}", "srt", "--settings",
                settings, "-c",
                f"exec python3 client.py ./net-load {word} 127.0.0.1 {place.port} {count}"]

    yield argv, lambda client: [pid for pid, name in tree(client.pid).items() if name != "net-load"]


def has_srt():
    return (CACHE / "node_modules/.bin/srt").exists() and (CACHE
                                                           / "node_modules/.bin/node").exists()


# name, what it is, programs with their Debian packages, how, which part of the load (the slow ones
# get less of it)
WAYS = [
    ("direct", "over the host's loopback", {}, direct, 1),
    ("ward", "a sandbox, rules, TPROXY; two processes", {}, ward, 1),
    ("ward, no nf_tables", "the same with a listening socket a port", {}, ward_ports, 1),
    ("haproxy", "mode tcp, splice-auto, one thread; no sandbox, no rules", {"haproxy": "haproxy"},
     haproxy, 1),
    ("squid", "HTTP CONNECT; no sandbox", {"squid": "squid"}, squid, 0.5),
    ("tinyproxy", "HTTP CONNECT; no sandbox", {"tinyproxy": "tinyproxy-bin"}, tinyproxy, 0.25),
    ("pasta, spliced", "a namespace's loopback, no rules", {"pasta": "passt"}, pasta_spliced, 0.5),
    ("pasta, tap", "a namespace's router, no rules", {"pasta": "passt"}, pasta, 0.125),
    ("slirp4netns", "a namespace's router, no rules", {"slirp4netns": "slirp4netns"}, slirp, 0.25),
    ("srt", "bwrap, two socat and a proxy in Node; CONNECT",
     {"bwrap": "bubblewrap", "socat": "socat", "rg": "ripgrep"}, srt, 0.125),
]


def absent(name, needs):
    """None, or how to get what is missing for a row of WAYS."""
    missing = [package for program, package in needs.items() if not which(program)]
    how = [f"{APT} {' '.join(missing)}"] if missing else []
    if name == "srt" and not has_srt():
        how.append("bench/get_srt.sh")
    return " && ".join(how) or None
