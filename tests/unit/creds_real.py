#!/usr/bin/python3
"""ward-secrets and ward-keys beside a real TLS server: creds_real.py WARD_SECRETS [root|user]. This
program is supervisor and front in one; as user, root becomes nobody first.

What must hold: the server gets the secret, in exactly its place; nothing that comes back, and
nothing that leaves elsewhere, has it.
"""
import base64
import gzip
import hashlib
import hmac
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

DIRECTORY = tempfile.TemporaryDirectory(prefix="ward-creds-")
HERE = DIRECTORY.name
PROGRAM = os.path.abspath(sys.argv[1])
if sys.argv[2:] == ["user"] and os.getuid() == 0:
    os.mkdir(f"{HERE}/bin")
    for name in ("ward-secrets", "ward-secret-http", "../inspect/ward-gateway-tls"):
        shutil.copy(os.path.join(os.path.dirname(PROGRAM), name), f"{HERE}/bin")
    PROGRAM = f"{HERE}/bin/ward-secrets"
    os.chmod(HERE, 0o777)
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        DIRECTORY.cleanup()
        sys.exit(1 if code else 0)
    DIRECTORY._finalizer.detach()       # the parent's
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
KEY = "sk-proj-" + "REALxVALUExOFxTHExSECRETx0123456789abcdefghij"
AWS = ("AKIAREALREALREALREAL", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEREAL",
       "TOKENxREALxTOKENxREALxTOKENxREAL0")
PASSWORD = "FILExPASSWORDxREALx42+/=x"
SEEN, FREE, READY, OK, ERROR, ROWS, EVENT, SHOWN = 1, None, 129, 130, 131, 132, 133, 128
GRANT, WORDS, FETCH, KEYS, LIST, REVOKE = 2, 3, 4, 5, 6, 7
failed = []


def check(what, good, more=""):
    if not good:
        failed.append(what)
        print("FAILED", what, more, file=sys.stderr)


# --- the server

got = []


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        got.append((self.command, self.path, list(self.headers.items()), body))
        text = json.dumps(list(self.headers.items())).encode()
        if self.path.startswith("/slow"):
            time.sleep(1)
        if self.path.startswith("/chunks"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for n in range(0, len(text), 7):
                piece = text[n:n + 7]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        if self.path.startswith("/encoded"):
            value = self.headers["Authorization"].split()[-1].encode()
            text = b"|".join([base64.b64encode(value), base64.b64encode(b"x" + value),
                              base64.b64encode(b"yy" + value), value.hex().encode(),
                              urllib.parse.quote(value, safe="").encode(),
                              base64.urlsafe_b64encode(b"Bearer " + value)])
        if self.path.startswith("/zip"):
            text = gzip.compress(text)
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
        elif self.path.startswith("/redirect"):
            self.send_response(302)
            self.send_header("Location", "https://elsewhere.example/")
        else:
            self.send_response(200)
        if self.path.startswith("/reflect"):
            self.send_header("X-Reflected", dict(self.headers).get("Authorization", ""))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, cwd=HERE)


