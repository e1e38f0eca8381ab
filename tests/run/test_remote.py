"""ward --host URL: the verbs of ward at a server (ward-remote), and ward token."""
import json
import os
import re
import signal
import socket
import threading

from harness import by_turns, native_only
from harness.screen import Screen
from harness.serve import Server
from run.test_serve_tls import TlsServer
from run.test_serve_v1 import ASKING, add_key


class At:
    """ward at a server."""

    def __init__(self, t, s, key=None, **env):
        self.t, self.url = t, f"http://127.0.0.1:{s.port}"
        self.env = {"WARD_TOKEN": key or s.key, **env}

    def __call__(self, *words, **more):
        return self.t.ward("--host", self.url, *words, env={**self.env, **more.pop("env", {})},
                           **more)

    def fine(self, *words, **more):
        r = self(*words, **more)
        self.t.equal((r.rc, r.err), (0, ""), " ".join(words))
        return r.out


def test_remote_life(t):
    s = Server(t)
    ward = At(t, s)
    t.equal(json.loads(ward.fine("ps", "--json")), {"sandboxes": []})
    one, two = s.create(metadata={"a\"b": "c\n"}), s.create()
    lines = ward.fine("ps").splitlines()
    t.equal([line.split()[0] for line in lines], ["ID", two.id, one.id])
    t.equal(lines[1].split()[1:3], ["base", "running"])
    t.equal(ward.fine("ps", "-q").split(), [two.id, one.id])
    found = json.loads(ward.fine("ps", "--json"))["sandboxes"][1]
    t.equal((found["id"], found["state"], found["metadata"], found["template"]),
            (one.id, "running", {"a\"b": "c\n"}, "base"))
    t.equal(ward.fine("pause", one.id), "")
    t.equal(ward("pause", one.id).rc, 125)
    t.equal(s.ask("GET", f"/sandboxes/{one.id}").json["state"], "paused")
    t.equal(json.loads(ward.fine("resume", one.id, "--json")), {"sandboxes": [{"id": one.id}]})
    usage = json.loads(ward.fine("stats", "--json"))["sandboxes"]
    t.equal([u["id"] for u in usage], [two.id, one.id])
    t.equal(usage[0]["memory_most_bytes"], 2 << 30)
    t.contains(ward.fine("stats", one.id), one.id)
    t.contains(ward.fine("logs", one.id), "paused")
    t.equal(len(ward.fine("logs", one.id, "--tail", "1").splitlines()), 1)
    # by the beginning of an id, and with WARD_HOST
    short = next(one.id[:n] for n in range(1, 21) if not two.id.startswith(one.id[:n]))
    r = t.ward("exec", short, "--", "echo", "short", env={"WARD_HOST": ward.url, **ward.env})
    t.equal((r.rc, r.out), (0, "short\n"))
    waiting = t.popen([t.ward_path, "--host", ward.url, "wait", two.id], env=ward.env)
    t.equal(ward.fine("kill", two.id), "")
    t.equal(waiting.communicate(timeout=20), (b"0\n", b""))
    r = ward("kill", two.id)
    t.equal(r.rc, 125)
    t.contains(r.err, "remedy")
    # a stop lets programs end first
    c, r = one.start("/bin/sh", "-c", "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.1; "
                     "done")
    while b"dXAK" not in r.read1(200):	# "up"
        pass
    t.equal(ward.fine("stop", one.id, "--timeout", "20"), "")
    t.contains(r.read().decode(), "YnllCg")	# "bye"
    c.close()
    s.create(), s.create()
    t.equal(json.loads(ward.fine("kill", "--all", "--json")), {"stopped": 2})
    t.equal(ward.fine("ps", "-q"), "")


