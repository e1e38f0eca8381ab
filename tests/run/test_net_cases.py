"""Every way around the gateway that we know of, and the test that tries it; what no other file
tries is tried here, each on a kernel with nf_tables and on one without. CASES is checked: a row
that names no test fails.
"""
import errno
import glob
import os
import re

from harness import filters, timeout, users
from harness.world import HOME, World, policy

# what -> where: function of a file in tests/run, or a file in tests/escape (gate_* run without
# nf_tables, too: test_net_without.py)
CASES = {
    "1 proxy variables set, unset, --noproxy": ("test_net_cases::test_proxy_variables",),
    "2 an IP literal": ("gate_address", "test_net_cases::test_addresses",
                        "test_net::test_allowed_and_refused"),
    "3 metadata addresses, both families": ("test_net_cases::test_addresses",
                                            "test_net::test_forbidden_addresses"),
    "4 loopback in every spelling, the host's other addresses": ("gate_host_loopback",
                                                                 "gate_host_second",
                                                                 "test_net_cases::test_addresses"),
    "5 a name that resolves to forbidden addresses": ("test_net_cases::test_resolved",
                                                      "test_net::test_forbidden_addresses"),
    "6 rebinding": ("gate_rebinding", "gate_late_answer", "test_net::test_rebinding"),
    "7 DNS tunnels": ("gate_dns_tunnel", "test_net_gate::test_dns", "test_net_cases::test_names"),
    "8 other resolvers: UDP, TCP, DoT, DoH": ("gate_dns_tunnel", "test_net_cases::test_addresses"),
    "9 AAAA, HTTPS, SVCB": ("test_net_gate::test_dns",),
    "10 malformed DNS": ("test_net_gate::test_dns", "test_net_cases::test_names"),
    "11 another SNI": ("gate_tls_name", "test_net_gate::test_tls_names"),
    "12 no SNI, plain text, SSLv2": ("test_net_gate::test_tls_names",),
    "13 a greeting in pieces": ("gate_tls_name", "test_net_gate::test_tls_names"),
    "14 a second greeting": ("gate_tls_retry", "test_net_bypass::test_tls"),
    "15 ECH": ("test_net_bypass::test_tls",),
    "16 fronting: another Host or :authority inside TLS": (
        "test_inspect::test_rules", "test_inspect_smuggling::test_smuggling",
        "test_inspect_smuggling::test_smuggling_h2"),
    "17 another Host later, twice, in the target": ("gate_http_host",
                                                    "test_net_gate::test_http_hosts",
                                                    "test_net_cases::test_http"),
    "18 request smuggling over HTTP/1 and HTTP/2": ("gate_http_host",
                                                    "test_net_gate::test_http_hosts",
                                                    "test_inspect_smuggling::test_smuggling",
                                                    "test_inspect_smuggling::test_smuggling_h2"),
    "19 path tricks": ("test_inspect::test_rules", "test_inspect_smuggling::test_smuggling_h2"),
    "20 proxies asked in every spelling, BIND, UDP ASSOCIATE, SOCKS4": (
        "gate_proxy", "test_net_bypass::test_proxy_spellings", "test_net_cases::test_http"),
    "21 CONNECT, then something else": ("test_net_bypass::test_tls", "test_net_cases::test_http"),
    "22 UDP, QUIC, ICMP, raw, SCTP, MPTCP": ("gate_udp", "test_net_cases::test_sockets",
                                             "net_icmp"),
    "23 AF_VSOCK, AF_ALG, AF_PACKET, io_uring, namespaces": ("test_net_cases::test_sockets",
                                                             "syscall_vsock", "syscall_packet",
                                                             "syscall_io_uring",
                                                             "syscall_rare_sockets",
                                                             "syscall_user_namespace"),
    "24 unix sockets of the host, abstract ones, passed ones": ("ipc_host_socket",
                                                                "ipc_abstract_socket",
                                                                "ipc_abstract_datagram",
                                                                "ipc_workspace_socket",
                                                                "stdio_unix_socket"),
    "25 secrets and placeholders in wrong places, reflected, redirected": (
        "test_creds::test_places_and_leaks", "test_creds::test_never_inside",
                                                                           "test_creds::test_a_revoked_secret_is_gone_at_once_and_still_a_secret"),
    "floods of requests that are looked into": ("test_inspect_flood::test_floods",
                                                "test_inspect_streams::test_http2",
                                                "test_creds::test_gzip_bombs"),
    "the gateway is killed": ("test_net_process::test_front_killed",
                              "test_net_process::test_dial_killed",
                              "test_net_process::test_ward_killed"),
    "idle, half-open, unread, too many": ("test_net_flood::test_idle",
                                          "test_net_flood::test_slow_loris",
                                          "test_net_flood::test_mute",
                                          "test_net_flood::test_out_of_descriptors",
                                          "test_net_flood::test_silent_give_way"),
    "all synthetic addresses given away": ("test_net_cases::test_names",),
    "resets, urgent data, one byte at a time, a storm": ("test_net_cases::test_streams",),
    "denials that hide behind what is allowed": ("test_net_cases::test_drowned",),
    "a published port, a host service, another sandbox": ("test_net_cases::test_other_sandbox",
                                                          "test_net_gate::test_host_services",
                                                          "test_net_ingress::test_no_way_out"),
}

