"""--secret, --publish, --service, --budget, --hide, --cache: each allows, and each refuses."""

import json
import os
import socket
import subprocess
import sys

from harness import users
from harness.creds import SECRET, secret_file
from harness.world import HERE, WEB, World, policy, serve, trusted_world

PORT, LLM = 9443, 9460
SERVER = r"""
import http.server, json, ssl, sys
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def do_GET(self):
        with open(sys.argv[1] + "/seen", "a") as f:
            f.write(json.dumps([self.headers["Host"], self.path, dict(self.headers)]) + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
server = http.server.ThreadingHTTPServer(("0.0.0.0", 9443), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/server.pem", sys.argv[2] + "/server.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
AGENT = r"""
import os, sys, urllib.request
print(os.environ["API_KEY"])
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=30).status)
    except OSError as error:
        print(type(error).__name__, getattr(error, "code", ""))
"""
RULE = f"network.egress_allowlist={{host: web.test, ports: [{PORT}], mode: inspect}}"


def plan(t, *options, cwd, **more):
    """The plan as JSON, or what ward said."""
    r = t.ward("plan", "--json", *options, "--", "true", cwd=cwd, **more)
    return json.loads(r.out) if r.rc == 0 else r.err


def value(planned, field):
    return planned["policy"][field]["value"]


def test_a_secret_reaches_the_server_and_not_the_sandbox(t):
    """From the environment and a file, into the usual header and others; its host is allowed."""
    world = trusted_world(t)
    t.write(world.dir, {"server.py": SERVER, "seen": ""})
    serve(
        t,
        world,
        ["/usr/bin/python3", os.path.join(world.dir, "server.py"), world.dir, world.certificates],
        PORT,
    )
    ws = t.workspace({"agent.py": AGENT})
    for option, name, sent in (
        (f"API_KEY=file:{secret_file(t)}@web.test", "Authorization", f"Bearer {SECRET}"),
        ("API_KEY@web.test:x-api-key", "X-Api-Key", SECRET),
        (
            "API_KEY=env:OTHER_NAME@web.test:Authorization: token {}",
            "Authorization",
            f"token {SECRET}",
        ),
    ):
        t.write(world.dir, {"seen": ""})
        r = world.ward(
            "run",
            "--secret",
            option,
            "--add",
            RULE,
            "--",
            "/usr/bin/python3",
            "agent.py",
            f"https://web.test:{PORT}/v1",
            "https://web.test/",
            cwd=ws,
            env={"API_KEY": SECRET, "OTHER_NAME": SECRET},
            timeout=60,
        )
        t.equal((r.rc, r.out.splitlines()[1:]), (0, ["200", "200"]), (option, r.err))
        t.check(SECRET not in r.out + r.err, "the secret is not inside")
        seen = [json.loads(line)[2] for line in t.read(world.dir, "seen").splitlines()]
        t.equal([{k.title(): v for k, v in s.items()}[name] for s in seen], [sent], option)
    r = world.ward(
        "run",
        "--secret",
        "API_KEY@web.test",
        "--",
        "/usr/bin/python3",
        "agent.py",
        "https://other.test/",
        cwd=ws,
        env={"API_KEY": SECRET},
    )
    t.check("200" not in r.out, f"no other host is allowed by it: {r.out}")
    r = world.ward("run", "--secret", "NOT_SET@web.test", "--", "/bin/echo", "started", cwd=ws)
    t.check(r.rc == 125 and "NOT_SET" in r.err and "started" not in r.out, r.err)


def test_where_a_secret_goes_by_default(t):
    ws = t.workspace()
    for option, place in (
        ("OPENAI_API_KEY@api.openai.com", '"header":"Authorization: Bearer {}"'),
        ("ANTHROPIC_API_KEY@proxy.corp", '"header":"x-api-key: {}"'),
        ("K@api.anthropic.com", '"header":"x-api-key: {}"'),
        ("GITHUB_TOKEN@api.github.com", '"header":"Authorization: Bearer {}"'),
        ("GITHUB_TOKEN@github.com", '"basic":"x-access-token"'),
        ("K@h.test:query=key", '"query":"key"'),
        ("K@h.test", '"header":"Authorization: Bearer {}"'),
    ):
        planned = plan(t, "--secret", option, cwd=ws)
        t.contains(value(planned, "credentials.grants"), place, option)
        t.equal(
            (value(planned, "credentials.mode"), value(planned, "network.mode")),
            ("just_in_time", "restricted"),
        )
        t.equal([r["mode"] for r in planned["network"]], ["inspect"], option)
    planned = plan(
        t, "--allow", "*.openai.com", "--secret", "OPENAI_API_KEY@api.openai.com", cwd=ws
    )
    t.equal(
        [r["rule"] for r in planned["network"]],
        ["*.openai.com:443"],
        "a host that is allowed gets no second rule",
    )


def test_bad_values(t):
    """Place, reason, remedy; a secret given by mistake is not repeated."""
    ws = t.workspace()
    for options, why, remedy in (
        (
            ("--secret", "OPENAI_API_KEY"),
            "expected NAME@HOST",
            "--secret OPENAI_API_KEY@api.openai.com",
        ),
        (("--secret", "1X@h.test"), "the name of a variable", "letters"),
        (("--secret", "K=sk-12345@h.test"), "expected env:NAME", "never the secret itself"),
        (("--secret", "K@h.test:443"), "expected a header", "port 443"),
        (("--secret", "K@192.0.2.1"), "names only", "certificate"),
        (
            ("--secret", "K@api.github.com,github.com"),
            "different places",
            "OTHER_NAME=env:K@github.com",
        ),
        (("--secret", "K@h.test:Host"), "expected a header", ""),
        (("--publish", "0"), "from 1 to 65535", ""),
        (("--publish", "80:x"), "HOST:SANDBOX", "8080:3000"),
        (("--publish", "3000", "--publish", "3000:1"), "given twice", "3001:1"),
        (("--service", "postgres"), "NAME=ADDRESS:PORT", ""),
        (("--budget", "lots"), "an amount", ""),
        (("--budget", "5", "--allow", "h.test"), "no rule counts costs", "llm: true"),
        (("--cache", "nmp"), "one of pip", ""),
        (("--hide", ""), "not empty", ""),
        (("--set", "profile=claude"), "for policy files", "--profile NAME"),
    ):
        r = t.ward("run", *options, "--", "/bin/echo", "started", cwd=ws)
        t.check(r.rc == 125 and "started" not in r.out, (options, r.err))
        t.contains(r.err, why, options)
        t.contains(r.err, remedy, options)
        t.check("sk-12345" not in r.err, "the secret")


def test_on_top_of_a_file_they_only_narrow(t):
    ws = t.workspace(
        {
            "p.yaml": "version: 1\nfilesystem: {hide: ['*.key']}\n"
            "network: {mode: restricted, egress_allowlist: [api.openai.com]}\n"
        }
    )
    for options in (
        ("--secret", "K@api.openai.com"),
        ("--publish", "3000"),
        ("--service", "db=127.0.0.1:5432"),
        ("--cache", "npm"),
        ("--hide", "!a.key"),
    ):
        text = plan(t, "-p", "p.yaml", *options, cwd=ws)
        t.check(
            isinstance(text, str) and "can only narrow" in text and "--widen" in text,
            (options, text),
        )
        t.check(isinstance(plan(t, "-p", "p.yaml", "--widen", *options, cwd=ws), dict), options)
    planned = plan(t, "-p", "p.yaml", "--hide", ".env", "--budget", "5", cwd=ws)
    t.equal(
        (value(planned, "filesystem.hide"), value(planned, "network.spend_limit")),
        ('["*.key", ".env"]', "5.00"),
    )
    t.equal(
        (planned["network"][0]["llm"], planned["policy"]["network.spend_limit"]["from"]),
        (True, "command line"),
    )
    t.check(any("approximate prices" in n for n in planned["notes"]), planned["notes"])


def test_hide_and_cache(t):
    ws = t.workspace({".env": "TOKEN=1\n", "sub/.env": "TOKEN=2\n", "open": "text\n"})
    r = t.ward(
        "run",
        "--hide",
        ".env",
        "--cache",
        "npm",
        "--cache",
        "pip",
        "--",
        "sh",
        "-c",
        "cat open .env sub/.env; touch ~/.npm/kept && ls ~/.npm",
        cwd=ws,
    )
    t.equal(r.out, "text\nkept\n", r.err)
    t.contains(r.err, "Permission denied")
    t.equal(
        t.ward("run", "--cache", "npm", "--", "sh", "-c", "ls ~/.npm", cwd=ws).out,
        "kept\n",
        "it persists",
    )
    t.equal(
        t.ward("run", "--", "sh", "-c", "cat .env; ls ~/.npm", cwd=ws).out,
        "TOKEN=1\n",
        "without the options",
    )


def test_publish_at_another_port(t):
    """8080 of the host's loopback leads to 7100 inside, and nothing else does."""
    world = World(t)
    script = (
        "import socket\ns = socket.create_server(('127.0.0.1', 7100))\nprint('up', flush=True)\n"
        "c, _ = s.accept()\nc.sendall(b'hello')\nc.close()\ninput()\n"
    )
    ws = t.workspace({"server.py": script})
    argv = [
        *world.wrap(ws),
        *users.setpriv(t.person),
        t.ward_path,
        "run",
        "--publish",
        "8081:7100",
        "--",
        "/usr/bin/python3",
        "server.py",
    ]
    process = t.popen(argv, root=True, stdin=subprocess.PIPE)
    t.equal(process.stdout.readline(), b"up\n", "first line")
    client = (
        "import socket\nfor p in (7100, 8081):\n"
        " try: print(socket.create_connection(('127.0.0.1', p), 5).recv(9))\n"
        " except OSError as e: print(type(e).__name__)\n"
    )
    t.equal(
        world.run("/usr/bin/python3", "-c", client, cwd=ws).out.split(),
        ["ConnectionRefusedError", "b'hello'"],
    )
    process.stdin.write(b"\n")
    process.stdin.close()
    process.stdin = None
    t.equal(t.finish(process, ["ward run"]).rc, 0, "exit code")
    t.contains(
        t.ward("plan", "--full", "--publish", "8081:7100", "--", "true", cwd=ws).out,
        "port 8081 of this host's loopback leads to 7100 inside",
    )


