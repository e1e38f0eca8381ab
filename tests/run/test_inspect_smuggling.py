"""Requests that servers read differently, sent to a real nginx through a rule that looks into
them."""
import json
import os
import re
import shutil

from harness import smuggling
from harness.world import policy, serve, trusted_world

CLIENT = r"""
import json, socket, ssl, sys
context = ssl.create_default_context()
def send(data):
    s = socket.create_connection(("web.test", 9443), 20)
    s = context.wrap_socket(s, server_hostname="web.test")
    s.settimeout(20)
    got = b""
    try:
        s.sendall(data)
        while b"\r\n\r\n" not in got:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except OSError as error:
        return type(error).__name__
    finally:
        s.close()
    return got.split(b"\r\n")[0].decode("latin-1")
print(json.dumps([send(bytes.fromhex(data)) for data in json.load(open("rows.json"))]))
"""

NGINX = """
daemon off; master_process off; pid {d}/nginx.pid; error_log {d}/error.log; user root;
events {{}}
http {{ log_format seen '$request_method $request_uri $host'; access_log {d}/seen.log seen; client_body_temp_path {d}; proxy_temp_path {d};
fastcgi_temp_path {d}; uwsgi_temp_path {d}; scgi_temp_path {d};
server {{ listen 9443 ssl; root {d}; ssl_certificate {c}/server.pem; ssl_certificate_key {c}/server.key;
location / {{ return 200 "fine"; }} }} }}
"""


def test_smuggling(t):
    """What may be read in two ways is refused with an answer, and nginx sees none of it; what
    passes is seen as it was decided about."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if not nginx:
        t.skip("no nginx")
    world = trusted_world(t)
    t.write(world.dir, {"nginx.conf": NGINX.format(d=world.dir, c=world.certificates),
                        "seen.log": ""})
    serve(t, world, [nginx, "-c", os.path.join(world.dir, "nginx.conf")], 9443)
    rows = smuggling.rows()
    t.check(len(rows) >= 80, f"{len(rows)} rows")
    ws = t.workspace({"client.py": CLIENT,
                      "rows.json": json.dumps([data.hex() for _, data, _ in rows])})
    rules = [{"host": "web.test", "ports": [9443], "methods": ["GET", "POST"],
              "paths": ["/open/*"]}]
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws,
                   report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    with t.root():
        seen = (t.read(os.path.join(world.dir, "seen.log")) or "").splitlines()
    t.check(not [line for line in seen if "/hidden/" in line], f"smuggled: {seen}")
    numbers = {int(m.group(1)) for line in seen if (m := re.search(r"/open/(\d+)", line))}
    for i, ((name, _, passes), answer) in enumerate(zip(rows, json.loads(r.out))):
        if passes:
            t.contains(answer, "HTTP/1.1 200", name)
            t.check(i in numbers, f"{name}: nginx did not see it")
        else:
            t.check(re.match(r"HTTP/1.1 (400|403|421) ", answer), f"{name}: {answer}")
            t.check(i not in numbers, f"{name}: nginx saw it")
    t.check(all(line.endswith(" web.test") for line in seen), f"hosts: {seen}")
    t.contains(seen, f"GET /open/{len(rows) - 1}-second web.test",
               "the second of two requests in one packet")


# -- HTTP/2

H2_SERVER = r"""
const fs = require('fs');
const [dir, log, port] = process.argv.slice(2);
const server = require('http2').createSecureServer({ key: fs.readFileSync(dir + '/server.key'), cert: fs.readFileSync(dir + '/server.pem'), allowHTTP1: false });
server.on('stream', (stream, headers, flags, raw) => {
    let size = 0;
    stream.on('data', d => size += d.length);
    stream.on('error', () => {});
    stream.on('end', () => {
        if (stream.aborted || stream.destroyed)	// it was never complete
            return;
        fs.appendFileSync(log, JSON.stringify([headers[':method'], headers[':path'], headers[':authority'], headers[':scheme'], size, raw]) + '\n');
        stream.respond({ ':status': 200 });
        stream.end('fine');
    });
});
server.on('sessionError', () => {});
server.listen(port, '0.0.0.0');
"""

H2_CLIENT = r"""
import json, socket, ssl, struct
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I",
                       len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I",
                                                                              stream) + payload
