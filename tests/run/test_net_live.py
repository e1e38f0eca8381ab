"""ward net: rules of a sandbox that runs are seen and changed; what they no longer allow ends at
once, the rest goes on."""
import errno
import json
import os
import signal
import threading

from harness import by_turns, filters, timeout, users
from harness.boxes import clean, look
from harness.world import DNS, OTHER, TRY, World, attempts, policy

HOLD = r"""
import os, socket, sys, time
name, port, mark = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection((name, port), 10)
s.sendall(b"x"); s.recv(1)
open(mark + ".up", "w").close()
s.settimeout(60)
try:
    while True:
        if os.path.exists(mark + ".go"):
            s.sendall(b"y")
            how = "alive" if s.recv(1) == b"y" else "end"
            break
        s.settimeout(0.1)
        try:
            if not s.recv(1):
                how = "end"
                break
        except socket.timeout:
            s.settimeout(10)
except OSError as error:
    how = type(error).__name__
open(mark + ".was", "w").write(how + "\n")
"""


def start(t, world, rules=None, **network):
    """A detached idle sandbox at home; returns (id, workspace)."""
    ws = t.workspace({"try.py": TRY, "hold.py": HOLD})
    t.defer(clean, t)
    r = world.ward("run", "-d", "-p", policy(t, rules, **network), cwd=ws)
    t.equal(r.rc, 0, f"run -d ({r.err})")
    return r.out.strip(), ws


def attempt(t, box, *lines, slow=False):
    """What comes of each "host port" inside."""
    r = t.ward("exec", box, "/usr/bin/python3", "try.py", *lines, timeout=60)
    t.equal(r.rc, 0, f"exec ({r.err})")
    t.check(slow or "slow:" not in r.out, f"an attempt took long: {r.out}")
    return [line.split(" -> ")[1] for line in r.out.splitlines() if " -> " in line]


def hold(t, box, ws, name, port, mark):
    """A connection inside that is held open until mark.go is there or it breaks; mark.was says how
    it ended."""
    t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "hold.py", name, str(port), mark), cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, mark + ".up")), 20,
                 f"{name}:{port} was not reached")


def was(t, ws, mark):
    path = os.path.join(ws, mark + ".was")
    t.wait_until(lambda: (t.read(path) or "").endswith("\n"), 20, f"{mark} does not end")
    return t.read(path).strip()


def net(t, *words, rc=0):
    r = t.ward("net", *words)
    t.equal(r.rc, rc, f"net {' '.join(words)} ({r.err})")
    return r


def shown(t, box):
    return json.loads(net(t, "show", box, "--json").out)


def test_allow_and_deny(t):
    """A name that is allowed live is reached at once, on a port that no rule had; denied again it
    is unknown."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    t.equal(attempt(t, box, "db.test 5432", "other.test 7"), ["EAI_NONAME", "EAI_NONAME"], "before")
    first = shown(t, box)["generation"]
    net(t, "allow", box, "db.test:5432", f"{OTHER}:7")
    t.equal(attempt(t, box, "db.test 5432", f"{OTHER} 7", "other.test 7", f"{OTHER} 5432"),
            ["got hello", "got hello", "EAI_NONAME", "ECONNREFUSED"], "allowed live")
    now = shown(t, box)
    t.equal(now["generation"], first + 1, "one change, one generation")
    rule = [r for r in now["rules"] if r["rule"] == "db.test:5432"][0]
    t.equal((rule["hits"], rule["live"], rule["action"], rule["bytes_in"]), (1, True, "allow", 5),
            "the rule that was used")
    t.equal(now["totals"]["connections"], 2, "connections")
    net(t, "deny", box, "db.test")
    t.equal(attempt(t, box, "db.test 5432", f"{OTHER} 7"), ["EAI_NONAME", "got hello"],
            "denied live")
    net(t, "allow", box, "db.test:5432")
    t.equal(attempt(t, box, "db.test 5432"), ["got hello"], "the denial is taken back")
    net(t, "allow", box, "*.web.test:80")
    net(t, "deny", box, "*:80")
    t.equal(attempt(t, box, "www.web.test 80"), ["ECONNREFUSED"],
            "deny wins over a rule that is closer")
    text = net(t, "show", box).out
    t.contains(text, "deny  *:80", "text")
    t.contains(net(t, "show").out, box, "without a name all are shown")


def test_before_the_first_use(t):
    """Rules change before anything has used the network, when there is no gateway yet."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    t.equal(shown(t, box)["gateway"], "waiting", "nobody wanted anything")
    net(t, "allow", box, "db.test:5432")
    t.equal(attempt(t, box, "db.test 5432"), ["got hello"], "allowed")
    t.equal(shown(t, box)["gateway"], "running", "then")


