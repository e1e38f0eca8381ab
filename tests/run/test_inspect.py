"""Rules with mode inspect: what programs trust, what is decided about requests, what reaches the
server."""
import glob
import json
import os
import shutil

from harness.world import NAMES, World, denial, policy, serve, trusted_world


def inside(t, world, rules, *argv, files=None, timeout=60, **options):
    ws = t.workspace(files or {})
    r = world.ward("run", "-p", policy(t, rules), "--", *argv, cwd=ws, report=True, timeout=timeout,
                   **options)
    return r


def test_curl(t):
    """A program that knows nothing of it reaches the server, which sees the request written
    anew."""
    world = trusted_world(t)
    r = inside(t, world, [{"host": "web.test", "methods": ["GET"]}], "/usr/bin/curl", "-sS",
               "https://web.test/plain?x=1")
    t.equal(r.rc, 0, "exit code")
    t.equal(r.out, "hello from web.test\n", "body")
    t.contains(world.log(), "http web.test /plain?x=1", "what the server saw")


RULES = [{"host": "web.test", "methods": ["GET", "HEAD"], "paths": ["/open/*", "/size/*"],
          "query": ["page=*", "q"]},
         {"host": "web.test", "methods": ["POST"], "paths": ["/in/*"],
          "content_types": ["application/json"], "request_limit": 1000},
         {"host": "www.web.test", "headers": ["X-Key: let*"], "response_limit": 5000},
         {"host": "web.test", "ports": [80], "methods": ["GET"], "paths": ["/open/*"]},
         {"host": "other.test", "mode": "inspect"},
         {"host": "db.test", "mode": "inspect", "receive_limit": 20000},
         {"host": "xn--mnchen-3ya.test", "mode": "inspect", "send_limit": 20000}]


CLIENT = r"""
import http.client, json, ssl, sys
context = ssl.create_default_context()
for line in json.load(open("requests.json")):
    method, url, headers, body = line
    scheme, rest = url.split("://")
    host, path = rest.split("/", 1)
    try:
        c = http.client.HTTPSConnection(host, timeout=20,
                                        context=context) if scheme == "https" else http.client.HTTPConnection(host, timeout=20)
        c.putrequest(method, "/" + path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            c.putheader(name, value)
        if body is not None:
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body.encode() if body is not None else None)
        r = c.getresponse()
        print(json.dumps([r.status, r.read().decode()]), flush=True)
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
"""


def requests(t, world, rules, *lines, **options):
    """Makes requests inside, each [method, url, headers, body]; returns [(status, body)] and the
    report."""
    r = inside(t, world, rules, "/usr/bin/python3", "client.py",
               files={"client.py": CLIENT, "requests.json": json.dumps(lines)}, **options)
    t.equal(r.rc, 0, "exit code")
    return [json.loads(line) for line in r.out.splitlines()], r.report


def get(path, method="GET", headers=None, body=None, url="https://web.test"):
    return [method, url + path, headers or {}, body]


JSON, WEB80 = {"Content-Type": "application/json"}, "http://web.test"