def number(n):
    out = b""
    if n < 127:
        return bytes([n])
    n -= 127
    out = b"\x7f"
    while n >= 128:
        out += bytes([n % 128 + 128])
        n //= 128
    return out + bytes([n])
def block(fields):
    return b"".join(b"\x00" + number(len(n)) + n + number(len(v)) + v for n, v in fields)
def send(fields, body, trailers):
    s = context.wrap_socket(socket.create_connection(("web.test", 9449), 20),
                            server_hostname="web.test")
    s.settimeout(20)
    data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
    data += frame(1, 4 if body is not None or trailers else 5, 1, block(fields))
    if body is not None:
        data += frame(0, 0 if trailers else 1, 1, body)
    if trailers:
        data += frame(1, 5, 1, block(trailers))
    data += frame(6, 0, 0, b"over now")
    got, status = b"", "nothing"
    try:
        s.sendall(data)
        while True:
            more = s.recv(65536)
            if not more:
                return status if status != "nothing" else "end"
            got += more
            while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
                n, kind, flags = int.from_bytes(got[:3], "big"), got[3], got[4]
                payload, got = got[9:9 + n], got[9 + n:]
                if kind == 1:		# a status of the static table, or a literal
                    first = payload[0]
                    status = {0x88: "200", 0x8c: "400",
                              0x8d: "404"}.get(first) or next(
                                  (c for c in ("403", "421", "413", "502", "400", "200")
                                   if c.encode() in payload), "odd")
                    if status == "odd" and first in (0x48, 0x08):	# Huffman
                        status = "other"
                    if flags & 1:
                        return status
                elif kind == 3:
                    return "reset"
                elif kind == 7:
                    return "goaway"
                elif kind == 0 and flags & 1:
                    return status
    except OSError as error:
        return type(error).__name__
    finally:
        s.close()