def test_remote_exec(t):
    s = Server(t)
    box = s.create(envVars={"FRUIT": "pear"})
    ward = At(t, s)
    r = ward("exec", box.id, "--", "sh", "-c", "echo $FRUIT $A $B; pwd; echo bad >&2; exit 7",
             "--json")
    t.equal((r.rc, r.out, r.err), (7, "pear\n/home/user\n", "bad\n"))
    r = ward("exec", "-C", "/tmp", "--env", "A=1 2", "--env", "B", box.id, "sh", "-c",
             "echo $A $B; pwd", env={"B": "3"})
    t.equal((r.rc, r.out), (0, "1 2 3\n/tmp\n"))
    data = os.urandom(300000)
    r = t.popen([t.ward_path, "--host", ward.url, "exec", "-i", box.id, "--", "cat"], env=ward.env,
                stdin=-1)
    t.check(r.communicate(data, timeout=60) == (data, b""), "what went in came out")
    # without -i the input is not read; a command need not read all of it
    t.equal(ward.fine("exec", box.id, "--", "cat", input="x"), "")
    t.equal(ward.fine("exec", "-i", box.id, "--", "true", input="x" * 200000), "")
    t.equal(ward("exec", box.id, "--", "sh", "-c", "kill -9 $$").rc, 137)
    for words, rc in ((("exec", box.id, "--", "no-such-program"), 125),
                      (("exec", "-C", "/nowhere", box.id, "--", "true"), 125),
                      (("exec", "nosuch", "--", "true"), 125),
                      (("exec", "--env", "NOT_SET", box.id, "--", "true"), 125)):
        r = ward(*words)
        t.equal((words, r.rc, r.out), (words, rc, ""))
        t.contains(r.err, "ward: ")
    # a signal reaches the command
    p = t.popen([t.ward_path, "--host", ward.url, "exec", box.id, "--", "sh", "-c",
                 "trap 'echo ended; exit 3' TERM; echo up; while :; do sleep 0.05; done"],
                env=ward.env)
    t.equal(p.stdout.readline(), b"up\n")
    p.send_signal(signal.SIGINT)
    t.equal((p.stdout.read(), p.wait(20)), (b"ended\n", 3))
    # the sandbox ends meanwhile
    p = t.popen([t.ward_path, "--host", ward.url, "exec", box.id, "--", "sh", "-c",
                 "echo up; sleep 100"], env=ward.env)
    t.equal(p.stdout.readline(), b"up\n")
    box.kill()
    t.equal(p.wait(20), 137)
    t.contains(p.stderr.read().decode(), "the sandbox ended")


@by_turns
def test_remote_terminal(t):
    """-t: the command has a terminal of the size of this one, which is as it was afterwards."""
    s = Server(t)
    box = s.create()
    env = {"WARD_TOKEN": s.key, "WARD_HOST": f"http://127.0.0.1:{s.port}"}
    with Screen(t, cols=91, rows=23, env=env) as screen:
        screen.type(f"{t.ward_path} exec -t {box.id} -- sh -c 'stty size; read a; echo got $a; "
                    "printf \"\\033]0;title\\007\"; exit 5'\n")
        screen.wait(lambda shown: "23 91" in shown, "the size")
        screen.type("typed\n")
        screen.wait(lambda shown: "got typed" in shown, "what was typed")
        screen.type("echo $?; stty -a | grep -c ' echo '\n")
        screen.wait(lambda shown: "5\n1\n" in shown, "the exit status, and the echo")


def test_remote_cp(t):
    s = Server(t)
    box = s.create()
    ward = At(t, s)
    place = t.fresh_dir("place")
    data = os.urandom(700000)
    with open(os.path.join(place, "a.bin"), "wb") as f:
        f.write(data)
    os.makedirs(os.path.join(place, "into"))
    ward.fine("cp", f"{place}/a.bin", f"{box.id}:/tmp/")
    ward.fine("cp", f"{place}/a.bin", f"{box.id}:sub/b c.bin")
    ward.fine("cp", f"{box.id}:/tmp/a.bin", f"{place}/into")
    ward.fine("cp", f"{box.id}:sub/b c.bin", f"{place}/c.bin")
    for name in ("into/a.bin", "c.bin"):
        with open(os.path.join(place, name), "rb") as f:
            t.check(f.read() == data, name)
    box.sh("mkdir d; ln -s /etc/shadow link; touch empty; chmod +x empty")
    ward.fine("cp", f"{box.id}:empty", f"{place}/empty")
    t.equal(os.stat(f"{place}/empty").st_mode & 0o111, 0)
    for words in ((f"{box.id}:nope", f"{place}/x"), (f"{box.id}:d", f"{place}/x"),
                  (f"{box.id}:link", f"{place}/x"), (f"{place}/into", f"{box.id}:/tmp"),
                  (f"{box.id}:a", f"{box.id}:b"), (f"{place}/a.bin", f"{place}/b.bin"),
                  (f"{place}/nope", f"{box.id}:x"), (f"{place}/a.bin", f"{box.id}:/etc/x"),
                  (f"{box.id}:/tmp/..", place)):
        r = ward("cp", *words)
        t.check(r.rc != 0 and r.err.startswith("ward: "), f"{words} {r}")
    t.equal(sorted(os.listdir(place)), ["a.bin", "c.bin", "empty", "into"])
    t.equal(os.listdir(f"{place}/into"), ["a.bin"])