def start_server():
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-subj",
            "/CN=test authority", "-days", "2")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            "leaf.key", "-out", "leaf.csr", "-subj", "/CN=leaf")
    with open(f"{HERE}/ext", "w") as f:
        f.write(
            "subjectAltName=DNS:api.example,DNS:bucket.s3.example,DNS:basic.example,"
            "DNS:q.example\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "leaf.pem", "-days", "2", "-extfile", "ext")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.handle_error = lambda *_: None       # requests that are cut off
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{HERE}/leaf.pem", f"{HERE}/leaf.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


# --- ward-secrets

class Secrets:
    def __init__(self, environment):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([PROGRAM], env=environment,
                                        preexec_fn=lambda: os.dup2(theirs.fileno(), 3),
                                        close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        theirs.close()
        self.socket.settimeout(30)
        self.events = []

    def say(self, op, text=b"", tag=0, code=0, fds=()):
        socket.send_fds(self.socket, [struct.pack("<IiQ", op, code, tag) + text], list(fds))

    def read_message(self):
        while True:
            bytes_ = self.socket.recv(200000)
            if not bytes_:
                return None
            op, code, tag = struct.unpack_from("<IiQ", bytes_)
            if op != EVENT:
                return op, code, tag, bytes_[16:]
            self.take_event(bytes_[16:])

    def take_event(self, b):
        kind, action, shown, count = struct.unpack_from("<IIII", b)
        text = [b[16:84], b[84:340], b[340:460]]
        self.events.append((kind, action, shown, *[t.split(b"\0")[0].decode() for t in text]))

    def fetch(self, grants, leaks=0, words=(), seen=()):
        for path in seen:
            self.say(SEEN, path.encode())
        for grant in grants:
            self.say(GRANT, json.dumps(grant).encode(), code=leaks)
        if words:
            self.say(WORDS, b"".join(w.encode() + b"\0" for w in words))
        self.say(FETCH)
        shown = {}
        while True:
            answer = self.read_message()
            if answer is None:
                return "ended", shown
            op, _, _, text = answer
            if op == SHOWN:
                name, value = text.rstrip(b"\0").decode().split("=", 1)
                shown[name] = value
            elif op == READY:
                return None, shown
            elif op == ERROR:
                return [t.decode() for t in text.split(b"\0")], shown

    def start_keys(self):
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with open(f"{HERE}/ca.pem") as trust:
            self.say(KEYS, fds=[theirs.fileno(), trust.fileno()])
        theirs.close()

    def connect(self, host, port, offer=1):
        """A connection, and what ward-keys says of it: what the server speaks, or why it is
        none."""
        server = socket.create_connection(("127.0.0.1", port))
        server.setblocking(False)
        mine, theirs = socket.socketpair()
        message = struct.pack("<IHH256sI", 0x776b6f32, 443, len(host), host.encode(), offer)
        socket.send_fds(self.link, [message], [server.fileno(), theirs.fileno()])
        server.close()
        theirs.close()
        mine.settimeout(20)
        said = mine.recv(1)
        while said[:1] == b"!" and (more := mine.recv(1000)):
            said += more
        return mine, said

    def rows(self):
        self.say(LIST, tag=7)
        op, _, _, text = self.read_message()
        check("rows", op == ROWS)
        size = 68 + 140 + 80 + 256 + 8 + 24
        return [{"name": text[i:i + 68].split(b"\0")[0].decode(),
                 "state": struct.unpack_from("<I", text, i + 544)[0],
                 "uses": struct.unpack_from("<Q", text, i + 552)[0]}
                for i in range(0, len(text), size)]

    def keys_pid(self):
        for pid in os.listdir("/proc"):
            try:
                if pid.isdigit() and open(f"/proc/{pid}/stat").read().split()[3] == str(
                    self.process.pid):
                    return int(pid)
            except OSError:
                pass
        return None

    def end(self):
        self.socket.close()
        self.process.wait(10)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_answer(s, head=False):
    file = s.makefile("rb")
    try:
        line = file.readline()
    except ConnectionResetError:
        line = b""
    if not line:
        return 0, {}, b""
    headers = {}
    while (h := file.readline().strip()):
        name, value = h.decode("latin-1").split(":", 1)
        headers[name.lower()] = value.strip()
    if head:
        body = b""
    elif headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(file.readline(), 16):
            body += file.read(size)
            file.readline()
        file.readline()
    else:
        body = file.read(int(headers.get("content-length", 0)))
    return int(line.split()[1]), headers, body


def ask(keys, port, text, host="api.example", pieces=0):
    s, said = keys.connect(host, port)
    if said != b"1":
        return 0, {}, said
    try:
        for i in range(0, len(text), pieces or len(text)):
            s.sendall(text[i:i + (pieces or len(text))])
            time.sleep(0.001 if pieces else 0)
    except (BrokenPipeError, ConnectionResetError):
        pass        # it was stopped on the way
    answer = read_answer(s, text.startswith(b"HEAD"))
    s.close()
    return answer


def request(path="/", method="GET", host="api.example", headers=(), body=None):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def everything(values):
    """What no answer may have: each value in every form."""
    for value in values:
        v = value.encode()
        yield from [v, base64.b64encode(v)[:-4], base64.b64encode(b"x" + v)[4:-4],
                    base64.b64encode(b"xx" + v)[4:-4], v.hex().encode(),
                    v.hex().upper().encode(), base64.urlsafe_b64encode(v)[:-4]]
        if urllib.parse.quote(value, safe="") != value:
            yield urllib.parse.quote(value, safe="").encode()


def is_clean(answer):
    text = repr(answer).encode() + answer[2]
    return not any(form in text for form in everything([KEY, *AWS[1:], PASSWORD]))


# --- the tests

def grants():
    with open(f"{HERE}/password", "w") as f:
        f.write(PASSWORD + "\n")
    os.chmod(f"{HERE}/password", 0o600)
    return [{"name": "openai", "source": "env:OPENAI_API_KEY", "hosts": ["api.example"],
             "paths": ["/*"], "methods": ["GET", "POST", "PUT", "HEAD"]},
            {"name": "aws",
             "source": "env:AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY,AWS_SESSION_TOKEN",
             "hosts": ["*.s3.example"],
             "sigv4": "eu-west-1/*"},
            {"name": "basic", "source": f"file:{HERE}/password", "hosts": ["basic.example"],
             "basic": "joe", "as": "PW"},
            {"name": "query", "source": f"cmd:cat '{HERE}/password'", "hosts": ["q.example"],
             "query": "key", "max_uses": 2}]


ENVIRONMENT = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": KEY, "AWS_ACCESS_KEY_ID": AWS[0],
               "AWS_SECRET_ACCESS_KEY": AWS[1],
               "AWS_SESSION_TOKEN": AWS[2], "HOME": "/"}


def sign(method, path, query, headers, names, body_hash, key, scope, date):
    """Signature Version 4 as AWS describes it, written a second time."""
    canonical = "\n".join([method, path, query, *[f"{n}:{headers[n]}" for n in names], "",
                           ";".join(names), body_hash])
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    k = ("AWS4" + key).encode()
    for part in scope.split("/"):
        k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    return hmac.new(k, text.encode(), hashlib.sha256).hexdigest()


def test_places(s, port, shown):
    token = shown["OPENAI_API_KEY"]
    check("placeholder", token.startswith("sk-proj-") and len(token) == len(KEY) and token != KEY
          and "WARD" in token, token)
    check("AKIA", shown["AWS_ACCESS_KEY_ID"].startswith("AKIA")
          and len(shown["AWS_ACCESS_KEY_ID"]) == 20)
    for headers in [[f"Authorization: Bearer {token}"], [],
                    ["Authorization: Bearer somebody-elses"],
                    ["authorization: a", "Authorization: b"]]:
        got.clear()
        answer = ask(s, port, request(headers=headers))
        check("status", answer[0] == 200, answer)
        check("the server got the secret",
              [v for n, v in got[0][2] if n.lower() == "authorization"] == [f"Bearer {KEY}"], got)
        check("the answer is clean", is_clean(answer), answer)
    for path in ["/reflect", "/chunks", "/encoded"]:
        answer = ask(s, port, request(path))
        check(f"{path} is clean", answer[0] == 200 and is_clean(answer) and b"xxxxxx" in answer[2],
              answer)
        check(f"{path} got it", f"Bearer {KEY}" in dict(got[-1][2]).values())
    check("a coding that was not asked for", ask(s, port, request("/zip"))[0] == 502)
    check("a redirect is only told", ask(s, port, request("/redirect"))[0] == 302)
    check("identity is asked for", dict(got[-1][2])["Accept-Encoding"] == "identity")
    check("HEAD", ask(s, port, request("/", "HEAD"))[0] == 200)
    # two requests on one connection, in small pieces
    c, _ = s.connect("api.example", port)
    for _ in range(2):
        for byte in request("/one", "POST", body=b"hello"):
            c.sendall(bytes([byte]))
        check("kept alive", read_answer(c)[0] == 200)
    c.close()
    # whoever goes away costs nothing, and leaves nothing
    before = cpu_seconds(s.keys_pid())
    for _ in range(3):
        c, _ = s.connect("api.example", port)
        c.sendall(request("/slow"))
        time.sleep(0.1)
        c.close()
    time.sleep(1)
    check("no turning in circles", cpu_seconds(s.keys_pid()) - before < 0.4,
          cpu_seconds(s.keys_pid()) - before)
    # basic and query
    got.clear()
    ask(s, port,
        request(host="basic.example",
                headers=["Authorization: Basic "
                         f"{base64.b64encode(b'x:' + shown['PW'].encode()).decode()}"]),
        "basic.example")
    check("basic", dict(got[0][2]).get("Authorization") == "Basic "
          + base64.b64encode(f"joe:{PASSWORD}".encode()).decode(), got)
    ask(s, port, request("/a?x=1&key=mine&y=2", host="q.example"), "q.example")
    check("query", got[-1][1] == "/a?x=1&y=2&key=" + urllib.parse.quote(PASSWORD, safe=""),
          got[-1][1])
    ask(s, port, request("/b", host="q.example"), "q.example")
    check("query alone", got[-1][1] == "/b?key=" + urllib.parse.quote(PASSWORD, safe=""),
          got[-1][1])
    n = len(got)
    answer = ask(s, port, request("/b", host="q.example"), "q.example")
    check("max_uses", answer[0] == 403 and b"max_uses" in answer[2] and len(got) == n, answer)


def test_sigv4(s, port, shown):
    scope, date = "20260102/eu-west-1/s3/aws4_request", "20260102T030405Z"
    body = b"some bytes"
    for service, with_hash in [("s3", True), ("dynamodb", False)]:
        scope = f"20260102/eu-west-1/{service}/aws4_request"
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": "bucket.s3.example", "x-amz-date": date,
                   "x-amz-security-token": shown["AWS_SESSION_TOKEN"]}
        if with_hash:
            headers["x-amz-content-sha256"] = digest
        names = sorted(headers)
        text = request("/a%20b/c?b=2&a=1%2F", "PUT", "bucket.s3.example",
                       [f"{n}: {v}" for n, v in headers.items() if n != "host"] + [
            f"Authorization: AWS4-HMAC-SHA256 Credential={shown['AWS_ACCESS_KEY_ID']}/{scope}, "
            f"SignedHeaders={';'.join(names)}, Signature=00"], body)
        got.clear()
        answer = ask(s, port, text, "bucket.s3.example")
        check("sigv4 status", answer[0] == 200, answer)
        sent = {n.lower(): v for n, v in got[0][2]}
        headers["x-amz-security-token"] = AWS[2]
        path = "/a%20b/c" if service == "s3" else "/a%2520b/c"
        wanted = sign("PUT", path, "a=1%2F&b=2", headers, names, digest, AWS[1], scope, date)
        check(f"sigv4 {service}",
              sent["authorization"] == f"AWS4-HMAC-SHA256 Credential={AWS[0]}/{scope}, "
              f"SignedHeaders={';'.join(names)}, "
              f"Signature={wanted}", sent)
        check("sigv4 token", sent["x-amz-security-token"] == AWS[2] and got[0][3] == body)
    n = len(got)
    check("unsigned", ask(s, port, request("/", host="bucket.s3.example"), "bucket.s3.example")[0]
          == 403)
    other = text.replace(b"eu-west-1", b"us-east-1")
    check("another region", ask(s, port, other, "bucket.s3.example")[0] == 403 and len(got) == n)