def test_service(t):
    """A service of the host by its name; without the option it is out of reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        t.background(
            lambda: [
                (c.sendall(b"hello"), c.close()) for c, _ in (server.accept() for _ in range(2))
            ]
        )
        ws = t.workspace()
        script = f"import socket\nprint(socket.create_connection(('db', {port}), 10).recv(9))"
        r = t.ward(
            "run",
            "--service",
            f"db=127.0.0.1:{port}",
            "--",
            "/usr/bin/python3",
            "-c",
            script,
            cwd=ws,
        )
        t.equal((r.rc, r.out), (0, "b'hello'\n"), r.err)
        t.check(t.ward("run", "--", "/usr/bin/python3", "-c", script, cwd=ws).rc != 0, "without")


def test_budget(t):
    """The rule for a well-known model counts by list prices: what may cost too much is refused."""
    world = trusted_world(t, names={"api.openai.com": [WEB]}, certified=("api.openai.com",))
    serve(
        t,
        world,
        [
            sys.executable,
            os.path.join(HERE, "llm_server.py"),
            world.certificates,
            str(LLM),
            os.path.join(world.dir, "llm"),
        ],
        LLM,
    )
    script = f"""
import json, urllib.request, urllib.error
for model, most in (("gpt-4o-mini", 10), ("gpt-4o-mini", 1000000), ("gpt-nobody", 10)):
    messages = [{{"role": "user", "content": "hi"}}]
    data = json.dumps({{"model": model, "max_tokens": most, "messages": messages}}).encode()
    url = "https://api.openai.com:{LLM}/v1/chat/completions"
    request = urllib.request.Request(url, data, {{"Content-Type": "application/json"}})
    try:
        print(urllib.request.urlopen(request, timeout=30).status)
    except urllib.error.HTTPError as e:
        print(e.code)
"""
    ws = t.workspace({"client.py": script})
    r = world.ward(
        "run",
        "--allow",
        f"api.openai.com:{LLM}",
        "--budget",
        "0.02",
        "--",
        "/usr/bin/python3",
        "client.py",
        cwd=ws,
        report=True,
        timeout=60,
    )
    answers = r.out.split()
    t.equal((r.rc, answers[:2]), (0, ["200", "402"]), r.err)
    t.check(answers[2] in ("402", "403"), f"a model without a price: {answers}")
    t.check(float(r.report["network"]["spent"]) > 0, r.report["network"])
    r = world.ward(
        "run",
        "--allow",
        f"api.openai.com:{LLM}",
        "--",
        "/usr/bin/python3",
        "client.py",
        cwd=ws,
        timeout=60,
    )
    t.equal(r.out.split(), ["200"] * 3, "without a budget")