HELPERS = r"""
import errno, json, os, select, socket, struct, sys, threading, time
def show(name, r):
    print("%s|%s" % (name, r), flush=True)
def attempt(f, *a):
    "What came of it, in a word; slow where a refusal had to be waited for."
    began = time.monotonic()
    try:
        r = f(*a)
    except socket.gaierror:
        r = "noname"
    except OSError as error:
        r = errno.errorcode.get(error.errno, type(error).__name__)
    return "slow %s" % r if time.monotonic() - began > 4 else r
def talk(host, port, data=b"hello\r\n\r\n", family=0):
    for family, kind, _, _, address in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        s = socket.socket(family, kind)
        s.settimeout(8)
        s.connect(address)
        s.sendall(data)
        return "got" if s.recv(100) else "end"
def ask(*parts, where=("127.0.0.53", 53)):
    "Raw bytes to a server over TCP, and all that comes back."
    with socket.create_connection(where, 8) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            s.sendall(part)
        got = b""
        while data := s.recv(65536):
            got += data
        return got
"""
REFUSED = {"ECONNREFUSED", "ECONNRESET", "EPIPE", "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL",
           "EADDRNOTAVAIL", "end", "noname"}


def inside(t, world, script, rules, without, **network):
    """Runs the script; returns {name: result}, the report."""
    ws = t.workspace({"script.py": HELPERS + script})
    wrap = world.wrap(ws) + (filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES")
                             if without else [])
    r = t.ward("run", "-p", policy(t, rules, **network), "--", "/usr/bin/python3", "script.py",
               cwd=ws, report=True, timeout=50, wrap=wrap)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    t.equal("no nf_tables" in (r.report["layers"]["net namespace"]["note"] or ""), without,
            "the kernel has nf_tables")
    return dict(line.split("|", 1) for line in r.out.splitlines() if "|" in line), r.report


def both(function):
    """The test on a kernel with nf_tables, and on one without."""
    def plain(t):
        function(t, False)

    @timeout(90)
    def without(t):
        function(t, True)
    plain.__doc__ = function.__doc__
    without.__doc__ = f"{function.__doc__} Without nf_tables."
    globals()[f"{function.__name__}_without_nf_tables"] = without
    return timeout(90)(plain)


def refused(t, got, names):
    for name in names:
        t.check(got[name] in REFUSED, f"{name}: {got[name]}")


def quiet(t, world, *words):
    """None of the servers heard of it."""
    heard = [line for line in world.log() if any(word in line for word in words)]
    t.equal(heard, [], "what came out")


def test_table(t):
    """Each case of the table has its tests, and no case is missing."""
    here = os.path.dirname(os.path.abspath(__file__))
    for case, tests in CASES.items():
        for test in tests:
            file, _, function = test.partition("::")
            path = os.path.join(here,
                                file + ".py") if function else os.path.join(here, "..", "escape",
                                                                            file + ".py")
            text = t.read(path) or ""
            t.check(f"def {function or 'attack'}(" in text
                    or (not function and re.search(r"^(C = |def test)", text, re.M)),
                    f"{case}: there is no {test}")
    numbers = {int(case.split()[0]) for case in CASES if case[0].isdigit()}
    t.equal(numbers, set(range(1, 26)), "the cases")
    known = {name for tests in CASES.values() for name in tests}
    gates = {os.path.basename(path)[:-3]
             for path in glob.glob(os.path.join(here, "..", "escape", "gate_*.py"))}
    t.check(gates <= known, f"attacks on the gateway that no case names: {gates - known}")


