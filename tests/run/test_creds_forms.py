"""A secret with characters that writers escape, echoed by a server that writes as such servers do:
none of it comes back that a program could read."""
import base64
import html
import json
import os
import re
import shutil
import urllib.parse

from harness import by_turns, native_only, timeout
from harness.world import serve, trusted_world

PORT = 9448
SECRET = "kY7/pQ2+vW9=zR4&mN8*tB3~hJ6/cX1+fL5'dS0<gA7/uE2+iO9=qK4=="

# Sends the value back as writers of URLs, JSON and HTML write it: those of its own language, and
# others of whose escapes it knows.
SERVER = r"""
import html, http.server, json, ssl, subprocess, sys, urllib.parse
def escape(text, table):
    return "".join(table.get(c, c) for c in text)
def numbered(characters, form):
    return {c: form % ord(c) for c in characters}
NODE = sys.argv[2]
def node(code, value):
    return subprocess.run([NODE, "-e", "process.stdout.write(%s)" % code, value],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
AMP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
WRITERS = {
    "python-quote": urllib.parse.quote,
    "python-quote-plus": urllib.parse.quote_plus,
    "python-html": html.escape,
    "python-html-text": lambda v: html.escape(v, False),
    "json": json.dumps,
    "json-php": lambda v: json.dumps(v).replace("/", "\\/"),
    "json-php-html": lambda v: escape(v, {"/": "\\/", **numbered("<>&'\"", "\\u%04X")}),
    "json-go": lambda v: escape(v, numbered("<>&", "\\u%04x")),
    "json-gson": lambda v: escape(v, numbered("<>&='", "\\u%04x")),
    "json-net": lambda v: escape(v, numbered("\"&'+<>`", "\\u%04X")),
    "django-js": lambda v: escape(v, numbered("\\'\"<>&=-;`", "\\u%04X")),
    "go-html": lambda v: escape(v, {**AMP, "'": "&#39;", '"': "&#34;", "+": "&#43;"}),
    "jinja": lambda v: escape(v, {**AMP, "'": "&#39;", '"': "&#34;"}),
    "php-html": lambda v: escape(v, {**AMP, "'": "&#039;", '"': "&quot;"}),
    "owasp": lambda v: escape(v, {**AMP, "'": "&#x27;", '"': "&quot;", "/": "&#x2F;"}),
    "mustache": lambda v: escape(v, {**AMP, "'": "&#39;", '"': "&quot;", "/": "&#x2F;",
                                     "`": "&#x60;", "=": "&#x3D;"}),
    "handlebars": lambda v: escape(v, {**AMP, "'": "&#x27;", '"': "&quot;", "`": "&#x60;",
                                       "=": "&#x3D;"}),
    "go-path": lambda v: urllib.parse.quote(v, safe="$&+=:@"),
    "path": lambda v: urllib.parse.quote(v, safe="!$&'()*+,;=:@/"),
    "js-component": lambda v: node("encodeURIComponent(process.argv[1])", v),
    "js-form": lambda v: node("new URLSearchParams({v: process.argv[1]}).toString()", v),
    "php-form": lambda v: urllib.parse.quote_plus(v).replace("~", "%7E"),
    "net-form": lambda v: __import__("re").sub("%..", lambda m: m.group().lower(),
                                               urllib.parse.quote(v,
                                                                  safe="!*()").replace("~", "%7e")),
    "lower": lambda v: __import__("re").sub("%..", lambda m: m.group().lower(),
                                            urllib.parse.quote(v, safe="")),
}
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def do_GET(self):
        writer = self.path.rsplit("/", 1)[1]
        # a server that sends no more than so much; in the middle of something, or at the end of all
        if writer.startswith("cut-"):
            kind, n = writer[4:].split("-")
            text = ("you said " + self.headers["Authorization"])[:int(n)]
            return self.say((json.dumps({"text": text, "more": "was cut off"}) if kind == "middle"
                             else text).encode())
        if writer.startswith("say-"):   # what it is told to
            return self.say(bytes.fromhex(writer[4:]))
        if writer == "own-mark":
            return self.say(b"<xxxxxxxxxxxxxxxxxxxxxxxx> " * 100
                            + self.headers["Authorization"].encode())
        if writer == "next":
            return self.say(("/callback?token=" + self.headers["Authorization"].split(" ", 1)[1]
                             + "&next=/is/kept").encode())
        text = (" ".join(WRITERS) if writer == "list" else "<"
                + WRITERS[writer](self.headers["Authorization"].split(" ", 1)[1]) + ">").encode()
        self.say(text)
    def say(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9448), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/server.pem", sys.argv[1] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

AGENT = r"""
import json, urllib.request
def ask(path):
    return urllib.request.urlopen("https://web.test:9448" + path, timeout=30).read().decode()