def test_leaks(s, port, shown):
    token = shown["OPENAI_API_KEY"]
    pw = shown["PW"]
    n = len(got)

    def blocked(what, text, host="api.example", pieces=0):
        s.events.clear()
        before = len(got)
        answer = ask(s, port, text, host, pieces)
        check(f"{what} is blocked", answer[0] in (0, 403) and len(got) == before,
              (answer, got[before:]))

    for value in (token, KEY):
        blocked("another header", request(headers=[f"X-Other: a{value}b"]))
        blocked("query", request(f"/?q={urllib.parse.quote(value)}"))
        blocked("body", request("/", "POST", body=b"{" + value.encode() + b"}"))
        blocked("base64 body",
                request("/", "POST", body=base64.b64encode(b"ab" + value.encode() + b"rest")))
        blocked("hex body", request("/", "POST", body=value.encode().hex().encode()))
        blocked("split body", request("/", "POST", body=b"x" * 50 + value.encode() + b"y" * 50),
                pieces=3)
        blocked("gzip body", request("/", "POST", headers=["Content-Encoding: gzip"],
                                     body=gzip.compress(b"z" * 9000 + value.encode())))
        blocked("unknown coding", request("/", "POST", headers=["Content-Encoding: br"],
                                          body=b"abc"))
        blocked("another host", request(host="basic.example", headers=[f"X: {value}"]),
                "basic.example")
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(value[i:i + 5]), value[i:i + 5].encode())
                           for i in range(0, len(value), 5)) + b"0\r\n\r\n"
        blocked("chunked body", request("/", "POST", headers=["Transfer-Encoding: chunked"])
                + chunked)
    for head, body in ((["Content-Length: 300000"], b"x" * 299950),
                       (["Transfer-Encoding: chunked"],
                        b"40000\r\n" + b"x" * 0x40000 + b"\r\n40\r\n")):
        ask(s, port, request("/large", "POST", headers=head) + body + KEY.encode() + b"y" * 20)
        check("a large body is cut off", all(KEY.encode() not in g[3] for g in got))
    del got[n:]
    blocked("the other grant's placeholder", request(headers=[f"X-Api-Key: {pw}"]))
    bomb = gzip.compress(b"\0" * (64 << 20))
    blocked("a gzip bomb", request("/", "POST", headers=["Content-Encoding: gzip"],
                                   body=bomb + gzip.compress(KEY.encode())))
    check("nothing reached the server", len(got) == n)
    check("smuggled host", ask(s, port, request(host="evil.example"))[0] == 403 and len(got) == n)
    check("method without a grant goes without", ask(s, port, request("/", "DELETE"))[0] == 200
          and "Authorization" not in dict(got[-1][2]))
    s.rows()
    kinds = [e[0] for e in s.events]
    check("leaks are told", 2 in kinds, kinds)