def test_rules(t):
    """Each thing that a rule can say of HTTP allows one request and denies another; what is denied
    never reaches the server."""
    world = trusted_world(t)
    allowed = [get("/open/a"), get("/open/q?page=2&q=x"), get("/open/80", url=WEB80),
               get("/in/x", "POST", JSON, "{}"),
               get("/any", headers={"X-Key": "letmein"}, url="https://www.web.test"),
               get("/any/NOTDENIED", "POST", {}, "x", "https://other.test"),
               get("/open/%61%2e/..%2e/y"), get("/open/../open//b"), get("/size/3000000")]
    denied = [(get("/secret/DENIED"), 403, "path"), (get("/open/DENIED", "DELETE"), 403, "method"),
              (get("/open/DENIED?other=1"), 403, "query"), (get("/DENIED", url=WEB80), 403, "path"),
              (get("/in/DENIED", "POST", {"Content-Type": "text/plain"}, "x"), 403, "content_type"),
              (get("/in/DENIED", "POST", JSON, "x" * 1001), 413, "request_size"),
              (get("/DENIED", url="https://www.web.test"), 403, "header"),
              (get("/DENIED", headers={"X-Key": "no"}, url="https://www.web.test"), 403, "header"),
              (get("/open/../secret/DENIED"), 403, "path"),
              (get("/open/%2e%2e/secret/DENIED"), 403, "path"),
              (get("/open/..%2fsecret/DENIED"), 400, "path_bad"),
              (get("/open/..;/secret/DENIED"), 400, "path_bad"),
              (get("/open/%00DENIED"), 400, "path_bad"),
              (get("/open/%c0%ae%c0%ae/DENIED"), 400, "path_bad"),
              (get("/open/%252e%252e/DENIED"), 400, "path_bad"),
              (get("/../DENIED"), 400, "path_bad"),
              (get("/open/DENIED", headers={"Host": "evil.test"}), 421, "wrong_host"),
              (get("/open/DENIED", headers={"Host": "evil.test"}, url=WEB80), 421, "wrong_host"),
              (get("/open/DENIED", headers={"Upgrade": "websocket", "Connection": "Upgrade"}), 403,
               "websocket")]
    got, report = requests(t, world, RULES, *allowed, *[line for line, _, _ in denied],
                           get("/size/100000", url="https://db.test"),
                           get("/up", "POST", {}, "x" * 100000, "https://xn--mnchen-3ya.test"),
                           get("/size/100000", headers={"X-Key": "letmein"},
                               url="https://www.web.test"))
    for line, (status, body) in zip(allowed, got):
        t.equal(status, 200, f"{line} ({body[:200]})")
    t.equal(len(got[len(allowed) - 1][1]), 3000000, "a large response")
    for (line, status, reason), (was, body) in zip(denied, got[len(allowed):]):
        t.equal(was, status, f"{line} ({body[:200]})")
        t.equal(json.loads(body)["reason"], reason, line)
        t.equal(json.loads(body)["error"], "refused by ward", line)
    t.check(got[-1][0] in ("IncompleteRead", "ConnectionResetError"),
            f"too large a response breaks off: {got[-1][0]}")
    for status, _ in got[-3:-1]:
        t.check(not isinstance(status, int) or status == 502, f"a limit on bytes: {status}")
    whys = {d["why"] for d in report["denials"] if "limit on" in d["why"]}
    t.equal(whys, {"the limit on received bytes is used up", "the limit on sent bytes is used up"},
            "limits")
    log = world.log()
    t.check(not [line for line in log if "/DENIED" in line],
            f"the server saw a denied request: {log}")
    t.contains(log, "http web.test /open/b", "the path in its normal form")
    t.contains(denial(t, report, "DELETE /open/DENIED to web.test:443")["remedy"],
               "methods: [DELETE]", "remedy")
    t.contains(denial(t, report, "GET /secret/DENIED to web.test:443")["remedy"],
               'paths: ["/secret/DENIED"]', "remedy")
    t.contains(denial(t, report, "GET /size/100000 to www.web.test:443")["why"],
               "larger than the rule allows", "why")