for way in ("bearer", "basic"):
    for writer in ask("/%s/list" % way).split():
        print(json.dumps([way, writer, ask("/%s/%s" % (way, writer))]), flush=True)
"""


def read_back(text):
    """What a program makes of an escaped text, whichever the escapes are."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m.group(1), 16)),
                  text).replace("\\/", "/").replace("\\", "")
    return urllib.parse.unquote(html.unescape(text))


def known(text):
    """The longest piece of the secret that stands in a text."""
    return max((n for n in range(len(SECRET) + 1) for at in range(len(SECRET) - n + 1)
                if SECRET[at:at + n] in text), default=0)


def start(t):
    node = shutil.which("node")
    if not node:
        t.skip("no node")
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "server.py"), world.certificates,
                     node], PORT)
    return world


def run(t, world, agent, more=()):
    secret = os.path.join(t.fresh_dir("secrets"), "key")
    with open(secret, "w") as f:
        f.write(SECRET + "\n")
    os.chmod(secret, 0o600)
    grants = [{"name": "bearer", "source": f"file:{secret}", "hosts": ["web.test"],
               "paths": ["/bearer/*"]},
              {"name": "basic", "source": f"file:{secret}", "hosts": ["web.test"],
               "paths": ["/basic/*"], "basic": "user"}, *more]
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    with open(path, "w") as f:
        json.dump({"version": 1,
                   "network": {"mode": "restricted",
                               "egress_allowlist": [{"host": "web.test", "ports": [PORT],
                                                     "mode": "inspect"}]},
                   "credentials": {"mode": "just_in_time", "grants": grants}}, f)
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "agent.py",
                   cwd=t.workspace({"agent.py": agent}), timeout=100)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    return [json.loads(line) for line in r.out.splitlines()]


@by_turns
@timeout(180)
def test_how_servers_write_it(t):
    """Writers of URLs, JSON and HTML leave other characters as they are: a secret with all of them
    is overwritten in every one's form, as it is and as Basic sends it."""
    answers = run(t, start(t), AGENT)
    t.check(len(answers) > 40, f"answers: {len(answers)}")
    for way, writer, text in answers:
        plain = read_back(text)
        if way == "basic":
            plain = "".join(base64.b64decode(piece + "A" * (-len(piece) % 4),
                                             "+/").decode("latin-1")
                            for piece in re.findall("[A-Za-z0-9+/]{8,}", plain)) + plain
        t.check(known(plain) < 6, f"{way} by {writer}: {text} has {known(plain)} characters of it")
        t.check("xxxxxx" in text, f"{way} by {writer}: nothing was overwritten ({text})")


CUT = r"""
import json, urllib.request
def ask(path):
    return urllib.request.urlopen("https://web.test:9448" + path, timeout=30).read().decode()
for way in ("bearer", "basic"):
    for kind in ("end", "middle"):
        for n in range(20, 110):
            print(json.dumps([way, kind, n, ask("/%s/cut-%s-%d" % (way, kind, n))]), flush=True)
"""