@both
def test_proxy_variables(t, without):
    """Whatever a proxy variable says or does not say, the rules are the same."""
    world = World(t)
    ws = t.workspace()
    env = ("http_proxy=http://127.0.0.1:3128 https_proxy=http://127.0.0.1:3128 "
           "ALL_PROXY=socks5h://127.0.0.1:1080")
    script = "\n".join(f"echo \"{name}|$({prefix} curl -s -o /dev/null -w '%{{http_code}} ' "
                       f"--max-time 8 {more} http://$h/ || echo rc $?)\""
                       for name, prefix, more in (
        ("none", "env -u http_proxy", ""), ("noproxy", f"env {env}", "--noproxy '*'"),
        ("no_proxy", f"env {env} no_proxy='*'", ""), ("set", f"env {env}", ""),
        ("elsewhere", "env http_proxy=http://203.0.113.5:8080", "")))
    wrap = world.wrap(ws) + (filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES")
                             if without else [])
    got = {}
    for host in ("web.test", "evil.test"):
        r = t.ward("run", "-p", policy(t, ["web.test:80"]), "--", "/bin/sh", "-c",
                   f"h={host}\n{script}", cwd=ws, wrap=wrap, timeout=50)
        t.equal(r.rc, 0, "exit code")
        got[host] = dict(line.split("|", 1) for line in r.out.splitlines())
    t.equal([got["web.test"][k].strip() for k in ("none", "noproxy", "no_proxy", "set")],
            ["200"] * 4, "an allowed name")
    for name, answer in got["evil.test"].items():
        t.check("200" not in answer, f"{name}: {answer}")
    t.check("200" not in got["web.test"]["elsewhere"], f"a proxy outside: {got}")
    quiet(t, world, "evil", "203.0.113.5")


ADDRESSES = ("1.2.3.4", "192.0.2.10", "169.254.169.254", "100.100.100.200", "168.63.129.16",
             "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "10.0.0.1",
             "172.17.0.1", "192.168.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
             "198.18.0.200", "198.19.255.254", "198.18.0.0", "0.0.0.0",
             "127.0.0.2", "127.0.0.1", "127.0.0.53", "10.0.2.15", "::1", "::", "::ffff:192.0.2.10",
             "::ffff:127.0.0.1", "64:ff9b::c000:20a", "2002:c000:20a::1",
             "2001:0:c000:20a::1", "::192.0.2.10", "2001:db8::1", "ff02::1", "fe80::1%lo",
             "0xc0.0.2.10", "3221225994", "0300.0.02.012", "192.0.522",
             "8.8.8.8", HOME)


@both
def test_addresses(t, without):
    """No address is reached that the policy does not name, in any spelling, on any port, of either
    family."""
    world = World(t)
    ports = (443, 80, 853, 53, 22, 5432)
    got, report = inside(t, world, f"""
for host in {ADDRESSES!r}:
    for port in {ports!r}:
        if port == 53 and host in ("127.0.0.53", "0.0.0.0"):
            continue	# the resolver inside
        show("%s %d" % (host, port), attempt(talk, host, port))
show("allowed", attempt(talk, "web.test", 80, b"GET / HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n"))
""", ["web.test:443", "web.test:80", "web.test:22"], without)
    t.equal(got.pop("allowed"), "got", "an allowed name")
    refused(t, got, got)
    quiet(t, world, "tcp 10.", "tcp 169.", "tcp 203.", "tls", "http 192")
    t.check(len([line for line in world.log() if line.startswith("tcp")]) <= 1,
            f"reached: {world.log()}")
    for what in ("169.254.169.254:80", "8.8.8.8:853", "[fd00:ec2::254]:80"):
        t.check(any(d["what"] == f"connection to {what}" for d in report["denials"]),
                f"{what} is not in the report: {report['denials']}")