JAVA = """
import java.net.URI;
import java.net.http.*;
public class Get {
    public static void main(String[] a) throws Exception {
        HttpRequest q = HttpRequest.newBuilder(URI.create("https://web.test/java")).build();
        System.out.print(HttpClient.newHttpClient().send(q, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""


def test_clients_trust_it(t):
    """Programs with TLS libraries of all kinds trust the sandbox's authority, and no variable of
    the host's leads them elsewhere."""
    world = trusted_world(t)
    clients = {
        "curl": "curl -sS https://web.test/curl",
        "wget": "wget -qO- https://web.test/wget",
        "openssl": "echo | openssl s_client -verify_return_error -connect web.test:443 -servername "
        "web.test >/dev/null 2>&1 && echo hello from web.test",
        "python3": "python3 -c 'import urllib.request as u; "
        "print(u.urlopen(\"https://web.test/python\").read().decode(), end=\"\")'",
        "requests": "/usr/bin/python3 -c 'import requests; "
        "print(requests.get(\"https://web.test/requests\").text, end=\"\")'",
        "node": "node -e 'fetch(\"https://web.test/node\").then(r => r.text()).then(t => "
        "process.stdout.write(t))'",
        "java": "java Get.java 2>/dev/null",
        "proxy": "curl -sS -x http://127.0.0.1:3128 https://web.test/connect",
        "socks": "curl -sS -x socks5h://127.0.0.1:1080 https://web.test/socks",
    }
    if t.person.pw_uid == 0:
        del clients["java"]	# it takes long, and once is enough
    missing = [name for name in ("wget", "openssl", "node", "java") if not shutil.which(name)]
    if not os.path.exists("/usr/lib/python3/dist-packages/requests/__init__.py"):
        missing.append("requests")
    script = "".join(f"echo \"{name} $({command})\"\n" for name, command in clients.items()
                     if name not in missing)
    r = inside(t, world, ["web.test:7", {"host": "web.test", "mode": "inspect"}], "/bin/sh",
               "clients.sh",
               files={"clients.sh": script, "Get.java": JAVA},
               env={"NODE_EXTRA_CA_CERTS": "/nowhere", "CURL_CA_BUNDLE": "/nowhere"},
               timeout=120)
    t.equal(r.rc, 0, "exit code")
    got = dict(line.split(" ", 1) for line in r.out.splitlines() if " " in line)
    for name in clients:
        if name not in missing:
            t.equal(got.get(name), "hello from web.test", f"{name} ({r.err})")
    t.check("curl" in got, "curl was tried")


def test_who_is_not_believed(t):
    """A server that the host does not trust, a program that trusts no authority but its own, names
    that do not fit."""
    world = World(t)	# the host trusts none of its certificates
    script = r"""
import http.client, json, socket, ssl
def say(what, f):
    try:
        print(what, f(), flush=True)
    except Exception as error:
        print(what, type(error).__name__, flush=True)
def tls(name, context):
    s = context.wrap_socket(socket.create_connection(("web.test", 443), 20), server_hostname=name)
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n")
    r = http.client.HTTPResponse(s)
    r.begin()
    return f"{r.status} {json.loads(r.read())['reason']}"
context = ssl.create_default_context()
loose = ssl._create_unverified_context()
say("untrusted", lambda: tls("web.test", context))
say("pinned", lambda: tls("web.test", ssl.create_default_context(cafile="ca.pem")))
say("other", lambda: tls("evil.test", loose))
say("none", lambda: tls(None, loose))
def plain():
    s = socket.create_connection(("web.test", 443), 20)
    s.sendall(b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n")
    return s.recv(100)[:4]
say("plain", plain)
"""
    r = inside(t, world, [{"host": "web.test", "mode": "inspect"}], "/usr/bin/python3", "script.py",
               files={"script.py": script,
                      "ca.pem": open(os.path.join(world.certificates, "ca.pem")).read()})
    t.equal(r.rc, 0, "exit code")
    got = dict(line.split(" ", 1) for line in r.out.splitlines())
    t.equal(got["untrusted"], "502 upstream_tls", "an upstream that is not trusted")
    t.equal(got["pinned"], "SSLCertVerificationError", "a program that pins")
    t.check(got["other"] in ("SSLError", "ConnectionResetError"), f"another name: {got['other']}")
    t.check(got["none"] in ("SSLError", "ConnectionResetError"), f"no name: {got['none']}")
    t.check("HTTP" not in got["plain"], f"no TLS at all: {got['plain']}")
    whys = {d["why"]: d for d in r.report["denials"]}
    t.contains(whys["the program does not trust the sandbox's certificate authority"]["remedy"],
               "mode: splice", "remedy")
    t.check("the TLS ClientHello names a different server (SNI) than the connection" in whys,
            f"wrong name: {whys}")
    t.check("the TLS ClientHello has no server name (SNI)" in whys, f"no name: {whys}")
    t.check(any("web.test is not trusted" in d["what"] for d in r.report["denials"]),
            f"the server: {whys}")
    t.check(not [line for line in world.log() if line.startswith("http")],
            "no request reached the server")