def test_remote_approve(t):
    templates, secret = t.fresh_dir("templates"), t.fresh_dir("secret")
    t.write(secret, {"plan.txt": "the plan\n"})
    os.chmod(secret, 0o755)
    t.write(templates, {"asking.yaml": ASKING % secret})
    s = Server(t, "--templates", templates)
    box = s.create("asking")
    ward = At(t, s, add_key(t, s, "dev", "--role", "approver"))
    t.contains(ward.fine("approve"), "no question")
    for answer, output in (("--deny", ""), ("--once", "the plan\n"), ("--run", "the plan\n")):
        found = []
        reader = threading.Thread(
            target=lambda: found.append(box.sh(f"cat {secret}/plan.txt")), daemon=True)
        reader.start()
        t.wait_until(lambda: json.loads(ward.fine("approve", "--json"))["questions"], 20)
        q, = json.loads(ward.fine("approve", "--json"))["questions"]
        t.equal((q["sandbox"], q["kind"]), (box.id, "file"))
        t.contains(ward.fine("approve"), q["subject"])
        t.equal(ward("approve", q["id"], "--once", "--deny").rc, 2)
        t.equal(ward.fine("approve", q["id"], answer), "")
        reader.join(20)
        t.equal(found[0][1], output)
        t.equal(ward("approve", q["id"], answer).rc, 125)
    t.equal(ward("exec", box.id, "--", "true").rc, 125)


def test_remote_tokens(t):
    s = Server(t)
    ward = At(t, s)
    token = ward.fine("token", "create", "--role", "viewer", "--ttl", "5m", "--name", "seen",
                      "--limits", '{"sources": ["127.0.0.0/8"]}').strip()
    t.check(re.fullmatch("e2b_[0-9a-f]{40}", token), token)
    listed = json.loads(ward.fine("token", "ls", "--json"))["tokens"]
    mine, = (k for k in listed if k.get("name") == "seen")
    t.equal((mine["kind"], mine["role"], mine["owner"]), ("token", "viewer", "dev"))
    t.contains(ward.fine("token", "ls"), mine["id"])
    viewer = At(t, s, token)
    t.equal(viewer.fine("ps", "-q"), "")
    r = viewer("kill", "--all")
    t.equal(r.rc, 125)
    t.contains(r.err, "role")
    ward.fine("token", "revoke", mine["id"])
    t.contains(viewer("ps").err, "WARD_TOKEN")
    for words in (("create",), ("create", "--role", "x", "--ttl", "5m"), ("revoke",), ("nothing",),
                  ("create", "--role", "viewer", "--ttl", "soon"), ("revoke", "nosuch"),
                  ("create", "--role", "viewer", "--ttl", "5m", "--limits", "[1]")):
        r = ward("token", *words)
        t.check(r.rc != 0 and r.err.startswith("ward: "), f"{words} {r}")


def test_token(t):
    """Without a server: the registry of --state."""
    state = t.fresh_dir("serve")
    here = ("--state", state)
    key = t.ward("token", "create", "--owner", "ci", "--role", "runner", "--ttl", "15m", "--name",
                 "build", *here).out.strip()
    s = Server(t, state=state)
    t.equal(s.ask("GET", "/v2/sandboxes", key=key).status, 200)
    t.equal(s.ask("GET", "/ward/v1/tokens", key=key).status, 403)
    listed = json.loads(t.ward("token", "ls", "--owner", "ci", "--json", *here).out)
    mine, = listed["tokens"]
    t.equal((mine["owner"], mine["role"], mine["kind"], mine["name"]),
            ("ci", "runner", "key", "build"))
    t.check("expiresAt" in mine and key not in json.dumps(listed), mine)
    t.contains(t.ward("token", "ls", *here).out, mine["id"])
    t.equal(t.ward("token", "revoke", mine["id"], *here).rc, 0)
    t.equal(s.ask("GET", "/v2/sandboxes", key=key).status, 401)
    for words in (("revoke", mine["id"]), ("create", "--owner", "ci"), ("create", "--role", "x",
                  "--owner", "ci", "--ttl", "5m"), ("ls", "--ttl", "5m"), ("revoke",),
                  ("create", "--owner", "ci", "--role", "runner", "--ttl", "90d")):
        r = t.ward("token", *words, *here)
        t.check(r.rc != 0 and r.err, f"{words} {r}")