STRANGE = {"nat64.test": ["64:ff9b::a63:5"], "mapped.test": ["::ffff:10.99.0.5"],
           "compatible.test": ["::10.99.0.5"], "sixtofour.test": ["2002:a63:5::1"],
           "teredo.test": ["2001:0:a63:5::1"], "ula.test": ["fd00::5"], "link.test": ["fe80::5"],
           "loop6.test": ["::1"], "zero.test": ["0.0.0.0"],
           "zero6.test": ["::"], "all.test": ["255.255.255.255"], "many.test": ["224.0.0.1"],
           "synthetic.test": ["198.18.0.1"],
           "meta6.test": ["fd00:ec2::254"], "seven.test": ["127.1.2.3"],
           "aws.test": ["169.254.170.2"], "azure.test": ["168.63.129.16"]}


@both
def test_resolved(t, without):
    """An allowed name leads to no address that carries, or is, one of the host's or of a private
    network."""
    world = World(t, STRANGE)
    got, report = inside(t, world, f"""
for host in {sorted(STRANGE)!r}:
    show(host, attempt(talk, host, 5432))
""", [f"{name}:5432" for name in STRANGE], without)
    refused(t, got, STRANGE)
    quiet(t, world, "tcp ")
    told = {d["what"]: d["why"] for d in report["denials"]}
    for name, word in (("nat64.test", "embeds an IPv4"), ("sixtofour.test", "embeds an IPv4"),
                       ("loop6.test", "loopback"), ("aws.test", "metadata"),
                       ("synthetic.test", "outside the public")):
        t.contains(told.get(f"connection to {name}:5432", ""), word, name)


@both
def test_names(t, without):
    """Names at their limits and beyond, cut and glued, streams of questions, and more names than
    there are addresses."""
    world = World(t)
    got, report = inside(t, world, r"""
def question(labels, kind=1, more=b"", extra=0, number=7):
    name = b"".join(bytes([len(l)]) + l for l in labels) + b"\0"
    return struct.pack(">HHHHHH", number, 0x100, 1, 0, 0,
                       extra) + name + struct.pack(">HH", kind, 1) + more
def frame(q):
    return struct.pack(">H", len(q)) + q
def rcode(a):
    return "rcode %d answers %d" % (a[3] & 15, struct.unpack(">H", a[6:8])[0]) if a else "silent"
def datagram(q):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(8)
        s.connect(("127.0.0.53", 53))
        s.send(q)
        return s.recv(4096)
wild = [b"web", b"test"]
show("label-63", rcode(datagram(question([b"a" * 63] + wild))))
show("label-64", rcode(datagram(question([b"a" * 64] + wild))))
show("name-253", rcode(datagram(question([b"a" * 61] * 3 + [b"b" * 57] + wild))))
show("name-255", rcode(datagram(question([b"a" * 63] * 3 + [b"b" * 57] + wild))))
show("one-label", rcode(datagram(question([b"web.test"]))))
show("nul", rcode(datagram(question([b"web", b"test\0"]))))
show("nul-evil", rcode(datagram(question([b"evil\0", b"web", b"test"]))))
show("dash", rcode(datagram(question([b"xn--", b"web", b"test"]))))
show("homograph", rcode(datagram(question(["w\u0435b".encode(), b"test"]))))
show("homograph-puny", rcode(datagram(question([b"xn--wb-vlc", b"test"]))))
show("space", rcode(datagram(question([b"we b", b"test"]))))
mixed = datagram(question([b"wEb", b"TeSt"]))
show("0x20", "same" if b"\3wEb\4TeSt" in mixed and mixed[7] == 1 else mixed)
opt = lambda size: b"\0" + struct.pack(">HHIH", 41, size, 0, 0)
show("edns-65535", rcode(datagram(question(wild, more=opt(65535), extra=1))))
show("edns-0", rcode(datagram(question(wild, more=opt(0), extra=1))))
show("edns-twice", rcode(datagram(question(wild, more=opt(512) * 2, extra=2))))
show("edns-none", rcode(datagram(question(wild, extra=1))))
def pipeline():
    s = socket.create_connection(("127.0.0.53", 53), 8)
    s.sendall(b"".join(frame(question(wild, number=i)) for i in range(500)))
    s.shutdown(socket.SHUT_WR)
    got = b""
    while data := s.recv(65536):
        got += data
    numbers = []
    while got:
        n = struct.unpack(">H", got[:2])[0]
        numbers.append(struct.unpack(">H", got[2:4])[0])
        got = got[2 + n:]
    return numbers == list(range(500))
show("pipeline", attempt(pipeline))
def slowly():
    s = socket.create_connection(("127.0.0.53", 53), 8)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in frame(question(wild)):
        s.sendall(bytes([byte]))
    return rcode(s.recv(4096)[2:])
show("slowly", attempt(slowly))
def flood():
    s = socket.create_connection(("127.0.0.53", 53), 20)
    codes, left, buffer = {}, 0, b""
    for block in range(0, 14000, 100):
        s.sendall(b"".join(frame(question([b"%05d" % i + b"x" * 55] * 1 + [b"y" * 60] * 3 + wild))
                           for i in range(block, block + 100)))
        for _ in range(100):
            while len(buffer) < 2 or len(buffer) < 2 + struct.unpack(">H", buffer[:2])[0]:
                data = s.recv(65536)
                if not data:
                    return "ended"
                buffer += data
            n = struct.unpack(">H", buffer[:2])[0]
            code = buffer[5] & 15
            codes[code] = codes.get(code, 0) + 1
            buffer = buffer[2 + n:]
    return json.dumps(codes, sort_keys=True)
try:
    show("flood", flood())
except OSError as error:
    show("flood", repr(error))
show("listed-after", rcode(datagram(question(wild))))
show("wild-after", rcode(datagram(question([b"late" + b"z" * 50] + [b"y" * 60] * 3 + wild))))
show("works-after", attempt(talk, "web.test", 80, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n"))
""", ["web.test:80", "*.web.test:80"], without)
    yes, no, malformed = "rcode 0 answers 1", "rcode 3 answers 0", "rcode 1 answers 0"
    expected = {"label-63": yes, "label-64": malformed, "name-253": yes, "name-255": malformed,
                "one-label": no, "nul": no, "nul-evil": no, "dash": no,
                "homograph": no, "homograph-puny": no, "space": no, "0x20": "same",
                "edns-65535": yes, "edns-0": yes, "edns-twice": malformed,
                "edns-none": malformed, "pipeline": "True", "slowly": yes, "listed-after": yes,
                "wild-after": "rcode 2 answers 0", "works-after": "got"}
    t.equal({name: got[name] for name in expected}, expected, "answers")
    codes = {int(k): v for k, v in eval(got["flood"], {}).items()}
    t.check(sum(codes.values()) == 14000 and set(codes) == {0, 2} and codes[0] > 10000,
            f"the flood: {codes}")
    t.check(any("too many different names" in d["why"] for d in report["denials"]),
            f"the report: {report['denials']}")
    quiet(t, world, "evil", "xxxx", "dns www")