rows = json.load(open("rows.json"))
h = bytes.fromhex
pairs = lambda x: [(h(n), h(v)) for n, v in x]
print(json.dumps([send(pairs(f), None if b is None else h(b), pairs(t)) for f, b, t in rows]))
"""


def h2_rows():
    """(name, fields, body, trailers, what the server must see as its path or None)."""
    def req(path=b"/open/@", *more, method=b"GET", scheme=b"https", authority=b"web.test:9449"):
        return [(b":method", method), (b":scheme", scheme), (b":authority", authority),
                (b":path", path), *more]
    same, none = b"/open/@", None
    rows = [
        ("plain", req(), None, [], same), ("post", req(b"/open/@", method=b"POST"), b"abc", [],
                                           same),
        ("length", req(b"/open/@", (b"content-length", b"3"), method=b"POST"), b"abc", [], same),
        ("length too long", req(b"/open/@", (b"content-length", b"4"), method=b"POST"), b"abc", [],
         none),
        ("length too short", req(b"/open/@", (b"content-length", b"2"), method=b"POST"), b"abc", [],
         none),
        ("length twice", req(b"/open/@", (b"content-length", b"3"), (b"content-length", b"3"),
                             method=b"POST"), b"abc", [], none),
        ("length signed", req(b"/open/@", (b"content-length", b"+3"), method=b"POST"), b"abc", [],
         none),
        ("length list", req(b"/open/@", (b"content-length", b"3, 3"), method=b"POST"), b"abc", [],
         none),
        ("transfer-encoding", req(b"/open/@", (b"transfer-encoding", b"chunked"), method=b"POST"),
         b"0\r\n\r\nGET /hidden/ HTTP/1.1\r\n\r\n", [], none),
        ("connection", req(b"/open/@", (b"connection", b"x-gone")), None, [], none),
        ("keep-alive", req(b"/open/@", (b"keep-alive", b"1")), None, [], none),
        ("upgrade", req(b"/open/@", (b"upgrade", b"websocket")), None, [], none),
        ("te gzip", req(b"/open/@", (b"te", b"gzip")), None, [], none),
        ("te trailers", req(b"/open/@", (b"te", b"trailers")), None, [], same),
        ("upper case name", req(b"/open/@", (b"X-Upper", b"1")), None, [], none),
        ("CRLF in a value", req(b"/open/@", (b"x", b"a\r\nHost: evil.test")), None, [], none),
        ("LF in a value", req(b"/open/@", (b"x", b"a\nb")), None, [], none),
        ("CR in a value", req(b"/open/@", (b"x", b"a\rb")), None, [], none),
        ("NUL in a value", req(b"/open/@", (b"x", b"a\x00b")), None, [], none),
        ("colon in a name", req(b"/open/@", (b"x:y", b"1")), None, [], none),
        ("space in a name", req(b"/open/@", (b"x y", b"1")), None, [], none),
        ("no name", req(b"/open/@", (b"", b"1")), None, [], none),
        ("CRLF in a name", req(b"/open/@", (b"x\r\ny", b"1")), None, [], none),
        ("CRLF in the path", req(b"/open/@ HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /hidden/"), None,
         [], none), ("space in the path", req(b"/open/@ x"), None, [], none),
        ("NUL in the path", req(b"/open/@\x00"), None, [], none),
        ("fragment", req(b"/open/@#x"), None, [], none),
        ("absolute path", req(b"https://evil.test/open/@"), None, [], none),
        ("no slash", req(b"open/@"), None, [], none), ("empty path", req(b""), None, [], none),
        ("star", req(b"*"), None, [], none),
        ("dots", req(b"/open/x/../@"), None, [], same),
        ("coded dots", req(b"/open/x/%2e%2e/@"), None, [], same),
        ("out of it", req(b"/open/../hidden/@"), None, [], none),
        ("coded slash", req(b"/open/..%2fhidden/@"), None, [], none),
        ("backslash", req(b"/open/..\\hidden/@"), None, [], none),
        ("two slashes", req(b"//evil.test/open/@"), None, [], none),
        ("method with a line", req(method=b"GET /hidden/ HTTP/1.1\r\nX:"), None, [], none),
        ("method lower case", req(method=b"get"), None, [], none),
        ("CONNECT", [(b":method", b"CONNECT"), (b":authority", b"evil.test:443")], None, [], none),
        ("scheme http", req(scheme=b"http"), None, [], none),
        ("scheme with a host", req(scheme=b"https://evil.test/hidden/?"), None, [], none),
        ("no scheme", [f for f in req() if f[0] != b":scheme"], None, [], none),
        ("no method", [f for f in req() if f[0] != b":method"], None, [], none),
        ("no path", [f for f in req() if f[0] != b":path"], None, [], none),
        ("no authority", [f for f in req() if f[0] != b":authority"], None, [], none),
        ("path twice", req() + [(b":path", b"/hidden/@")], None, [], none),
        ("method twice", [(b":method", b"POST"), *req()], None, [], none),
        ("authority twice", req() + [(b":authority", b"evil.test")], None, [], none),
        ("unknown pseudo", req() + [(b":proto", b"x")], None, [], none),
        ("status", req() + [(b":status", b"200")], None, [], none),
        ("pseudo at the end", [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/open/@"),
                               (b"x", b"1"), (b":authority", b"web.test:9449")], None, [], none),
        ("authority other", req(authority=b"evil.test"), None, [], none),
        ("authority other port", req(authority=b"web.test:443"), None, [], none),
        ("authority with a user", req(authority=b"web.test:9449@evil.test"), None, [], none),
        ("authority with a path", req(authority=b"web.test:9449/hidden"), None, [], none),
        ("authority upper case", req(authority=b"WEB.test:9449"), None, [], same),
        ("authority with a dot", req(authority=b"web.test.:9449"), None, [], same),
        ("authority empty", req(authority=b""), None, [], none),
        ("host other", req(b"/open/@", (b"host", b"evil.test")), None, [], none),
        ("host twice", req(b"/open/@", (b"host", b"web.test:9449"), (b"host", b"evil.test")), None,
         [], none),
        ("host alone", [f for f in req() if f[0] != b":authority"] + [(b"host", b"web.test:9449")],
         None, [], same),
        ("host alone other", [f for f in req() if f[0] != b":authority"]
         + [(b"host", b"evil.test")], None, [], none),
        ("trailers", req(method=b"POST"), b"abc", [(b"x-sum", b"1")], same),
        ("pseudo in trailers", req(method=b"POST"), b"abc", [(b":path", b"/hidden/@")], none),
        ("CRLF in trailers", req(method=b"POST"), b"abc", [(b"x", b"a\r\nb")], none),
        ("cookies apart", req(b"/open/@", (b"cookie", b"a=1"), (b"cookie", b"b=2")), None, [],
         same),
        ("many fields", req(b"/open/@", *[(b"x%d" % i, b"y") for i in range(400)]), None, [], none),
    ]
    put = lambda x, i: x.replace(b"@", b"%d" % i) if x is not None and b"@evil" not in x else x
    return [(name, [(n, put(v, i)) for n, v in fields], body, trailers, put(path, i))
            for i, (name, fields, body, trailers, path) in enumerate(rows)]


def test_smuggling_h2(t):
    """The same over HTTP/2, against a real server of it: what it parsed is what was decided about,
    and it sees nothing of what was refused."""
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    log = os.path.join(world.dir, "h2.log")
    t.write(world.dir, {"server.js": H2_SERVER, "h2.log": ""})
    serve(t, world, [node, os.path.join(world.dir, "server.js"), world.certificates, log,
                     "9449"], 9449)
    rows = h2_rows()
    plain = [[[[n.hex(), v.hex()] for n, v in fields], None if body is None else body.hex(),
              [[n.hex(), v.hex()] for n, v in trailers]] for _, fields, body, trailers, _ in rows]
    ws = t.workspace({"client.py": H2_CLIENT, "rows.json": json.dumps(plain)})
    rules = [{"host": "web.test", "ports": [9449], "methods": ["GET", "POST"],
              "paths": ["/open/*"]}]
    r = world.ward("run", "-p", policy(t, rules), "--", "/usr/bin/python3", "client.py", cwd=ws,
                   report=True, timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    with t.root():
        seen = [json.loads(line) for line in (t.read(log) or "").splitlines()]
    paths = [path for _, path, *_ in seen]
    t.check(all(authority == "web.test:9449" and scheme == "https" and method in ("GET", "POST")
                and path.startswith("/open/") for method, path, authority, scheme, *_ in seen),
            f"something else was seen: {seen}")
    t.check("hidden" not in json.dumps(seen) and "evil" not in json.dumps(seen),
            f"smuggled: {seen}")
    for (name, fields, body, _, path), answer in zip(rows, json.loads(r.out)):
        if path is None:
            t.check(answer != "200", f"{name}: {answer}")
        else:
            t.equal(answer, "200", name)
            t.equal(paths.count(path.decode()), 1, f"{name}: what the server saw ({paths})")
            method, size = next((m, n) for m, p, _, _, n, _ in seen if p == path.decode())
            t.equal((method, size), (next(v for n, v in fields if n == b":method").decode(),
                                     len(body or b"")), f"{name}: method and body")
    t.equal(len(seen), len([row for row in rows if row[4] is not None]),
            f"how many were seen ({paths})")
