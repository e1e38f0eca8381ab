"""ssh keys that a sandbox uses and never holds: real ssh-agent, sshd, git; and a hostile program
that talks to the agent's socket itself."""
import json
import os
import signal
import socket

from harness import timeout
from harness.world import World, need, serve

PORT, OTHER_PORT = 2222, 2223

# A program inside: an ssh client that does what OpenSSH never would.
HOSTILE = r"""
import os, socket, struct, subprocess, sys, threading
at = os.environ["SSH_AUTH_SOCK"]
def text(b):
    return struct.pack(">I", len(b)) + b
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(at)
    s.settimeout(20)
    return s
def exactly(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        if not more:
            raise EOFError
        got += more
    return got
def ask(s, message):
    try:
        s.sendall(text(message))
        return exactly(s, struct.unpack(">I", exactly(s, 4))[0])
    except (EOFError, OSError):
        return b"\0"
def said(name, answer):
    print(name, answer[0], flush=True)
def strings(b):
    while b:
        n = struct.unpack(">I", b[:4])[0]
        yield b[4:4 + n]
        b = b[4 + n:]
s = connect()
listed = ask(s, b"\x0b")
key = list(strings(listed[5:]))[0]
def sign(data, flags=0, of=key):
    return b"\x0d" + text(of) + text(data) + struct.pack(">I", flags)
def login(session, user=b"root", of=key, more=b""):
    return text(session) + b"\x32" + text(user) + text(b"ssh-connection") + text(b"publickey") + \
        b"\x01" + text(b"ssh-ed25519") + text(of) + more
def bind(host_key, session, signature, forwarding=0):
    return b"\x1b" + text(b"session-bind@openssh.com") + text(host_key) + text(session) + \
        text(signature) + bytes([forwarding])
said("list", listed)
said("blob", ask(s, sign(b"anything")))
said("unbound", ask(s, sign(login(b"s" * 32))))
for space in ("git", "file"):
    said(space, ask(s, sign(b"SSHSIG" + text(space.encode()) + text(b"") + text(b"sha512") +
                            text(b"h" * 64))))
said("remove", ask(s, b"\x13"))
said("add", ask(s, b"\x11" + text(b"ssh-ed25519") + text(b"x" * 32) + text(b"y" * 64) + text(b"")))
said("lock", ask(s, b"\x16" + text(b"word")))
said("short", ask(s, b"\x0d\0\0"))
said("extension", ask(s, b"\x1b" + text(b"query")))
# a real session, whose messages are seen on the way
seen = []
place = "/tmp/proxy"
server = socket.socket(socket.AF_UNIX)
server.bind(place)
server.listen(1)
def proxy():
    c, _ = server.accept()
    real = connect()
    try:
        while True:
            message = exactly(c, struct.unpack(">I", exactly(c, 4))[0])
            seen.append(message)
            c.sendall(text(ask(real, message)))
    except (EOFError, OSError):
        pass
t = threading.Thread(target=proxy, daemon=True)
t.start()
done = subprocess.run(["ssh", "-p", "2222", "-o", "BatchMode=yes", "root@db.test", "hello"],
                      env={**os.environ, "SSH_AUTH_SOCK": place}, capture_output=True, text=True)
print("real", done.stdout.strip(), done.stderr.strip())
t.join(20)
bound = next(m for m in seen if m[:1] == b"\x1b" and b"session-bind" in m)
_, host_key, session, signature = list(strings(bound[1:-1]))
forged = bytearray(signature)
forged[-1] ^= 1
said("forwarded", ask(connect(), bind(host_key, session, signature, 1)))
said("forged", ask(connect(), bind(host_key, session, bytes(forged))))
said("othersession", ask(connect(), bind(host_key, b"t" * 32, signature)))
said("ownhost", ask(connect(), bind(text(b"ssh-ed25519") + text(b"k" * 32), session, signature)))
s = connect()
said("replayed", ask(s, bind(host_key, session, signature)))
said("twice", ask(s, bind(host_key, session, signature)))
said("replayedother", ask(s, sign(login(b"t" * 32))))
said("otheruser", ask(s, sign(login(session, b"admin"))))
said("trailing", ask(s, sign(login(session, more=b"x"))))
said("otherkey", ask(s, sign(login(session, of=b"k" * 51))))
said("flags", ask(s, sign(login(session), 8)))
said("signed", ask(s, sign(login(session))))
s = connect()
s.sendall(struct.pack(">I", 1 << 30))
try:
    got = s.recv(64)
    got += s.recv(64)
except OSError:
    got = b""
print("huge", len(got), flush=True)
# many connections, half a message on each, and many requests without reading
held = []
for _ in range(300):
    c = socket.socket(socket.AF_UNIX)
    c.setblocking(False)
    try:
        c.connect(at)
        c.send(b"\0\0\x10\0half")
    except OSError:
        pass
    held.append(c)
for c in held:
    c.close()
c = connect()
c.settimeout(2)
try:
    for _ in range(100000):
        c.sendall(text(sign(b"flood")))
except OSError:
    pass
c.close()
said("after", ask(connect(), b"\x0b"))
"""