@both
def test_http(t, without):
    """Requests for others in every wrapping: pipelined, behind CONNECT, in a CONNECT in a CONNECT,
    after an upgrade, over SOCKS4."""
    world = World(t)
    got, _ = inside(t, world, r"""
good, bad = (b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n",
             b"GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n")
proxy, socks = ("127.0.0.1", 3128), ("127.0.0.1", 1080)
connect = lambda to: b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (to, to)
def first(a):
    return a.split(b"\r\n")[0].decode("latin-1") + " %d" % a.count(
        b"hello from evil") if a else "end"
def say(name, f):
    try:
        show(name, first(f()))
    except OSError as error:
        show(name, type(error).__name__)
web = ("web.test", 80)
say("pipelined", lambda: ask(good + bad, where=web))
say("bytes",
    lambda: ask(*(bytes([b]) for b in good.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")),
                where=web))
say("connect-in-connect", lambda: ask(connect(b"web.test:80"), connect(b"evil.test:443"),
                                      where=proxy))
say("connect-glued", lambda: ask(connect(b"web.test:80") + connect(b"evil.test:443"), where=proxy))
say("connect-proxy", lambda: ask(connect(b"127.0.0.1:3128") + connect(b"evil.test:443"),
                                 where=proxy))
say("connect-then-evil", lambda: ask(connect(b"web.test:80"), bad, where=proxy))
say("proxy-second", lambda: ask(good.replace(b" /", b" http://web.test/"),
                                bad.replace(b" /", b" http://evil.test/"), where=proxy))
say("preface", lambda: ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), where=web))
say("h2c",
    lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + bad, where=web))
say("websocket",
    lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\n\r\n" + bad, where=web))
say("socks4", lambda: ask(b"\4\1\0\x50\xcb\0\x71\5agent\0", where=socks))
say("socks4a", lambda: ask(b"\4\1\0\x50\0\0\0\1agent\0evil.test\0", where=socks))
say("socks-http", lambda: ask(connect(b"web.test:80"), where=socks))
say("http-socks", lambda: ask(b"\5\1\0", where=proxy))
say("large-head",
    lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test\r\n" + b"X: y\r\n" * 9000 + b"\r\n", where=web))
say("large-line", lambda: ask(b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: web.test\r\n\r\n",
                              where=web))
say("userinfo", lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test@evil.test\r\n\r\n", where=web))
say("two-in-one", lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test, evil.test\r\n\r\n", where=web))
say("no-host", lambda: ask(b"GET / HTTP/1.0\r\n\r\n", where=web))
say("port", lambda: ask(b"GET / HTTP/1.1\r\nHost: web.test:8080\r\n\r\n", where=web))
""", ["web.test:80", "web.test:443"], without)
    t.equal(got.pop("bytes"), "HTTP/1.1 200 OK 0", "a request byte by byte")
    # the first of them was right
    for name in ("pipelined", "proxy-second", "h2c", "websocket"):
        t.check(got[name].endswith(" 0") or got[name] == "ConnectionResetError",
                f"{name}: {got[name]}")
        del got[name]
    t.equal([got.pop(name) for name in ("connect-in-connect", "connect-glued",
                                        "connect-then-evil")],
            ["HTTP/1.1 200 Connection established 0"] * 3,
            "the outer CONNECT")
    for name, answer in got.items():
        t.check(" 200 " not in answer and answer != "TimeoutError", f"{name}: {answer}")
    quiet(t, world, "evil", "203.0.113.5", ":8080")