def test_flows(t):
    """Only connections that the new rules do not allow are closed, and at once; they are shown
    while they are open."""
    world = World(t)
    box, ws = start(t, world, ["db.test:5432", "web.test:5432", f"{OTHER}:7", "*.web.test:5432"])
    hold(t, box, ws, "db.test", 5432, "named")
    hold(t, box, ws, "web.test", 5432, "other")
    hold(t, box, ws, OTHER, 7, "literal")
    hold(t, box, ws, "www.web.test", 5432, "wild")
    flows = {(f["host"], f["port"]): f for f in shown(t, box)["connections"]}
    t.equal(sorted(flows), [(OTHER, 7), ("db.test", 5432), ("web.test", 5432),
                            ("www.web.test", 5432)], "open connections")
    t.equal((flows["db.test", 5432]["bytes_in"], flows["db.test", 5432]["rule"]), (1, 0),
            "what is known of one")
    r = json.loads(net(t, "deny", box, "db.test", "www.web.test:5432", "--json").out)
    t.equal(r["closed"], 2, "closed connections")
    t.equal((was(t, ws, "named"), was(t, ws, "wild")),
            ("ConnectionResetError", "ConnectionResetError"), "what is no longer allowed")
    t.equal(sorted(f["host"] for f in shown(t, box)["connections"]), [OTHER, "web.test"], "left")
    net(t, "allow", box, "web.test:5432")	# now another rule is the one that allows it
    t.write(ws, {"other.go": "", "literal.go": ""})
    t.equal((was(t, ws, "other"), was(t, ws, "literal")), ("alive", "alive"),
            "what is still allowed")
    t.wait_until(lambda: not shown(t, box)["connections"], 10, "ended connections are still shown")


def test_given_up(t):
    """Who gives up while the server has not answered leaves nothing behind, though that server may
    be waited for much longer."""
    world = World(t, names={"silent.test": ["198.51.100.99"]})
    t.run("nsenter", "-t", str(world.world), "-n", "ip", "route", "add", "blackhole",
          "198.51.100.99/32", root=True, check=True)
    box, ws = start(t, world, ["silent.test:5432"])
    t.write(ws, {"leave.py": """
import os, socket, struct, sys, time
s = socket.create_connection(("silent.test", 5432), 10)
open("leave.up", "w").close()
while not os.path.exists("leave.go"):
    time.sleep(0.01)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
s.close()
"""})
    leave = t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "leave.py"), cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "leave.up")), 20, "it was not accepted")
    t.equal([f["host"] for f in shown(t, box)["connections"]], ["silent.test"], "while it waits")
    t.write(ws, {"leave.go": ""})
    t.equal(leave.wait(20), 0, "the program")
    t.wait_until(lambda: not shown(t, box)["connections"], 10, "it is still waited for")


def test_download(t):
    """A download that runs ends at once when its name is denied."""
    world = World(t)
    box, ws = start(t, world, [{"host": "db.test", "ports": [5432], "bandwidth_limit": "1Mi"}])
    script = "import socket; s = socket.create_connection(('db.test', 5432), 20); s.sendall(b'SIZE 1000000000'); n = 0\n" \
             "try:\n while d := s.recv(65536):\n  n += len(d)\n  if n > 200000: open('much', 'w')\n" \
             "except OSError as e: open('how.new', 'w').write(type(e).__name__); import os; os.rename('how.new', 'how')\n"
    t.write(ws, {"load.py": script})
    t.popen(t.ward_argv("exec", box, "/usr/bin/python3", "load.py"), cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "much")), 20, "nothing comes")
    limits = shown(t, box)["rules"][0]
    t.equal(limits["limits"], {"bandwidth": 1 << 20}, "limits of the rule")
    t.check(limits["bytes_in"] > 100000, f"bytes of a rule with limits: {limits}")
    net(t, "deny", box, "*.test:5432")
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "how")), 10, "the download goes on")
    t.equal(t.read(ws, "how"), "ConnectionResetError", "what the program saw")