def accepts(path):
    """Whether a server listens there: the socket's name is there before."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


class Scene:
    """An sshd at db.test:2222 that a key of a real ssh-agent logs in to."""

    def __init__(self, t):
        self.t = t
        self.sshd, _, self.keygen, self.git, self.agent, self.add = need(
            t, "sshd", "ssh", "ssh-keygen", "git", "ssh-agent", "ssh-add")
        self.world = World(t)
        self.dir = t.fresh_dir("keys")
        self.make_key("user")
        for name in ("host", "host2"):
            t.run(self.keygen, "-q", "-t", "ed25519", "-N", "", "-f",
                  os.path.join(self.world.dir, name), root=True, check=True)
            with t.root():
                for end in ("", ".pub"):
                    os.chown(os.path.join(self.world.dir, name + end), 0, 0)
        t.write(self.world.dir, {"user.pub": t.read(self.dir, "user.pub")})
        os.chmod(os.path.join(self.world.dir, "user.pub"), 0o644)
        repo = t.git_repo({"README": "hello over ssh\n"})
        self.bare = os.path.join(self.world.dir, "repo.git")
        t.run(self.git, "clone", "-q", "--bare", repo, self.bare, check=True)
        t.write(self.world.dir, {"force.sh": f"""
case "$SSH_ORIGINAL_COMMAND" in
git-upload-pack*) exec git -c safe.directory=* upload-pack {self.bare};;
git-receive-pack*) exec git -c safe.directory=* receive-pack {self.bare};;
*) exec echo it was "$SSH_ORIGINAL_COMMAND";;
esac
"""})
        self.serve("host", PORT)
        self.know(PORT, "host")

    def make_key(self, name, passphrase="", kind="ed25519"):
        self.t.run(self.keygen, "-q", "-t", kind, "-N", passphrase, "-f",
                   os.path.join(self.dir, name), check=True)

    def serve(self, key, port):
        serve(self.t, self.world,
              ["unshare", "-m", "sh", "-c",
               'mount -t tmpfs none /run && mkdir /run/sshd && exec "$@"', "sh", self.sshd, "-D",
               "-e", "-f", "/dev/null", "-p", str(port), "-h", os.path.join(self.world.dir, key),
               "-o", "PermitRootLogin=yes", "-o",
               f"AuthorizedKeysFile={self.world.dir}/user.pub", "-o", "StrictModes=no", "-o",
               "UsePAM=no", "-o", f"ForceCommand=/bin/sh {self.world.dir}/force.sh", "-o",
               "PidFile=none"], port)

    def know(self, port, key, hashed=False):
        """The host's key, in the user's known_hosts."""
        with self.t.root():
            with open(os.path.join(self.world.dir, key + ".pub")) as f:
                kind, blob = f.read().split()[:2]
        directory = os.path.join(self.t.home, ".ssh")
        old = self.t.read(directory, "known_hosts") or ""
        os.makedirs(directory, exist_ok=True)
        self.t.write(directory, {"known_hosts": f"{old}[db.test]:{port} {kind} {blob}\n"})
        if hashed:
            self.t.run(self.keygen, "-q", "-H", "-f", os.path.join(directory, "known_hosts"),
                       check=True)

    def start_agent(self, *keys):
        path = os.path.join(self.t.fresh_dir("agent"), "s")
        process = self.t.popen([self.agent, "-D", "-a", path])
        self.t.wait_until(lambda: accepts(path), 10, "ssh-agent does not start")
        for key in keys:
            self.t.run(self.add, "-q", os.path.join(self.dir, key), env={"SSH_AUTH_SOCK": path},
                       check=True)
        return {"SSH_AUTH_SOCK": path}, process

    def policy(self, entries, **more):
        path = os.path.join(self.t.fresh_dir("policy"), "ward.yaml")
        self.t.write(os.path.dirname(path), {"ward.yaml": json.dumps({
            "version": 1, "credentials": {"mode": "just_in_time", "ssh": entries},
            "network": {"mode": "restricted", "egress_allowlist": [
                {"host": "db.test", "ports": [PORT, OTHER_PORT]}]}, **more})})
        return path

    def signs(self, r):
        """Events of signatures: (action, host, why)."""
        t = self.t
        shown = t.ward("audit", "show", "--json", "--kind", "credential.sign", r.report["run"])
        events = [json.loads(line) for line in shown.out.splitlines()]
        return [(e["action"], e.get("host"), e.get("why")) for e in events]


def nothing_left(t):
    left = [n for n in os.listdir(t.runtime_dir) if n.startswith("ssh-")] \
        if os.path.isdir(t.runtime_dir) else []
    t.equal(left, [], "what the run left in the runtime directory")


@timeout(90)
def test_login_clone_push(t):
    """--ssh USER@HOST:PORT: ssh, git clone and push work; no key is inside; each login is an
    event."""
    s = Scene(t)
    env, _ = s.start_agent("user")
    ws = t.workspace()
    r = s.world.ward("run", "--ssh", f"root@db.test:{PORT}", "--", "/bin/sh", "-ec", f"""