def test_long_requests_are_on_record(t):
    """A name of two hundred letters and a long path hide nothing from the journal; what is too long
    says that it is cut."""
    name = ".".join(["n" * 60] * 3) + ".web.test"
    world = World(t, {name: NAMES["web.test"]})
    ws = t.workspace({"client.py": "import http.client\nfor path in %r:\n"
                      "    c = http.client.HTTPConnection(%r, 80, timeout=20)\n"
                      "    c.request('GET', path)\n    print(c.getresponse().status)\n"
                      % (["/short/HERE", "/" + "p" * 300 + "/HERE", "/" + "p" * 3000 + "/NOT-HERE"],
                         name)})
    r = world.ward("run", "-p",
                   policy(t, [{"host": "*.web.test", "ports": [80], "methods": ["GET"]}]), "--",
                   "/usr/bin/python3", "client.py", cwd=ws, timeout=60)
    t.equal((r.rc, len(r.out.split())), (0, 3), f"exit code and answers ({r.out} {r.err})")
    events = [json.loads(line)
              for path in glob.glob(os.path.join(t.state_dir, "audit/runs/*.jsonl"))
              for line in open(path)]
    asked = [(e["url"], e.get("cut", False)) for e in events if e["kind"] == "net.http"]
    t.equal([(url[-5:], cut) for url, cut in sorted(asked, key=lambda a: len(a[0]))],
            [("/HERE", False), ("/HERE", False), ("pp...", True)], f"requests on record: {asked}")
    t.check(all(name in url for url, _ in asked), f"the name: {asked}")


# Reads what comes and never says a word, but to those who ask for half an answer.
MUTE = r"""
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/server.pem", sys.argv[1] + "/server.key")
def serve(c):
    c, got = context.wrap_socket(c, server_side=True), b""
    while more := c.recv(4096):
        got += more
        if b"/half" in got and b"\r\n\r\n" in got:
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            got = b""
with socket.create_server(("0.0.0.0", 9461), backlog=64) as listener:
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

HASTY = r"""
import socket, ssl, time
kept, context = [], ssl.create_default_context()
def send(path, wait, keep):
    s = context.wrap_socket(socket.create_connection(("web.test", 9461), 20),
                            server_hostname="web.test")
    s.sendall(b"POST /%s HTTP/1.1\r\nHost: web.test:9461\r\nContent-Length: 5\r\n\r\nhello" % path)
    if wait:
        s.recv(4096)
    time.sleep(0.3)
    (kept.append(s) if keep else s.close())
send(b"gone", False, False)
send(b"half-gone", True, False)
send(b"waits", False, True)
send(b"half-waits", True, True)
time.sleep(0.3)
"""


def test_unanswered_requests_are_on_record(t):
    """A program that does not wait for an answer, or for the rest of one, has asked all the same;
    one that waits when the run ends, too."""
    world = trusted_world(t)
    t.write(world.dir, {"mute.py": MUTE})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "mute.py"),
                     world.certificates], 9461)
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [9461], "methods": ["POST"]}]), "--",
                   "/usr/bin/python3", "client.py",
                   cwd=t.workspace({"client.py": HASTY}), timeout=60)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    events = [json.loads(line)
              for path in glob.glob(os.path.join(t.state_dir, "audit/runs/*.jsonl"))
              for line in open(path)]
    t.equal(sorted((e["url"].rsplit("/", 1)[1], e.get("status")) for e in events
                   if e["kind"] == "net.http"),
            [("gone", None), ("half-gone", 200), ("half-waits", 200), ("waits", None)],
            "requests on record")


def test_nothing_but_plain_rules(t):
    """Rules that look into requests in the clear alone need no trust store, and work without
    one."""
    world = World(t)
    r = inside(t, world, [{"host": "web.test", "ports": [80], "mode": "http", "methods": ["GET"]}],
               "/usr/bin/curl", "-sS", "-m", "10", "http://web.test/plain")
    t.equal((r.rc, r.out), (0, "hello from web.test\n"), f"exit code and answer ({r.err})")
    r = inside(t, world, [{"host": "web.test", "ports": [80], "mode": "http", "methods": ["GET"]}],
               "/usr/bin/curl", "-sS", "-m", "10", "-X", "DELETE", "http://web.test/plain")
    t.contains(r.out, '"reason":"method"', f"another method ({r.err})")