@both
def test_sockets(t, without):
    """Sockets of other kinds lead nowhere, and nothing of the namespace can be changed from
    inside."""
    world = World(t)
    got, _ = inside(t, world, r"""
def make(*kind):
    socket.socket(*kind).close()
    return "made"
for name, kind in (("vsock", (40, 1)), ("alg", (38, 5)), ("packet", (17, 3, 3)),
                   ("packet-dgram", (17, 2, 3)), ("raw", (2, 3, 6)), ("raw-icmp", (2, 3, 1)),
                   ("raw6", (10, 3, 58)),
                   ("sctp", (2, 1, 132)), ("sctp-many", (2, 5, 132)), ("dccp", (2, 6, 33)),
                   ("udplite", (2, 2, 136)), ("ping", (2, 2, 1)), ("netfilter", (16, 3, 12)),
                   ("xdp", (44, 3)), ("tipc", (30, 1)), ("bluetooth", (31, 1)), ("rds", (21, 5)),
                   ("kcm", (41, 2)), ("smc", (43, 1)), ("can", (29, 3, 1))):
    show(name, attempt(make, *kind))
def option(level, which, value):
    with socket.socket() as s:
        s.setsockopt(level, which, value)
    return "set"
show("mark", attempt(option, socket.SOL_SOCKET, 36, 0x77617264))
show("transparent", attempt(option, 0, 19, 1))
show("device", attempt(option, socket.SOL_SOCKET, 25, b"lo\0"))
def mptcp(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    s.settimeout(8)
    s.connect((host, 80))
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n")
    return "got" if s.recv(100) else "end"
show("mptcp-allowed", attempt(mptcp, "web.test"))
show("mptcp-denied", attempt(mptcp, "203.0.113.5"))
def fast_open():
    s = socket.socket()
    s.settimeout(8)
    # MSG_FASTOPEN
    s.sendto(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 0x20000000, ("203.0.113.5", 80))
    return "got" if s.recv(100) else "end"
show("fastopen", attempt(fast_open))
def route():	# a route of one's own, through the loopback
    with socket.socket(16, 3, 0) as s:
        s.settimeout(8)
        body = struct.pack("=BBBBBBBBI", 2, 32, 0, 0, 254, 3, 253, 1,
                           0) + struct.pack("=HH4s", 8, 1,
                                            socket.inet_aton("203.0.113.5")) + struct.pack(
                                                "=HHI", 8, 4, 1)
        s.sendall(struct.pack("=IHHII", 16 + len(body), 24, 0x605, 1, 0) + body)
        answer = s.recv(4096)
        code = -struct.unpack("=i", answer[16:20])[0]
        return errno.errorcode.get(code, str(code))
show("route", attempt(route))
def bind_foreign():	# as somebody else, to the gateway's own door
    s = socket.socket()
    s.settimeout(2)	# whom the answer cannot reach waits for ever
    s.bind(("203.0.113.5", 0))
    s.connect(("127.0.0.53", 1))
    s.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    return "got" if s.recv(100) else "end"
show("door", attempt(bind_foreign))
def door6():
    s = socket.socket(10, 1)
    s.settimeout(8)
    s.connect(("::1", 1))
    s.sendall(b"x")
    return "got" if s.recv(100) else "end"
show("door6", attempt(door6))
def own_server():	# whoever listens inside is reached inside, and only there
    s = socket.socket()
    s.bind(("203.0.113.5", 80))
    s.listen()
    return "listens"
show("own", attempt(own_server))
show("allowed", attempt(talk, "web.test", 80, b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n"))
""", ["web.test:80"], without)
    t.equal(got.pop("allowed"), "got", "an allowed name")
    t.check(got.pop("mptcp-allowed") in ("got", "EPROTONOSUPPORT", "EPERM", "EAFNOSUPPORT",
                                         "EACCES", "ENOPROTOOPT"), f"MPTCP: {got}")
    got.pop("own")
    t.check(got.pop("device") in ("set", "EPERM"), "a device that is the only one")
    t.check(not any(answer.startswith("slow") for answer in got.values()), f"had to wait: {got}")
    made = {name for name, answer in got.items() if answer in ("made", "set", "got", "0")}
    # datagrams, which go nowhere: gate_udp
    t.check(made <= {"udplite", "ping"}, f"made or got: {made}")
    quiet(t, world, "evil", "203.0.113.5")