ssh -p {PORT} -o BatchMode=yes root@db.test hello there
ssh-add -l
git clone -q ssh://root@db.test:{PORT}/repo.git there
cd there && cat README && echo more >> README
git -c user.name=A -c user.email=a@b commit -qam more && git push -q origin HEAD:refs/heads/agent
ls -la ~/.ssh /root/.ssh 2>&1 || true
""", cwd=ws, env=env, timeout=80, report=True)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    t.contains(r.out, "it was hello there", "ssh")
    t.contains(r.out, "hello over ssh", "git clone")
    t.contains(r.out, "(ED25519)", "the key is listed")
    log = t.run(s.git, "-C", s.bare, "-c", "safe.directory=*", "log", "-1", "--format=%s", "agent",
                root=True)
    t.equal(log.out.strip(), "more", "what was pushed")
    t.equal(s.signs(r), [("allow", "root@db.test", None)] * 3, "events")
    t.equal(r.report["denials"], [], "denials")
    nothing_left(t)


@timeout(90)
def test_other_host(t):
    """A host that the network allows and credentials.ssh does not: refused, with an event, and
    explained; a hashed known_hosts is read."""
    s = Scene(t)
    s.serve("host2", OTHER_PORT)
    s.know(PORT, "host", hashed=True)
    env, _ = s.start_agent("user")
    ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR"
    r = s.world.ward("run", "-p", s.policy([{"hosts": [f"root@db.test:{PORT}"]}]), "--", "/bin/sh",
                     "-c", f"""
{ssh} -p {PORT} root@db.test fine
{ssh} -p {OTHER_PORT} root@db.test stolen 2>&1
""", cwd=t.workspace(), env=env, timeout=80, report=True)
    t.contains(r.out, "it was fine", "the host of the policy")
    t.check("stolen" not in r.out, f"another host: {r.out}")
    actions = s.signs(r)
    t.equal(actions[0], ("allow", "root@db.test", None), "the first")
    whys = " ".join(str(why) for action, _, why in actions[1:] if action == "deny")
    t.contains(whys, "not that of a host in credentials.ssh", "the other host")
    t.check(r.report["denials"], "denials in the report")
    explained = t.ward("explain", r.report["run"])
    t.contains(explained.out, "ward-ssh-agent", "ward explain")


@timeout(90)
def test_hostile_program(t):
    """A program that talks to the socket itself gets nothing signed but a login that it could have
    had: no blobs, forwarded or forged binds, replays, other requests; floods end nothing."""
    s = Scene(t)
    env, _ = s.start_agent("user")
    ws = t.workspace({"hostile.py": HOSTILE})
    r = s.world.ward("run", "-p", s.policy([{"hosts": [f"root@db.test:{PORT}"]}]), "--",
                     "/usr/bin/python3", "hostile.py", cwd=ws, env=env, timeout=80, report=True)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    got = dict(line.split(" ", 1) for line in r.out.splitlines())
    t.equal(got.pop("real"), "it was hello ", "a real login")
    fine = {"list": "12", "replayed": "6", "signed": "14", "after": "12"}
    refused = {name: "5" for name in (
        "blob", "unbound", "git", "file", "remove", "add", "lock", "short", "extension",
        "forwarded", "forged", "othersession", "ownhost", "twice", "replayedother", "otheruser",
        "trailing", "otherkey", "flags")}
    t.equal(got.pop("huge"), "5", "a message of 1 GiB is refused and the connection closed")
    t.equal(got, {**fine, **refused}, "answers")
    allowed = [e for e in s.signs(r) if e[0] == "allow"]
    t.equal(allowed, [("allow", "root@db.test", None)] * 2, "what was signed")
    keys = t.run(s.add, "-l", env=env)
    t.equal(len(keys.out.splitlines()), 1, "the user's agent has its key")
    nothing_left(t)


@timeout(90)
def test_commit_signing(t):
    """sign: true: git inside signs commits, git outside verifies them; without it nothing is
    signed."""
    s = Scene(t)
    s.make_key("second")
    env, _ = s.start_agent("user", "second")
    public = t.read(s.dir, "second.pub").strip()
    finger = t.run(s.keygen, "-lf", os.path.join(s.dir, "second.pub")).out.split()[1]
    commit = "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m signed && " \
             "git cat-file commit HEAD"
    repo = t.git_repo({"a": "1\n"})
    r = s.world.ward("run", "-p", s.policy([{"key": f"agent:{finger}", "sign": True}]), "--",
                     "/bin/sh", "-ec", f"ssh-add -l | wc -l; {commit}", cwd=repo, env=env,
                     report=True)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    t.equal(r.out.split()[0], "1", "only the key of the policy is listed")
    t.contains(r.out, "BEGIN SSH SIGNATURE", "the commit")
    t.write(s.dir, {"allowed": f"a@b {public}\n"})
    verified = t.run(s.git, "-c", f"gpg.ssh.allowedSignersFile={s.dir}/allowed", "-C", repo,
                     "verify-commit", "HEAD")
    t.equal(verified.rc, 0, f"git verify-commit: {verified.err}")
    t.contains(verified.err, f"with ED25519 key {finger}", "whose signature it is")
    t.equal(s.signs(r), [("allow", "git", None)], "events")
    r = s.world.ward("run", "-p", s.policy([{"hosts": [f"db.test:{PORT}"]}]), "--", "/bin/sh",
                     "-c", f"""git -c gpg.format=ssh -c user.signingKey="key::{public}" \