@by_turns
@native_only("360 requests through the same reader, which the unit test scan has")
@timeout(180)
def test_a_secret_that_is_cut_off(t):
    """A server sends the beginning of what it was told, as long as it is asked to: of a secret that
    begins there no more than half is seen."""
    answers = run(t, start(t), CUT)
    most = {}
    for way, kind, n, text in answers:
        if way == "basic":
            text = "".join(base64.b64decode(piece + "A" * (-len(piece) % 4), "+/").decode("latin-1")
                           for piece in re.findall("[A-Za-z0-9+/]{8,}", text))
        most[way, kind] = max(most.get((way, kind), 0), known(text))
    t.equal(len(answers), 360, "answers")
    t.check(all(8 <= n <= len(SECRET) // 2 + 2 for n in most.values()),
            f"the longest piece of the secret's {len(SECRET)} characters: {most}")
    t.check(all("xxxxxx" in text for _, _, n, text in answers if n > 100),
            "all of it is overwritten as ever")


MANY = r"""
import json, urllib.request
print(json.dumps(urllib.request.urlopen("https://web.test:9448/bearer/json",
                                        timeout=30).read().decode()))
"""


def test_many_long_secrets(t):
    """Several long secrets with characters that are escaped: all their forms fit into the memory
    that is locked for them."""
    world = start(t)
    more = []
    for i in range(4):
        path = os.path.join(t.fresh_dir("secrets"), f"long{i}")
        with open(path, "w") as f:
            f.write(base64.b64encode(os.urandom(1125)).decode() + "\n")
        os.chmod(path, 0o600)
        more.append({"name": f"long{i}", "source": f"file:{path}", "hosts": ["web.test"],
                     "paths": [f"/long{i}/*"]})
    t.contains(run(t, world, MANY, more)[0], "xxxxxx", "the answer")


SAY = r"""
import json, urllib.request
for text in %r:
    url = "https://web.test:9448/bearer/say-" + text.encode().hex()
    print(json.dumps(urllib.request.urlopen(url, timeout=30).read().decode()), flush=True)
"""


def test_guesses_behind_a_beginning(t):
    """Who knows how a secret begins has a server repeat that with a guess behind it: how much is
    overwritten does not say whether it was right."""
    half = len(SECRET) // 2 + 1
    right = [SECRET[:n] for n in range(half, len(SECRET) - 2, 5)]
    wrong = [text[:half] + "Z" * (len(text) - half) for text in right]
    agent = (SAY + "print(json.dumps(urllib.request.urlopen('https://web.test:9448/late/next', "
             "timeout=30).read().decode()))\n")
    late = "kY7pQ2vW9zR4mN8tB3hJ6cX1fL5dS0gA7uE2/+&='/"	# its forms begin alike
    path = os.path.join(t.fresh_dir("secrets"), "late")
    with open(path, "w") as f:
        f.write(late + "\n")
    os.chmod(path, 0o600)
    *answers, other = run(t, start(t),
                          agent % [text + after for text in right + wrong
                                   for after in ("", ", and more that it says", "\n")],
                          [{"name": "late", "source": f"file:{path}", "hosts": ["web.test"],
                            "paths": ["/late/*"]}])
    t.equal(answers[:len(answers) // 2], answers[len(answers) // 2:],
            "what is seen of right guesses and of wrong ones")
    t.check(all(text.startswith("x" * half) for text in answers),
            f"they are overwritten: {answers}")
    t.equal(other, "/callback?token=" + "x" * len(late) + "&next=/is/kept",
            "behind all of it nothing is overwritten")


def test_tokens_that_begin_alike(t):
    """Tokens of one issuer begin with the same head and claims, which are no secret: another one
    passes, and of the granted one half of its signature does not."""
    def part(what):
        return base64.urlsafe_b64encode(what if isinstance(what, bytes)
                                        else json.dumps(what,
                                                        separators=(",",
                                                                    ":")).encode()).decode().rstrip(
                                                                        "=")
    begin = part({"alg": "HS256", "typ": "JWT", "kid": "b2f5c1d07a3e4f6688aa90c1"}) + "." + part(
        {"aud": ["https://api.web.test.example/of/all/that/it/issues"], "sub": "agent"}) + "."
    token, other = begin + part(bytes(range(1, 33))), begin + part(bytes(range(33, 65)))
    path = os.path.join(t.fresh_dir("secrets"), "token")
    with open(path, "w") as f:
        f.write(token + "\n")
    os.chmod(path, 0o600)
    texts = ["{\"id_token\": \"%s\"}" % other, "{\"id_token\": \"%s\"}" % token[:-12], begin]
    answers = run(t, start(t), (SAY % texts).replace("/bearer/", "/token/"),
                  [{"name": "token", "source": f"file:{path}", "hosts": ["web.test"],
                    "paths": ["/token/*"]}])
    t.equal(answers, [texts[0], "{\"id_token\": \"%s\"}" % ("x" * (len(token) - 12)), begin],
            "what came back")


def test_a_secret_that_looks_overwritten(t):
    """A key that somebody made up of what is written over others: there is an answer, however often
    it has it."""
    path = os.path.join(t.fresh_dir("secrets"), "made-up")
    with open(path, "w") as f:
        f.write("x" * 24 + "\n")
    os.chmod(path, 0o600)
    agent = ("import json, urllib.request\n"
             "print(json.dumps(urllib.request.urlopen('https://web.test:9448/made-up/own-mark', "
             "timeout=20).read().decode()))\n")
    answer, = run(t, start(t), agent,
                  [{"name": "made-up", "source": f"file:{path}", "hosts": ["web.test"],
                    "paths": ["/made-up/*"]}])
    t.equal(answer, "<xxxxxxxxxxxxxxxxxxxxxxxx> " * 100 + "Bearer " + "x" * 24, "the answer")


def test_a_secret_that_repeats_itself(t):
    """It begins again and again in itself: all of it is overwritten, and the first piece does not
    stay."""
    path = os.path.join(t.fresh_dir("secrets"), "again")
    with open(path, "w") as f:
        f.write("kY7/pQ2+vW9=" * 80 + "\n")
    os.chmod(path, 0o600)
    answer, = run(t, start(t), MANY.replace("/bearer/", "/again/"),
                  [{"name": "again", "source": f"file:{path}", "hosts": ["web.test"],
                    "paths": ["/again/*"]}])
    t.equal(answer, '<"' + "x" * 960 + '">', "the answer")


def test_too_many_long_secrets(t):
    """More than there is room for: no secret is used, and the report says why."""
    world = start(t)
    grants = []
    for i in range(40):
        path = os.path.join(t.fresh_dir("secrets"), f"long{i}")
        with open(path, "w") as f:
            f.write(base64.b64encode(os.urandom(1125)).decode() + "\n")
        os.chmod(path, 0o600)
        grants.append({"name": f"long{i}", "source": f"file:{path}", "hosts": ["web.test"],
                       "paths": [f"/long{i}/*"]})
    for count in (26, 40):
        path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        with open(path, "w") as f:
            json.dump({"version": 1,
                       "network": {"mode": "restricted",
                                   "egress_allowlist": [{"host": "web.test", "ports": [PORT],
                                                         "mode": "inspect"}]},
                       "credentials": {"mode": "just_in_time", "grants": grants[:count]}}, f)
        r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "agent.py",
                       cwd=t.workspace({"agent.py": MANY.replace("/bearer/", "/long0/")}),
                       report=True, timeout=60)
        t.equal(r.out, "", f"{count} secrets: an answer")
        t.check(any("cannot build the scanner" in d["why"] + d["what"] for d in r.report["denials"])
                or any("cannot build the scanner" in n for n in r.report["notes"]),
                f"{count} secrets: {r.report['denials']} {r.report['notes']} {r.err}")


def test_little_locked_memory(t):
    """Where 64 KiB may be locked, as on many machines, a key of the usual length is used; of what
    does not fit the report says so."""
    world = start(t)
    ws = t.workspace({"agent.py": MANY})
    for secret, works in (("sk-ant-api03-" + "kY7pQ2vW9zR4mN8tB3hJ6cX1fL5dS0gA7uE2abcd" * 2
                           + "-abcdAA", True), ("kY7pQ2vW9zR/mN8tB3hJ6cX1+L5dS0gA7uE2abc=", True),
                          ("kY7/pQ2+vW9=" * 80, False)):
        if not works and t.person.pw_uid == 0:	# who may lock what it likes
            continue
        key = os.path.join(t.fresh_dir("secrets"), "key")
        with open(key, "w") as f:
            f.write(secret + "\n")
        os.chmod(key, 0o600)
        path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        with open(path, "w") as f:
            json.dump({"version": 1,
                       "network": {"mode": "restricted",
                                   "egress_allowlist": [{"host": "web.test", "ports": [PORT],
                                                         "mode": "inspect"}]},
                       "credentials": {"mode": "just_in_time",
                                       "grants": [{"name": "one", "source": f"file:{key}",
                                                   "hosts": ["web.test"]}]}}, f)
        r = t.ward("run", "-p", path, "--", "/usr/bin/python3", "agent.py", cwd=ws,
                   wrap=["prlimit", "--memlock=65536:65536", *world.wrap(ws)], report=True,
                   timeout=60)
        t.equal("xxxxxx" in r.out, works, f"an answer ({secret[:12]}: {r.out} {r.err})")
        t.equal(any("no secret is used any more" in note for note in r.report["notes"]), not works,
                f"{r.report['notes']}")