@by_turns
def test_temporary(t):
    """A temporary rule ends by itself, and takes its connections along."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    net(t, "allow", "--temporary", "3", box, "db.test:5432")
    hold(t, box, ws, "db.test", 5432, "short")
    t.check(shown(t, box)["rules"][1]["lasts_ms"] <= 3000, "how long it lasts is shown")
    t.equal(was(t, ws, "short"), "ConnectionResetError", "its end")
    t.equal(attempt(t, box, "db.test 5432"), ["EAI_NONAME"], "after that")
    net(t, "deny", box, "evil.test")
    r = net(t, "allow", "--temporary", "60", box, "evil.test", rc=125)
    t.contains(r.err, "revoke the rule for evil.test", "a denial is not taken back for a while")


def test_many_at_once(t):
    """Changes from several sides at one time all come into force, none is lost."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    attempt(t, box, "web.test 443")
    threads = [threading.Thread(target=lambda i=i: t.ward("net", "allow", box,
                                                          f"n{i}.test:{7000 + i}"))
               for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = shown(t, box)
    t.equal(sorted(r["rule"] for r in now["rules"] if r["live"]),
            sorted(f"n{i}.test:{7000 + i}" for i in range(12)), "rules")
    t.equal(now["generation"], 13, "generation")


def gateway(t, box):
    """pids of front and dial."""
    pid = json.loads(t.ward("ps", "--json").out)["sandboxes"][0]["pid"]
    front = look(t, f"/proc/{pid}/task/{pid}/children").split()
    front = [p for p in front if look(t, f"/proc/{p}/comm").strip() == "ward-gateway"][0]
    return int(front), int(look(t, f"/proc/{front}/task/{front}/children").split()[0])


@by_turns
@timeout(60)
def test_gateway_stuck(t):
    """Rules that the gateway does not take end it: the old ones are not in force any more, and
    nothing else is."""
    world = World(t)
    for which in (0, 1):
        box, ws = start(t, world, ["db.test:5432"])
        hold(t, box, ws, "db.test", 5432, "held")
        with t.root():
            os.kill(gateway(t, box)[which], signal.SIGSTOP)
        r = net(t, "deny", box, "db.test", rc=125)
        t.contains(r.err, "no longer has a network", "the answer")
        with t.root():
            t.check(was(t, ws, "held") != "alive", "the connection lives")
        t.equal(shown(t, box)["gateway"], "ended", "shown")
        r = net(t, "allow", box, "web.test", rc=125)
        t.contains(r.err, "has exited", "a later change")
        t.equal(t.ward("rm", "--force", box).rc, 0, "rm")


def test_gateway_killed(t):
    """The gateway is killed while changes come in: each is answered, and afterwards there is no
    network."""
    world = World(t)
    box, ws = start(t, world, ["db.test:5432"])
    attempt(t, box, "db.test 5432")
    answers = []

    def change():
        for i in range(20):
            answers.append(t.ward("net", "allow", box, f"n{i}.test:{7000 + i}").rc)
    thread = threading.Thread(target=change)
    thread.start()
    t.wait_until(lambda: len(answers) >= 3, 20)
    with t.root():
        os.kill(gateway(t, box)[1], signal.SIGKILL)
    thread.join()
    t.equal(len(answers), 20, "answers")
    t.check(answers[0] == 0 and answers[-1] == 125, f"answers {answers}")
    t.check(attempt(t, box, "db.test 5432")[0] in ("EAI_AGAIN", "EAI_NONAME"), "no network")


def test_bad_words(t):
    """Wrong words are refused with place and remedy, and change nothing."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    cases = [
        (("frob",), 2, "neither show, allow nor deny"),
        ((), 2, "net"),
        (("show", box, "x"), 2, "one sandbox"),
        (("allow", box), 2, "needs a sandbox and at least one"),
        (("deny",), 2, "needs a sandbox"),
        (("allow", "--temporary", "soon", box, "a.test"), 2, "--temporary soon"),
        (("allow", "--temporary", "0", box, "a.test"), 2, "--temporary 0"),
        (("show", "--temporary", "5", box), 2, "only works with allow and deny"),
        (("allow", "nosuchbox", "a.test"), 125, "no sandbox nosuchbox"),
        (("allow", box, "a.test:70000"), 125, "70000"),
        (("allow", box, "fine.test", "bad..name"), 125, "bad..name"),
        (("deny", box, "0x7f.1"), 125, "0x7f.1"),
        (("allow", box, "{host: a.test, colour: red}"), 125, "colour"),
        (("allow", box, *[f"n{i}.test" for i in range(65)]), 125, "64"),
    ]
    for words, rc, text in cases:
        r = net(t, *words, rc=rc)
        t.contains(r.err, text, f"net {words}")
        if rc == 125:
            t.equal(sorted(json.loads(net(t, *words, "--json", rc=rc).err)["refused"]),
                    ["remedy", "what", "why"], "as JSON")
    t.equal(shown(t, box)["generation"], 1, "nothing has changed")
    none = t.ward("run", "-d", cwd=ws).out.strip()
    t.contains(net(t, "show", none, rc=125).err, "has no network", "one without a network")
    t.contains(net(t, "allow", none, "a.test", rc=125).err, "--allow", "the remedy")


def test_not_from_inside(t):
    """Nothing inside can change the rules, whatever it sees."""
    world = World(t)
    box, ws = start(t, world, ["web.test"])
    t.write(ws,
            {"inside.py": "import subprocess, sys\nr = subprocess.run([sys.argv[1], 'net', "
             "'allow', sys.argv[2], 'evil.test'])\n"
                          "print('rc', r.returncode)\n"})
    r = t.ward("exec", box, "/usr/bin/python3", "inside.py", t.ward_path, box)
    t.check("rc 0" not in r.out, f"from inside: {r.out} {r.err}")
    t.equal(shown(t, box)["generation"], 1, "generation")


WAITS = r"""
import os, socket, time
while not os.path.exists("go"):
    time.sleep(0.02)
s = socket.create_connection(("db.test", 5432), 10)
s.sendall(b"x")
print(s.recv(1), flush=True)
"""


def test_foreground(t):
    """A ward run that somebody waits for is changed from elsewhere; nothing of it is left."""
    world = World(t)
    ws = t.workspace({"waits.py": WAITS})
    argv = [*world.wrap(ws), *users.setpriv(t.person), t.ward_path, "run", "-p",
            policy(t, ["web.test"]), "--report",
            os.path.join(ws, "report.json"), "--", "/usr/bin/python3", "waits.py"]
    process = t.popen(argv, root=True)
    t.wait_until(lambda: json.loads(net(t, "show", "--json").out)["sandboxes"], 10,
                 "it is not shown")
    run = json.loads(net(t, "show", "--json").out)["sandboxes"][0]
    t.equal((run["workspace"], run["gateway"], run["generation"]), (ws, "waiting", 1),
            "what is shown")
    t.contains(net(t, "show", run["id"][-6:]).out, ws, "by a part of its id")
    net(t, "allow", run["id"], "db.test:5432")
    t.check(t.ward("logs", run["id"]).rc == 125, "other verbs know detached ones only")
    t.write(ws, {"go": ""})
    out, err = process.communicate(timeout=30)
    t.equal((out, process.returncode), (b"b'x'\n", 0), f"the command ({err})")
    report = json.loads(t.read(ws, "report.json"))
    t.equal((report["network"]["connections"], report["network"]["generation"]), (1, 2),
            "in the report")
    t.contains(net(t, "show").out, "no running sandbox has a network", "afterwards")
    t.contains(net(t, "allow", run["id"], "a.test", rc=125).err, "no sandbox", "afterwards")
    t.equal(os.listdir(os.path.join(t.runtime_dir, "runs")), [], "left")


def test_foreground_killed(t):
    """What a killed ward leaves of its socket goes away."""
    world = World(t)
    ws = t.workspace({"waits.py": WAITS})
    argv = [*world.wrap(ws), *users.setpriv(t.person), t.ward_path, "run", "-p",
            policy(t, ["web.test"]), "--", "/usr/bin/python3", "waits.py"]
    process = t.popen(argv, root=True)
    t.wait_until(lambda: json.loads(net(t, "show", "--json").out)["sandboxes"], 10,
                 "it is not shown")
    with t.root():
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    t.wait_until(lambda: (net(t, "show"), os.listdir(os.path.join(t.runtime_dir, "runs")))[1] == [],
                 15, "left")


SEEN = {	# what a program sees: (with nf_tables, without)
    # an allowed name, a port of another name's rule
    "web.test 5432": ("ECONNREFUSED", "ECONNRESET"),
    "web.test 6000": ("ECONNREFUSED", "ECONNREFUSED"),	# an allowed name, a port of no rule
    "db.test 443": ("ECONNREFUSED", "ECONNRESET"),
    "a.web.test 443": ("ECONNREFUSED", "ECONNRESET"),
    "a.web.test 7": ("ECONNRESET", "ECONNRESET"),	# under the wildcard, and does not exist
    "db.test 5432": ("got hello", "got hello"),
    "evil.test 443": ("EAI_NONAME", "EAI_NONAME"),	# not allowed
    # an address that no rule has, a port that one has
    f"{OTHER} 5432": ("ECONNREFUSED", "ECONNRESET"),
    f"{OTHER} 6000": ("ECONNREFUSED", "ECONNREFUSED"),
    "private.test 5432": ("ECONNRESET", "ECONNRESET"),	# resolves to what is never reached
    # does not exist: found out when it is connected to
    "nowhere.test 5432": ("ECONNRESET", "ECONNRESET"),
}


def test_what_programs_see(t):
    """Every kind of refusal is an error at once; with nf_tables a port that the name may not use is
    a refused connection."""
    world = World(t)
    rules = ["web.test", "*.web.test:7", "db.test:5432", "private.test:5432", "nowhere.test:5432"]
    for column, wrap in enumerate(((), filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES"))):
        got, report = attempts(t, world, *SEEN, rules=rules, wrap=wrap)
        t.equal(got, {line: seen[column] for line, seen in SEEN.items()},
                ("with nf_tables", "without")[column])
        told = {d["what"]: d["why"] for d in report["denials"]}
        t.contains(told.get("connection to web.test:5432", ""), "but not this port",
                   "the port is told")
        t.contains(told.get("connection to nowhere.test:5432", ""), "no address", "so is the name")


def test_without_nf_tables(t):
    """Without nf_tables hosts are allowed and denied live, and a port that was not there at the
    start is refused as such."""
    world = World(t)
    ws = t.workspace({"try.py": TRY, "hold.py": HOLD})
    t.defer(clean, t)
    r = t.ward("run", "-d", "-p", policy(t, ["web.test:5432", "web.test:7"]), cwd=ws,
               wrap=[*world.wrap(ws), *filters.without(t, errno.EPROTONOSUPPORT, "NF_TABLES")])
    t.equal(r.rc, 0, f"run -d ({r.err})")
    box = r.out.strip()
    t.equal(attempt(t, box, "db.test 5432", "web.test 5432"), ["EAI_NONAME", "got hello"], "before")
    net(t, "allow", box, "db.test:5432")
    hold(t, box, ws, "db.test", 5432, "held")
    r = net(t, "allow", box, "db.test:22", rc=125)
    t.contains(r.err, "without nf_tables", "another port")
    t.contains(r.err, "--allow HOST:22", "the remedy")
    t.equal(shown(t, box)["generation"], 2, "nothing has changed")
    net(t, "deny", box, "db.test")
    t.equal(was(t, ws, "held"), "ConnectionResetError", "the connection")
    t.equal(attempt(t, box, "db.test 5432", "web.test 7"), ["EAI_NONAME", "got hello"], "after")
    t.contains(net(t, "show", box).out, "without nf_tables", "shown")


def test_cached_address(t):
    """A program that keeps an address goes on with it as far as the name may; what is new it finds
    by asking again."""
    world = World(t)
    box, ws = start(t, world, ["db.test:5432"])
    look_up = "import socket; print(socket.gethostbyname('db.test'))"
    first = t.ward("exec", box, "/usr/bin/python3", "-c", look_up).out.strip()
    net(t, "allow", box, "db.test:22")
    second = t.ward("exec", box, "/usr/bin/python3", "-c", look_up).out.strip()
    t.check(first != second, f"one address for two sets of ports: {first}")
    t.equal(attempt(t, box, f"{first} 5432", f"{first} 22", f"{second} 5432", f"{second} 22")[:3],
            ["got hello", "ECONNREFUSED", "got hello"], "old and new address")
    net(t, "deny", box, "db.test:5432")
    t.check(attempt(t, box, f"{first} 5432")[0] in ("ECONNREFUSED", "ECONNRESET"),
            "denied by its old address")
    t.equal(attempt(t, box, "db.test 5432"), ["ECONNREFUSED"], "and by name")


@by_turns
@timeout(60)
def test_host_files(t):
    """A resolver or a table of names that the host replaces counts for the next connection."""
    world = World(t, {"later.test": [OTHER]})
    box, ws = start(t, world, ["db.test:5432", "later.test:5432", "fresh.test:5432"])
    t.equal(attempt(t, box, "db.test 5432", "fresh.test 5432"), ["got hello", "ECONNRESET"],
            "before")

    def replace(name, text):
        t.write(world.dir, {name + ".new": text})
        path = os.path.join(world.dir, name + ".new")
        os.chmod(path, 0o644)
        t.run("nsenter", "-t", str(world.home), "-m", "mount", "--bind", path, f"/etc/{name}",
              root=True, check=True)
    replace("hosts", f"127.0.0.1 localhost\n{OTHER} fresh.test\n")
    t.wait_until(lambda: attempt(t, box, "fresh.test 5432") == ["got hello"], 10,
                 "the new table of names does not count")
    replace("resolv.conf", "# nobody is there\nnameserver 127.0.0.1\n")
    t.wait_until(lambda: attempt(t, box, "later.test 5432", slow=True) == ["ECONNRESET"], 20,
                 "the new resolver does not count")
    replace("resolv.conf", f"nameserver {DNS}\n")
    t.wait_until(lambda: attempt(t, box, "later.test 5432") == ["got hello"], 10,
                 "the next resolver does not count")


def test_proxy_password(t):
    """The password of an upstream proxy is in nothing that ward prints."""
    ws = t.workspace({"ward.yaml": "version: 1\nnetwork:\n"
                      "  upstream_proxy: http://agent:UNMISTAKABLEPASSWORD@proxy.test:3128\n"})
    for words in (("check",), ("check", "--json"), ("run", "true"), ("plan", "true"), ("trust",),
                  ("trust", "--json"), ("plan", "--json", "true"),
                  ("plan", "true"),
                  ("run", "-v", "--set",
                   "network.upstream_proxy=http://agent:UNMISTAKABLEPASSWORD@other.test", "true"),
                  ("run", "--json", "true")):
        r = t.ward(*words, cwd=ws)
        t.check("UNMISTAKABLEPASSWORD" not in r.out + r.err, f"ward {words} prints the password")
    t.contains(t.ward("check", cwd=ws).out, "http://agent:***@proxy.test:3128", "the rest is shown")


def test_deny_wins_over_services(t):
    """A service of the host is denied by its name and by its address: its open connections are cut,
    it is not reached any more until it is allowed again, and ward net show lists it."""
    world = World(t)
    echo = "import socketserver as s, threading\nclass H(s.BaseRequestHandler):\n def handle(self):\n  while d := self.request.recv(100): self.request.sendall(d)\n" \
           "class S(s.ThreadingTCPServer): daemon_threads = True\n" \
           "a = [S(('127.0.0.1', p), H) for p in (7001, 7002)]\nprint('up', flush=True)\n[threading.Thread(target=x.serve_forever).start() for x in a]"
    server = t.popen(["nsenter", "-t", str(world.home), "-n", "/usr/bin/python3", "-c", echo],
                     root=True)
    server.stdout.readline()
    for number, denied in enumerate(("cache", "cache:7001", "127.0.0.1:7001", "*")):
        box, ws = start(t, world, ["web.test"],
                        host_services=["cache=127.0.0.1:7001", "other=127.0.0.1:7002"])
        t.equal(attempt(t, box, "cache 7001", "other 7002"), ["got hello", "got hello"], "before")
        hold(t, box, ws, "cache", 7001, f"m{number}")
        shown = net(t, "show", box).out
        t.check("allow cache:7001 at 127.0.0.1" in " ".join(shown.split()), f"listed: {shown}")
        now = json.loads(net(t, "show", "--json", box).out)
        t.equal(now["services"],
                [{"service": "cache:7001 at 127.0.0.1", "action": "allow", "open": 1},
                 {"service": "other:7002 at 127.0.0.1", "action": "allow", "open": 0}],
                "listed in JSON")
        t.contains(net(t, "deny", box, denied).out, "1 connection closed", f"deny {denied}")
        t.check(was(t, ws, f"m{number}") in ("ConnectionResetError", "end"),
                f"deny {denied}: the open connection goes on")
        got = attempt(t, box, "cache 7001", "other 7002", slow=True)
        t.check("hello" not in got[0], f"deny {denied}: {got}")
        t.equal(got[1] == "got hello", denied != "*", f"deny {denied}: the other service")
        now = json.loads(net(t, "show", "--json", box).out)
        t.equal([s["action"] for s in now["services"]],
                ["deny", "deny" if denied == "*" else "allow"], f"deny {denied}: shown")
        net(t, "allow", box, denied if ":" in denied else denied + ":7001")
        t.equal(attempt(t, box, "cache 7001", slow=True), ["got hello"], f"allow {denied}")