-c user.name=A -c user.email=a@b commit -q -S --allow-empty -m no; echo $?""", cwd=repo, env=env,
                     report=True)
    t.check(r.out.strip() != "0", "a commit was signed that no policy grants")
    t.equal([e[:2] for e in s.signs(r)], [("deny", "git")], "events of the refusal")


@timeout(90)
def test_key_file(t):
    """key: file:PATH, without an agent of the user's; the agent that holds it ends with the run,
    also when ward is killed."""
    s = Scene(t)
    where = os.path.join(s.dir, "user")
    policy = s.policy([{"key": f"file:{where}", "hosts": [f"root@db.test:{PORT}"]}])
    none = {"SSH_AUTH_SOCK": None}
    r = s.world.ward("run", "-p", policy, "--", "ssh", "-p", str(PORT), "-o", "BatchMode=yes",
                     "root@db.test", "by", "file", cwd=t.workspace(), env=none, timeout=80,
                     report=True)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    t.contains(r.out, "it was by file", "ssh")
    nothing_left(t)
    t.wait_until(lambda: not holders(where), 5, "an agent with the key is left")
    ws = t.workspace()
    process = t.popen(t.ward_argv("run", "-p", policy, "--", "sh", "-c",
                                  "touch ready; sleep 60", wrap=s.world.wrap(ws)), env=none,
                      cwd=ws, root=True)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 20, "the run does not start")
    t.check(holders(where), "no agent holds the key")
    with t.root():
        os.kill(process.pid, signal.SIGKILL)
    t.wait_until(lambda: not holders(where), 10, "an agent with the key outlives a killed ward")
    t.wait_until(lambda: not [n for n in os.listdir(t.runtime_dir) if n.startswith("ssh-")], 10,
                 "a killed ward leaves the agent's socket")
    t.ward("recover")


def holders(path):
    """Processes of ward's own agent for this key file."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"hold" in words and path.encode() in words:
            found.append(pid)
    return found