def test_life(s, port):
    rows = {r["name"]: r for r in s.rows()}
    check("uses are counted", rows["openai"]["uses"] > 5 and rows["query"]["uses"] == 2
          and rows["query"]["state"] == 3, rows)
    s.say(REVOKE, b"openai", tag=9)
    check("revoked", s.read_message()[0] == OK)
    time.sleep(0.05)
    n = len(got)
    answer = ask(s, port, request())
    check("a revoked grant is refused", answer[0] == 403 and b"revoked" in answer[2]
          and len(got) == n, answer)
    s.say(REVOKE, b"nothing", tag=9)
    check("nothing to revoke", s.read_message()[0] == ERROR)
    # one more while it runs, by descriptor
    r, w = os.pipe()
    os.write(w, b"HANDEDxOVERxSECRETx123\n")
    os.close(w)
    s.say(GRANT, json.dumps({"name": "late", "source": "env:NOWHERE", "hosts": ["api.example"],
                             "header": "X-Late: {}", "ttl_seconds": 2}).encode(), tag=11, fds=[r])
    os.close(r)
    op, _, tag, text = s.read_message()
    check("granted late", op == OK and tag == 11, text)
    time.sleep(0.05)
    got.clear()
    answer = ask(s, port, request("/late", "POST", body=b""))
    check("the late grant is used",
          got and dict(got[0][2]).get("X-Late") == "HANDEDxOVERxSECRETx123", (got, answer))
    time.sleep(2.1)
    answer = ask(s, port, request("/late", "POST", body=b""))
    check("it expires", answer[0] == 403 and b"expired" in answer[2], answer)