@both
def test_streams(t, without):
    """What TCP can do beside streams: resets, urgent bytes, half-closes, ends from both sides, a
    storm of connections."""
    world = World(t)
    got, _ = inside(t, world, r"""
get = b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n"
def open_to(port=80, host="web.test"):
    s = socket.create_connection((host, port), 8)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def rest(s):
    got = b""
    try:
        while data := s.recv(65536):
            got += data
    except ConnectionError:
        return "reset"
    return got.split(b"\r\n")[0].decode("latin-1") or "end"
def resets():
    for i in range(300):
        s = open_to(5432 if i % 2 else 80, "web.test")
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if i % 3:
            s.send(get[:i % 40])
        s.close()
    return "done"
show("resets", attempt(resets))
def urgent(parts):
    s = open_to()
    for data, flags in parts:
        s.send(data, flags)
    return rest(s)
oob = socket.MSG_OOB
show("urgent",
     attempt(urgent, [(b"GET / HTTP/1.1\r\nHost: web.te", 0), (b"!", oob),
                      (b"st\r\nConnection: close\r\n\r\n", 0)]))
show("urgent-evil",
     attempt(urgent, [(b"GET /u HTTP/1.1\r\nHost: ", 0), (b"e", oob),
                      (b"vil.test\r\nConnection: close\r\n\r\n", 0)]))
show("urgent-web",
     attempt(urgent, [(b"GET /u HTTP/1.1\r\nHost: evil.test", 0), (b"\r", oob),
                      (b"\nHost: web.test\r\n\r\n", 0)]))
def half():
    s = open_to(5432)
    s.sendall(b"half")
    s.shutdown(socket.SHUT_WR)
    return rest(s)
show("half", attempt(half))
def together():
    for i in range(100):
        s = open_to(5432)
        s.sendall(b"x")
        s.shutdown(socket.SHUT_RDWR if i % 2 else socket.SHUT_RD)
        s.close()
    return "done"
show("together", attempt(together))
def storm():
    refused = 0
    for _ in range(25):
        waiting = []
        for _ in range(60):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((address, 5432))
            waiting.append(s)
        for s in waiting:
            s.close()
    return "done"
address = socket.gethostbyname("web.test")
show("storm", attempt(storm))
def begun():
    held = [open_to(443) for _ in range(100)]
    for s in held:
        s.sendall(b"\x16\x03\x01\x02\x00\x01")
    return "done"
show("begun", attempt(begun))
def many():
    s = open_to(5432)
    for i in range(2000):
        s.send(b"a")
    s.shutdown(socket.SHUT_WR)
    n = 0
    while data := s.recv(65536):
        n += len(data)
    return n
show("many", attempt(many))
show("after", attempt(urgent, [(get, 0)]))
""", ["web.test:80", "web.test:443", "web.test:5432"], without)
    t.equal((got["resets"], got["together"], got["storm"], got["begun"]), ("done",) * 4, "storms")
    t.equal((got["half"], got["many"], got["after"]), ("half", "2000", "HTTP/1.1 200 OK"),
            "streams")
    t.equal(got["urgent"], "HTTP/1.1 200 OK", "an urgent byte, which is not part of the stream")
    t.check("200" not in got["urgent-evil"] and "200" not in got["urgent-web"],
            f"urgent bytes: {got}")
    quiet(t, world, "evil", "vil.test")