@timeout(60)
def test_refused_starts(t):
    """What is missing is said before anything starts, with the remedy."""
    s = Scene(t)
    env, _ = s.start_agent("user")
    empty, _ = s.start_agent()
    s.make_key("locked", "a passphrase")
    locked = f"file:{s.dir}/locked"
    unknown = "agent:SHA256:" + "A" * 43
    cases = [
        ({"hosts": ["root@other.test"]}, env, "no key of this host is in", "ssh -p 22 root@other"),
        ({"hosts": [f"db.test:{PORT}"]}, {"SSH_AUTH_SOCK": None}, "SSH_AUTH_SOCK is not set",
         "ssh-add"),
        ({"hosts": [f"db.test:{PORT}"]}, {"SSH_AUTH_SOCK": "/nowhere"}, "cannot connect",
         "ssh-agent"),
        ({"hosts": [f"db.test:{PORT}"]}, empty, "has no key", "ssh-add"),
        ({"hosts": [f"db.test:{PORT}"], "key": unknown}, env, "has no key SHA256:AAA", "ssh-add"),
        ({"hosts": [f"db.test:{PORT}"], "key": locked}, env, "cannot load the key", "passphrase"),
        ({"hosts": ["*.test"]}, env, "[USER@]HOST[:PORT]", "name each host"),
        ({"hosts": ["-oProxyCommand=x"]}, env, "[USER@]HOST[:PORT]", ""),
        ({"key": "agent"}, env, "used for nothing", "sign: true"),
        ({"sign": True, "key": "id_rsa"}, env, "agent:SHA256:FINGERPRINT", ""),
    ]
    ws = t.workspace()
    for entry, environment, why, remedy in cases:
        r = s.world.ward("run", "-p", s.policy([entry]), "--", "touch", "started", cwd=ws,
                         env=environment)
        t.equal(r.rc, 125, f"{entry}: exit code: {r.err}")
        t.contains(r.err, why, f"{entry}")
        t.contains(r.err, remedy, f"{entry}: remedy")
        t.check(not os.path.exists(os.path.join(ws, "started")), "something was started")
        nothing_left(t)
    r = t.ward("run", "--ssh", "a b@c", "--", "true")
    t.equal(r.rc, 125, "a word that is no host")


def test_trust(t):
    """A project's policy that grants a key is not used unseen, and an option cannot hide it."""
    ws = t.workspace({"ward.yaml": "version: 1\ncredentials:\n  mode: just_in_time\n  ssh:\n"
                                   "  - hosts: [git@github.com]\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "ward trust", "remedy")
    r = t.ward("plan", "--ssh", "git@github.com", "--", "true", cwd=t.workspace())
    t.equal(r.rc, 0, f"ward plan: {r.err}")
    t.contains(r.out, "github.com", "what can be reached")