def test_process(s):
    pid = s.keys_pid()
    check("keys runs", pid is not None)
    status = open(f"/proc/{pid}/status").read()
    check("keys is confined", "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status, status)
    check("keys' memory is locked", int(status.split("VmLck:")[1].split()[0]) >= 64, status)
    for other in (pid, s.process.pid):
        if os.getuid():
            try:
                open(f"/proc/{other}/environ", "rb").read()
                check("not dumpable", False)
            except PermissionError:
                pass
    return pid


def test_refusals(port):
    os.chmod(f"{HERE}/password", 0o644)
    one = {"name": "n", "hosts": ["api.example"]}
    cases = [({**one, "source": "env:NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set", {}),
             ({**one, "source": f"file:{HERE}/password"}, "other users may read", {}),
             ({**one, "source": f"file:{HERE}/nothing"}, "cannot find the file", {}),
             ({**one, "source": f"file:{HERE}/ca.key"}, "visible inside",
              {"seen": [os.path.realpath(HERE)]}),
             ({**one, "source": "cmd:false"}, "failed with exit status 1", {}),
             ({**one, "source": "cmd:not-a-program-anywhere"}, "there is no program", {}),
             ({**one, "source": f"cmd:{HERE}/planted"}, "can see or change it",
              {"seen": [os.path.realpath(HERE)]}),
             ({**one, "source": "cmd:yes"}, "wrote more than the maximum", {}),
             ({**one, "source": "cmd:echo short"}, "fewer than 8 characters", {}),
             ({**one, "source": "cmd:printf 'two\\nlines of it'"}, "not allowed in a header", {}),
             ({**one, "source": "keyring:ward-test-no-such-key"}, "there is no key", {}),
             ({**one, "source": "http://127.0.0.1:9/x"}, "ward-secret-http failed", {}),
             ({**one, "source": "env:OPENAI_API_KEY"}, "in the variable OTHER",
              {"words": ["A=b", f"OTHER=x{KEY}"]}),
             ({**one, "source": "env:OPENAI_API_KEY"}, "the command line contains",
              {"words": [f"x{KEY}"]})]
    with open(f"{HERE}/planted", "w") as f:
        f.write("#!/bin/sh\necho PLANTEDxSECRETxPLANTED\n")
    os.chmod(f"{HERE}/planted", 0o755)
    for grant, why, more in cases:
        s = Secrets(ENVIRONMENT)
        error, _ = s.fetch([grant], **more)
        check(f"{grant['source']} is refused", error and why in error[1]
              and KEY not in repr(error), error)
        s.end()
    # the certificate of another name, and nobody's: the secret does not go
    s = Secrets(ENVIRONMENT)
    error, _ = s.fetch([{**one, "hosts": ["*.example"], "source": "env:OPENAI_API_KEY"}])
    s.start_keys()
    got.clear()
    answer = ask(s, port, request(host="evil.example"), "evil.example")
    check("a certificate of another name", answer[0] == 0 and b"!the server's certificate is for a "
          b"different name" in answer[2] and not got, answer)
    s.end()


def test_sources(port):
    """A Vault-style server with a lease, and the kernel's keyring."""
    asked = []

    class Vault(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            asked.append(self.headers.get("X-Vault-Token"))
            good = self.headers.get("X-Vault-Token") == "TOKENxOFxVAULT"
            body = json.dumps({"lease_duration": 2,
                               "data": {"data": {"key": f"VAULTxVALUEx{len(asked)}xVAULTxVALUE",
                                                 "no": 1},
                                        "metadata": {"version": "x"}}}
                              if good else {"errors": ["no"]}).encode()
            self.send_response(200 if good else 403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    vault = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Vault)
    threading.Thread(target=vault.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{vault.server_address[1]}/v1/secret/data/x"
    one = {"name": "v", "hosts": ["api.example"], "source": url, "token": "env:VAULT_TOKEN",
           "as": "V"}
    s = Secrets({**ENVIRONMENT, "VAULT_TOKEN": "TOKENxOFxVAULT"})
    error, shown = s.fetch([one])
    check("vault", error is None and len(shown["V"]) == len("VAULTxVALUEx1xVAULTxVALUE"), error)
    s.start_keys()
    got.clear()
    time.sleep(1.2)
    # the value is renewed meanwhile, and the old one comes back
    answer = ask(s, port, request("/slow", "GET"))
    check("an old value is looked for, too", answer[0] == 200 and b"VAULTxVALUE" not in answer[2]
          and "VAULTxVALUE" in repr(got), answer)
    deadline = time.monotonic() + 10
    while len(asked) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    check("the lease is renewed", len(asked) >= 2)
    s.end()
    s = Secrets({**ENVIRONMENT, "VAULT_TOKEN": "ANOTHERxTOKEN"})
    error, _ = s.fetch([one])
    check("vault refuses", error and "status 403" in error[1], error)
    s.end()
    if subprocess.run(["sh", "-c", "command -v keyctl"], stdout=subprocess.DEVNULL).returncode:
        libc = __import__("ctypes").CDLL(None, use_errno=True)
        libc.syscall(250, 1, None)      # KEYCTL_JOIN_SESSION_KEYRING
        # add_key
        key = libc.syscall(248, b"user", b"ward-test-key", b"KEYRINGxVALUExKEYRING", 21, -3)
    else:
        key = -1
    if key > 0:
        s = Secrets(ENVIRONMENT)
        error, shown = s.fetch([{"name": "k", "hosts": ["api.example"],
                                 "source": "keyring:ward-test-key", "as": "K"}])
        check("keyring", error is None and len(shown["K"]) == 21, error)
        s.end()


def main():
    port = start_server()
    s = Secrets(ENVIRONMENT)
    error, shown = s.fetch(grants(), words=["PATH=/bin", "sh"])
    check("the secrets are fetched", error is None, error)
    check("placeholders are no secrets",
          not any(v in (KEY, PASSWORD, *AWS) for v in shown.values()), shown)
    s.start_keys()
    test_places(s, port, shown)
    test_sigv4(s, port, shown)
    test_leaks(s, port, shown)
    pid = test_process(s)
    test_life(s, port)
    s.end()
    check("keys ends with it", not os.path.exists(f"/proc/{pid}")
          or open(f"/proc/{pid}/stat").read().split()[2] == "Z")
    s = Secrets(ENVIRONMENT)        # leaks: strip, and log
    for leaks, kept in ((1, False), (2, True)):
        s = Secrets(ENVIRONMENT)
        error, shown = s.fetch([{"name": "openai", "source": "env:OPENAI_API_KEY",
                                 "hosts": ["api.example"]}], leaks=leaks)
        s.start_keys()
        got.clear()
        body = b"a" + KEY.encode() + b"b"
        check("it goes on", ask(s, port, request("/", "POST", headers=[f"X: {KEY}"], body=body))[0]
              == 200)
        check(f"leaks {leaks}", (got[0][3] == body) == kept
              and (dict(got[0][2])["X"] == KEY) == kept and len(got[0][3]) == len(body), got)
        s.end()
    test_refusals(port)
    test_sources(port)
    print("failed:", ", ".join(failed) if failed else "nothing")
    return 1 if failed else 0


if __name__ == "__main__":
    signal.alarm(100)
    sys.exit(main())