@timeout(90)
def test_drowned(t):
    """However much that is allowed is said at the same time, each denial is in the report."""
    world = World(t)
    got, report = inside(t, world, r"""
def question(i):
    labels = [b"n%06d" % i, b"web", b"test"]
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l
                                                                for l in labels) + b"\0\0\1\0\1"
    return struct.pack(">H", len(q)) + q
streams = [socket.create_connection(("127.0.0.53", 53), 20) for _ in range(4)]
def drain(s):
    while s.recv(65536):
        pass
for s in streams:
    threading.Thread(target=drain, args=(s,), daemon=True).start()
for i in range(40):
    for n, s in enumerate(streams):
        s.sendall(b"".join(question(i * 400 + n * 100 + k) for k in range(100)))
    show(str(i), attempt(talk, "203.0.113.%d" % (i + 1), 80))
""", ["web.test:80", "*.web.test:80"], False)
    refused(t, got, got)
    told = {d["what"] for d in report["denials"]}
    missing = [i for i in range(1, 41) if f"connection to 203.0.113.{i}:80" not in told]
    t.equal(missing, [], "denials that the report does not have")


SERVER = r"""
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 7100))
s.listen(64)
print("up", flush=True)
while True:
    c, _ = s.accept()
    print("reached", flush=True)
    c.sendall(b"from the other sandbox")
    c.close()
"""


@both
def test_other_sandbox(t, without):
    """A sandbox reaches neither another one's servers nor its published port, and a service of the
    host's under no other port."""
    world = World(t)
    ws = t.workspace({"server.py": SERVER})
    argv = [*world.wrap(ws), *users.setpriv(t.person), t.ward_path, "run", "-p",
            policy(t, [], mode="none", ingress=[7100]), "--", "/usr/bin/python3", "server.py"]
    other = t.popen(argv, root=True)
    t.equal(other.stdout.readline(), b"up\n", "the other sandbox")
    r = world.run("/usr/bin/python3", "-c",
                  "import socket; print(socket.create_connection(('127.0.0.1', 7100), "
                  "8).recv(50).decode())", cwd=ws)
    t.contains(r.out, "from the other sandbox", "from the host")
    t.equal(other.stdout.readline(), b"reached\n", "the other sandbox")
    got, _ = inside(t, world, f"""
for host in ("127.0.0.1", "::1", "0.0.0.0", "localhost", "10.0.2.15", "{HOME}", "home.test", "loop.test", "cache", "198.18.0.1", "ward"):
    show(host, attempt(talk, host, 7100))
    def proxied():
        a = ask(("CONNECT %s:7100 HTTP/1.1\\r\\n\\r\\n" % host).encode(), where=("127.0.0.1", 3128))
        return "got" if b" 200 " in a else "end"
    show(host + " by proxy", attempt(proxied))
""", ["loop.test:7100", "home.test:7100", "*:7100", "web.test:80"], without,
                    host_services=["cache=127.0.0.1:7101"])
    refused(t, got, got)
    os.set_blocking(other.stdout.fileno(), False)
    t.check(not other.stdout.read(), "the other sandbox was reached")