def test_remote_bad_input(t):
    s = Server(t)
    ward = At(t, s)
    for words in (("--host",), ("--host", ward.url), ("--host", ward.url, "run", "--", "true"),
                  ("--host", "http://192.0.2.1:3000", "ps"), ("--host", "ftp://a", "ps"),
                  ("--host", "https://u:p@a", "ps"), ("--host", "https://a/b", "ps"),
                  ("--host", ward.url, "ps", "--nothing"), ("--nothing", ward.url, "ps"),
                  ("--host", ward.url, "ps", "word"), ("--host", ward.url, "kill"),
                  ("--host", "http://127.0.0.1:1", "ps"), ("--host", ward.url, "logs", "../x")):
        r = t.ward(*words, env=ward.env)
        t.check(r.rc in (2, 125) and r.err.startswith("ward: "), f"{words} {r}")
    t.contains(At(t, s, "wrong").__call__("ps").err, "WARD_TOKEN")
    home = t.fresh_dir("config")
    t.write(home, {"ward/token": s.key + "\n", "two": "a b\n"})
    env = {"WARD_TOKEN": "", "XDG_CONFIG_HOME": home}
    os.chmod(f"{home}/ward/token", 0o644)
    os.chmod(f"{home}/two", 0o600)
    r = ward("ps", env=env)
    t.equal(r.rc, 125)
    t.contains(r.err, "chmod 600")
    os.chmod(f"{home}/ward/token", 0o600)
    t.equal(ward.fine("ps", "-q", env=env), "")
    t.equal(t.ward("--host", ward.url, "--token-file", f"{home}/two", "ps").rc, 125)
    t.equal(t.ward("--host", ward.url, "--token-file", f"{home}/ward/token", "ps", "-q").rc, 0)


class Liar:
    """A server that answers whatever it is asked with the same bytes."""

    def __init__(self, t, *answers):
        self.answers = list(answers)
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.key = self.socket.getsockname()[1], "k"
        t.defer(self.socket.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
                data = b""
                while b"\r\n\r\n" not in data:
                    data += c.recv(65536)
                self.asked.append(data)
                c.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
                c.close()
            except OSError:
                return


def answer(body, status="200 OK", more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n").encode() + body


def test_remote_server_lies(t):
    """What a server says does nothing to a terminal, is not followed, and has limits."""
    box = b"a" * 20
    rows = json.dumps([{"sandboxID": box.decode(), "templateID": "\x1b[2J\u202eevil\n",
                        "state": "\x07", "metadata": {"\x1b]0;x\x07": "y"}},
                       {"sandboxID": "../../etc", "templateID": "x"}]).encode()
    out = At(t, Liar(t, answer(rows))).fine("ps")
    t.equal([c for c in out if ord(c) < 32 and c != "\n"], [])
    t.check("\u202e" not in out and "etc" not in out and out.count("\n") == 2, out)
    said = json.dumps({"message": "\x1b[31mred\nremedy: rm -rf /"}).encode()
    r = At(t, Liar(t, answer(said, "403 No")))("ps")
    t.equal(r.rc, 125)
    t.check("\x1b" not in r.err and "\n  remedy: rm" not in r.err, r.err)
    for body in (b"", b"[", b"{" * 100, b'{"a":1,"a":2}', b"\xff", b"[" * 70 + b"]" * 70):
        r = At(t, Liar(t, answer(body)))("ps")
        t.check(r.rc == 125 and r.err.startswith("ward: "), f"{body} {r}")
    other = Liar(t, answer(b"[]"))
    elsewhere = Liar(t, answer(b"", "302 Found", f"Location: http://127.0.0.1:{other.port}/\r\n"))
    t.equal(At(t, elsewhere)("ps").rc, 125)
    t.equal(other.asked, [])
    # the stream of a command
    info = answer(json.dumps({"envdAccessToken": "token"}).encode(), more="Connection: close\r\n")
    for stream in (b"\x00\xff\xff\xff\xff", b"\x01\x00\x00\x00\x02{}", b"\x00\x00\x00\x00\x02[]",
                   b"\x00\x00\x00\x00\x01{", b"\x02\x00\x00\x00\x02{}", b""):
        r = At(t, Liar(t, info, answer(stream)))("exec", box.decode(), "--", "true")
        t.check(r.rc in (125, 137) and r.err.startswith("ward: "), f"{stream} {r}")
    r = At(t, Liar(t, info, answer(b"\n\x1b[2J", "500 Bad")))("exec", box.decode(), "--", "true")
    t.check(r.rc == 125 and "\x1b" not in r.err, r)


@by_turns
@native_only("the same client runs sanitized in the other tests; TLS is libcurl's")
def test_remote_tls(t):
    """The certificate is verified, and the one of --ca-file is believed."""
    s = TlsServer(t)
    url = f"https://127.0.0.1:{s.port}"
    env = {"WARD_TOKEN": s.key}
    r = t.ward("--host", url, "ps", env=env)
    t.equal(r.rc, 125)
    t.contains(r.err, "--ca-file")
    r = t.ward("--host", url, "--ca-file", s.authority + ".pem", "ps", "-q", env=env)
    t.equal((r.rc, r.out, r.err), (0, "", ""))
