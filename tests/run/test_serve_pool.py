"""Pools of ward serve: sandboxes that are started ahead of their clients."""
import json
import os
import re
import signal
import threading
import time

from harness import by_turns, timeout
from harness.serve import Server

POLICY = """version: 1
process: {user: user}
resources: {memory_limit: %dMi, pids_limit: 64}
"""


def numbers(s):
    """What /metrics says of pools: {(template, event)}, the event "" for those that wait."""
    text = s.ask("GET", "/metrics").body.decode()
    out = {}
    for line in re.findall(r"^ward_pool_.*$", text, re.M):
        m = re.match(r'\w+\{template="([^"]+)"(?:,event="(\w+)")?\} (\d+)', line)
        out[m[1], m[2] or ""] = int(m[3])
    return out


def wait_full(t, s, size, template="base"):
    t.wait_until(lambda: numbers(s).get((template, "")) == size, 20, "the pool is not full")


def boxes(t, s):
    """The ids of all sandboxes of this server that run, whoever has them."""
    listed = json.loads(t.ward("ps", "--json").out)
    names = {b["name"] for rows in listed.values() if isinstance(rows, list) for b in rows
             if "name" in b}
    return {n for n in names if n and len(n) == 20}


@timeout(200)
def test_pool_is_handed_over_once(t):
    s = Server(t, "--pool", "base=3")
    wait_full(t, s, 3)
    waiting = boxes(t, s)
    t.equal(len(waiting), 3)
    # a sandbox that waits is nobody's, whatever a client knows of it
    t.equal(s.ask("GET", "/v2/sandboxes").json, [])
    for id in waiting:
        for method, path in (("GET", f"/sandboxes/{id}"), ("DELETE", f"/sandboxes/{id}"),
                             ("POST", f"/v2/sandboxes/{id}/connect"),
                             ("POST", f"/sandboxes/{id}/pause"),
                             ("POST", f"/sandboxes/{id}/fork"),
                             ("GET", f"/sandboxes/{id}/logs")):
            t.equal(s.ask(method, path, {} if method == "POST" else None).status, 404, path)
        for port in ("49983", "49999", "80"):
            head = {"E2b-Sandbox-Id": id, "E2b-Sandbox-Port": port}
            t.equal(s.ask("GET", "/health", key=False, headers=head).status, 502)
    made = []
    threads = [threading.Thread(target=lambda n=n: made.append(
        (n, s.create(envVars={"NUMBER": str(n)}, metadata={"n": str(n)})))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal(len({b.id for _, b in made}), 6)
    t.equal(len({b.token for _, b in made}), 6)
    t.check(waiting < {b.id for _, b in made}, "not all that waited were handed over")
    for n, b in made:
        t.equal(b.sh("echo $NUMBER; ls -A /home/user; ps -e | grep -c sleep"),
                (1, f"{n}\n0\n", ""))
        b.sh("sleep 100 >&- 2>&- <&- & echo mine > file")
        t.equal(s.ask("GET", f"/sandboxes/{b.id}").json["metadata"], {"n": str(n)})
    t.equal({b["sandboxID"] for b in s.ask("GET", "/v2/sandboxes").json},
            {b.id for _, b in made})
    got = numbers(s)
    t.equal((got["base", "hit"] + got["base", "miss"], got["base", "held"]), (6, 0))
    t.check(got["base", "hit"] >= 3, got)
    for _, b in made:
        t.equal(b.kill(), 204)
    wait_full(t, s, 3)
    t.wait_until(lambda: not boxes(t, s) & {b.id for _, b in made}, 10, "a sandbox came back")
    t.equal(len(boxes(t, s)), 3)


@by_turns
@timeout(200)
def test_pool_follows_its_policy(t):
    """A change of the template, or of what it extends, ends what waits."""
    templates = t.fresh_dir("templates")
    t.write(templates, {"mine.yaml": POLICY % 100, "parent.yaml": POLICY % 300,
                        "child.yaml": "version: 1\nextends: [./parent.yaml]\n"})
    s = Server(t, "--templates", templates, "--pool", "mine=2,child=1")
    wait_full(t, s, 2, "mine")
    wait_full(t, s, 1, "child")

    def memory(template):
        b = s.create(template)
        return s.ask("GET", f"/sandboxes/{b.id}").json["memoryMB"]
    t.equal((memory("mine"), memory("child")), (100, 300))
    wait_full(t, s, 2, "mine")
    wait_full(t, s, 1, "child")
    t.write(templates, {"mine.yaml": POLICY % 200})
    t.equal(memory("mine"), 200)
    t.check(numbers(s)["mine", "drained"] >= 2, numbers(s))
    t.write(templates, {"parent.yaml": POLICY % 400})
    t.wait_until(lambda: numbers(s)["child", "drained"] >= 1, 15, "the change was not seen")
    wait_full(t, s, 1, "child")
    t.equal(memory("child"), 400)
    # a template that cannot be used any more
    wait_full(t, s, 2, "mine")
    os.unlink(os.path.join(templates, "mine.yaml"))
    r = s.ask("POST", "/v2/sandboxes", {"templateID": "mine"})
    t.equal(r.status, 404)
    t.wait_until(lambda: numbers(s)["mine", ""] == 0, 10, "what waited is still there")


@timeout(200)
def test_pool_and_limits(t):
    """What waits counts, and makes way for a client; it does not come from thin air: a request that
    wants more or other than the template has is not served from it."""
    s = Server(t, "--pool", "base=2", "--max", "3")
    wait_full(t, s, 2)
    made = [s.create("code-interpreter-v1")]
    made += [s.create("code-interpreter-v1")]
    t.wait_until(lambda: len(boxes(t, s)) == 3, 10, "more than may be")
    made += [s.create()]
    t.equal(numbers(s)["base", "hit"], 1)
    t.equal(s.ask("POST", "/v2/sandboxes", {"templateID": "base"}).status, 503)
    time.sleep(0.5)
    t.equal(len(boxes(t, s)), 3)
    snapshot = s.ask("POST", f"/sandboxes/{made[2].id}/snapshots", {}).json["snapshotID"]
    for b in made:
        b.kill()
    wait_full(t, s, 2)
    before = numbers(s)["base", "hit"]
    t.equal(s.ask("POST", "/v2/sandboxes", {"templateID": snapshot}).status, 201)
    t.equal(numbers(s)["base", "hit"], before)
    for text, part in (("base", "TEMPLATE="), ("base=0", "a number"), ("../x=1", "no name"),
                       ("base=4,code-interpreter-v1=4", "would wait")):
        r = t.ward("serve", "--dev", "--max", "7", "--pool", text)
        t.equal(r.rc, 2, text)
        t.contains(r.err, part)
    for text in ("base=perl", "base=python:os;x", "base"):
        t.equal(t.ward("serve", "--dev", "--warm", text).rc, 2, text)


@timeout(200)
def test_pool_is_shared(t):
    """An owner who takes much leaves the rest of a pool to others."""
    s = Server(t, "--pool", "base=6")
    key = t.ward("serve", "--state", s.state, "--add-key", "other").out.strip()

    def create(key):
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=key)
        t.equal(r.status, 201)
        return r.json["sandboxID"]
    wait_full(t, s, 6)
    create(key)
    wait_full(t, s, 6)
    for _ in range(14):
        create(s.key)
    got = numbers(s)
    t.check(got["base", "held"] > 0 and got["base", ""] >= 2, got)
    before = got["base", "hit"]
    create(key)
    t.equal(numbers(s)["base", "hit"], before + 1)


@timeout(200)
def test_pool_outlives_faults(t):
    """A box that is killed while it waits is replaced; what waited when the server was killed is
    ended by the next one; what clients have stays."""
    s = Server(t, "--pool", "base=2")
    wait_full(t, s, 2)
    mine = s.create()
    wait_full(t, s, 2)
    victim = (boxes(t, s) - {mine.id}).pop()
    t.ward("kill", victim)
    t.wait_until(lambda: victim not in boxes(t, s), 10, "it still runs")
    wait_full(t, s, 2)
    t.check(s.create().id != victim, "a dead sandbox was handed over")
    wait_full(t, s, 2)
    old = boxes(t, s)
    for pid in s.children():
        os.kill(pid, signal.SIGKILL)
    s.process.wait(20)
    s.start()
    wait_full(t, s, 2)
    t.wait_until(lambda: len(boxes(t, s) & old) == 2, 20, "what waited before still runs")
    t.equal(mine.sh("echo here"), (0, "here\n", ""))


@timeout(200)
def test_pool_is_warm(t):
    s = Server(t, "--pool", "code-interpreter-v1=1", "--warm",
               "code-interpreter-v1=python:decimal+json,code-interpreter-v1=javascript")
    wait_full(t, s, 1, "code-interpreter-v1")
    box = s.create("code-interpreter-v1", envVars={"LATE": "now"})

    def kernels():
        listed = box.sh("ps -e -o args")[1]
        return listed.count("python3 -c"), listed.count("node --expose")
    # nobody has asked for them
    t.wait_until(lambda: kernels() == (2, 1), 20, "the kernels were not started")
    code = "import sys, os; ('decimal' in sys.modules, os.environ['LATE'])"
    r = box.ask("POST", "/execute", {"code": code}, port=49999)
    t.contains(r.body.decode(), "(True, 'now')")
    r = box.ask("POST", "/execute", {"code": "process.env.LATE", "language": "js"}, port=49999)
    t.contains(r.body.decode(), '"text":"now"')
