"""Snapshots and forks of `ward serve`: by hand over the wire, and under hostile clients, hostile
sandboxes and killed servers. test_serve_sdk.py has the stock SDKs."""
import hashlib
import json
import os
import signal
import struct
import time

from harness import timeout
from harness.serve import Box, Server

# what a program can leave behind, and what it has to be in the copy
MAKE = r"""
set -e; cd; umask 022
mkdir -p deep/er "with space"; echo one >deep/er/a; ln deep/er/a deep/hard; ln -s er/a deep/link
ln -s /nowhere dangling; mkfifo pipe; : >empty; printf 'x\0y' >"with space/nul"
truncate -s 50M holes; printf end | dd of=holes bs=1 seek=52428797 conv=notrunc 2>/dev/null
chmod 0 deep/er/a; chmod 755 empty; mkdir closed; echo in >closed/f; chmod 0555 closed
mkdir shut; echo in >shut/f; chmod 0 shut; touch -d 2001-02-03T04:05:06Z deep/er "with space/nul"
echo tmp >/tmp/t; head -c 3000000 /dev/urandom >random; chmod 600 random
"""
LOOK = r"""
cd; chmod 700 shut; chmod 400 deep/er/a
find . /tmp -printf '%P %y %m %s %l %n\n' |
    grep -v '^\(shut\|holes\|deep/er/a\|deep/hard\|[.]ward.*\) ' | sort
stat -c '%n %Y' deep/er 'with space/nul'; sha256sum random holes deep/link shut/f closed/f /tmp/t
test "$(stat -c %i deep/hard)" = "$(stat -c %i deep/er/a)" && echo linked
test "$(stat -c %b holes)" -lt 1000 && echo sparse
"""


def snapshot(s, box, key=True, **body):
    return s.ask("POST", f"/sandboxes/{box.id}/snapshots", body, key=key, timeout=60)


def made(t, s, box, **body):
    r = snapshot(s, box, **body)
    t.equal((r, r.status), (r, 201))
    return r.json["snapshotID"]


def fork(s, box, **body):
    return s.ask("POST", f"/sandboxes/{box.id}/fork", body, timeout=60)


def kept(s):
    """The files of the snapshots."""
    return sorted(os.listdir(os.path.join(s.state, "snapshots")))


def second_key(t, s, owner):
    return t.run(t.ward_path, "serve", "--state", s.state, "--add-key", owner,
                 check=True).out.strip()


def test_snapshot_and_back(t):
    """All that files are comes back: content, holes, links, rights, times; in a sandbox made of the
    snapshot while the first one lives, when it is gone, and after a restart of the server."""
    s = Server(t)
    box = s.create(envs={"A": "1"}, envVars={"A": "1", "B": "2"})
    t.equal(box.sh(MAKE), (0, "", ""))
    name = made(t, s, box, name="mine")
    want = box.sh(LOOK)
    t.equal((want[0], want[1].count("\n") > 12, "linked\nsparse\n" in want[1]), (0, True, True))
    second = s.create(name)
    t.equal(second.sh(LOOK), want)
    t.equal(second.sh("echo $A$B"), (0, "12\n", ""))
    t.equal(second.sh("chmod u+w closed; echo new >closed/f; rm -rf deep")[0], 0)
    t.equal(box.sh("cat ~/closed/f ~/deep/link"), (0, "in\none\n", ""))
    box.kill()
    s.process.send_signal(signal.SIGKILL)
    s.process.wait(20)
    s.start()
    third = s.create("mine:latest", envVars={"B": "3"})
    t.equal((third.sh(LOOK), third.sh("echo $A$B")[1]), (want, "13\n"))
    r = s.ask("GET", "/snapshots").json
    t.equal([(x["snapshotID"], x["names"], x["sandboxID"]) for x in r],
            [(name, ["mine:latest"], box.id)])
    t.equal(kept(s), [name])
    t.equal(s.ask("DELETE", f"/templates/{name}").status, 204)
    t.equal(s.ask("DELETE", f"/templates/{name}").status, 404)
    t.equal(s.ask("POST", "/v2/sandboxes", {"templateID": name}).status, 404)
    t.wait_until(lambda: not kept(s), 10, "the file stays")
    t.equal(third.sh("cat ~/closed/f"), (0, "in\n", ""))	# it needs the snapshot no more


def test_snapshot_programs(t):
    """Programs of the source are stopped for the moment and go on; what was stopped stays so. None
    runs in the copy."""
    s = Server(t)
    box = s.create()
    writer = "cd; i=0; while :; do i=$((i+1)); echo $i >>n; echo $i >>m; done"
    c, r = box.start("/bin/sh", "-c", writer, stdin=False)
    c2, r2 = box.start("/bin/sleep", "1000")
    t.wait_until(lambda: box.sh("wc -l <~/n")[1].strip() not in ("", "0"), 20, "it does not write")
    state = "grep State /proc/$(pgrep -x sleep)/status"
    t.equal(box.sh(f"kill -STOP $(pgrep -x sleep); until {state} | grep T; do :; done")[0], 0)
    name = made(t, s, box)
    second = s.create(name)
    a, b = (int(second.sh(f"tail -n1 ~/{f}")[1]) for f in "nm")
    t.equal((a - b in (0, 1), second.sh("pgrep -x sleep")[0]), (True, 1))
    before = int(box.sh("tail -n1 ~/n")[1])
    t.wait_until(lambda: int(box.sh("tail -n1 ~/n")[1] or 0) > before, 20, "it does not go on")
    t.equal(box.sh(state)[1].split()[1], "T")
    c.close()
    c2.close()


def test_snapshot_names(t):
    """A name is of the last one that was given it; what is no name is refused."""
    s = Server(t)
    box = s.create()
    box.sh("echo 1 >~/f")
    first = made(t, s, box, name="work")
    box.sh("echo 2 >~/f")
    second = made(t, s, box, name="work", memory=False)
    t.equal([(x["snapshotID"], x["names"]) for x in s.ask("GET", "/snapshots").json],
            [(second, ["work:latest"]), (first, [])])
    t.equal([s.create(n).sh("cat ~/f")[1] for n in ("work", first)], ["2\n", "1\n"])
    for bad in ("base", "A", "../x", "a/b", "x" * 64, "", "-x", "a:v1", "a\0b"):
        r = snapshot(s, box, name=bad)
        t.equal((bad, r.status, r.json["code"]), (bad, 400, 400))
    page = s.ask("GET", "/snapshots?limit=1")
    t.equal([x["snapshotID"] for x in page.json], [second])
    page = s.ask("GET", f"/snapshots?limit=1&nextToken={page.headers['X-Next-Token']}")
    t.equal(([x["snapshotID"] for x in page.json], page.headers["X-Next-Token"]), ([first], None))
    for query, ids in ((f"sandboxID={box.id}", [second, first]), ("sandboxID=x", []),
                       ("name=work", [second]), ("name=work:latest", [second]), ("name=no", []),
                       (f"name={first}", [first])):
        t.equal((query, [x["snapshotID"] for x in s.ask("GET", f"/snapshots?{query}").json]),
                (query, ids))
    for query in ("limit=0", "limit=101", "nextToken=x"):
        t.equal(s.ask("GET", f"/snapshots?{query}").status, 400)
    t.equal(s.ask("DELETE", "/templates/work%3Alatest").status, 204)
    t.equal([x["snapshotID"] for x in s.ask("GET", "/snapshots").json], [first])
    for text in ("..", "%2e%2e%2fregistry.db", "base", "x" * 90, "%00", first[:-1]):
        t.equal((text, s.ask("DELETE", f"/templates/{text}").status), (text, 404))


def test_snapshot_of_others(t):
    """Somebody else's snapshot does not exist: not in the list, not by id, not by name; a name of
    theirs is not in the way."""
    s = Server(t)
    other = second_key(t, s, "mallory")
    box = s.create()
    box.sh("echo secret >~/f")
    name = made(t, s, box, name="work")
    t.equal(s.ask("GET", "/snapshots", key=other).json, [])
    for what in (name, "work", "work:latest"):
        t.equal(s.ask("POST", "/v2/sandboxes", {"templateID": what}, key=other).status, 404)
        t.equal(s.ask("DELETE", f"/templates/{what}", key=other).status, 404)
    t.equal([snapshot(s, box, key=other).status,
             s.ask("POST", f"/sandboxes/{box.id}/fork", {}, key=other).status], [404, 404])
    mine = Box(s, s.ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=other).json)
    t.equal(snapshot(s, mine, key=other, name="work").status, 201)
    t.equal(s.create("work").sh("cat ~/f")[1], "secret\n")
    t.equal(s.ask("GET", "/snapshots", key="e2b_00").status, 401)


def test_snapshot_keeps_the_network_away(t):
    """What was taken from a sandbox does not come back by a snapshot or a fork of it."""
    templates = t.fresh_dir("templates")
    t.write(templates, {"net.yaml": "version: 1\nprocess: {user: user}\n"
                                    "network: {mode: restricted, "
                                    "egress_allowlist: [{host: example.com}]}\n"})
    s = Server(t, "--templates", templates)
    box = s.create("net", allow_internet_access=False)
    name = made(t, s, box)
    again = s.create(name, allow_internet_access=True)
    forked = fork(s, box).json[0]["sandbox"]["sandboxID"]
    for one in (again.id, forked):
        t.equal(s.ask("GET", f"/sandboxes/{one}").json["network"].get("denyOut"), ["0.0.0.0/0"])


def test_snapshot_quota(t):
    """--snapshot-quota holds for all of an owner's snapshots together, and for what a hostile
    sandbox writes instead of an archive; nothing of what is refused stays on the disk."""
    s = Server(t, "--snapshot-quota", "8")
    other = second_key(t, s, "mallory")
    box = s.create()
    box.sh("head -c 5000000 /dev/urandom >~/f")
    name = made(t, s, box)
    r = snapshot(s, box)
    t.equal((r.status, "quota" in r.json["message"]), (429, True))
    r = fork(s, box)
    t.equal((r.status, "quota" in r.json["message"]), (429, True))
    t.equal(kept(s), [name])
    mine = Box(s, s.ask("POST", "/v2/sandboxes", {"templateID": "base"}, key=other).json)
    t.equal(snapshot(s, mine, key=other).status, 201)
    t.equal(s.ask("DELETE", f"/templates/{name}").status, 204)
    made(t, s, box)
    t.equal(box.sh("echo lives"), (0, "lives\n", ""))


def test_snapshot_does_not_fit(t):
    """A snapshot whose files a template does not hold any more is refused, and the sandbox ends."""
    templates = t.fresh_dir("templates")
    policy = "version: 1\nprocess: {user: user}\nresources: {memory_limit: %s}\n"
    t.write(templates, {"t.yaml": policy % "1Gi"})
    s = Server(t, "--templates", templates)
    box = s.create("t")
    t.equal(box.sh("head -c 100000000 /dev/urandom >~/f")[0], 0)
    name = made(t, s, box)
    t.write(templates, {"t.yaml": policy % "64Mi"})
    r = s.ask("POST", "/v2/sandboxes", {"templateID": name}, timeout=60)
    t.equal((r, r.status in (500, 507)), (r, True))
    t.equal([x["sandboxID"] for x in s.ask("GET", "/v2/sandboxes").json], [box.id])


def record(kind, number=0, data=b"", root=0, mode=0o644, nanos=0, size=None):
    return struct.pack("<BBHIqI", kind, root, mode, len(data) if size is None else size, number,
                       nanos) + data


BEGIN, DIR, FILE, DATA, SIZE, LINK, HARD, FIFO, ATTRIBUTE, END = range(1, 11)
HEAD, TAIL = record(BEGIN, 1), record(END)


def test_snapshot_forged(t):
    """An archive that says anything at all: whoever wrote it, it is read inside a new sandbox, with
    its rights. Nothing of the host is touched; what is damaged is refused."""
    s = Server(t)
    outside = t.fresh_dir("outside")
    target = os.path.join(outside, "victim")
    t.write(outside, {"victim": "whole"})
    box = s.create()
    cases = {
        "whole": (HEAD + record(FILE, 5, b"f") + record(DATA, 0, b"fine") + record(SIZE, 4) + TAIL,
                  201),
        "cut off": (HEAD + record(FILE, 5, b"f"), 500),
        "empty": (b"", 500),
        "text": (b"#!/bin/sh\n" * 100, 500),
        "up": (HEAD + record(FILE, 5, b"../up") + TAIL, 500),
        "absolute": (HEAD + record(FILE, 5, target.encode()) + TAIL, 500),
        "through a link": (HEAD + record(LINK, 5, b"l\0" + outside.encode()) +
                           record(FILE, 5, b"l/victim") + TAIL, 500),
        "hard link": (HEAD + record(HARD, 5, b"h\0../../etc/passwd") + TAIL, 500),
        "root": (HEAD + record(FILE, 5, b"f", root=9) + TAIL, 500),
        "setuid": (HEAD + record(FILE, 5, b"f", mode=0o4755) + TAIL, 500),
        "size": (HEAD + record(FILE, 5, b"f", size=1 << 31) + TAIL, 500),
        "data first": (HEAD + record(DATA, 0, b"x") + TAIL, 500),
        "far": (HEAD + record(FILE, 5, b"f") + record(DATA, (1 << 63) - 2, b"xx") + TAIL, 500),
        "nul": (HEAD + record(FILE, 5, b"a\0b") + TAIL, 500),
    }
    for case, (data, status) in cases.items():
        name = made(t, s, box)
        with open(os.path.join(s.state, "snapshots", name), "wb") as f:
            f.write(data)
        r = s.ask("POST", "/v2/sandboxes", {"templateID": name})
        t.equal((case, r, r.status), (case, r, status))
        if status == 201:
            t.equal(Box(s, r.json).sh("cat ~/f"), (0, "fine", ""))
        s.ask("DELETE", f"/templates/{name}")
    t.equal(t.read(outside, "victim"), "whole")


@timeout(180)
def test_snapshot_killed_server(t):
    """Whatever dies while a snapshot is made: nobody stays stopped, no half of a snapshot is found,
    the sandbox goes on."""
    s = Server(t)
    box = s.create()
    t.equal(box.sh("head -c 60000000 /dev/urandom >~/f")[0], 0)
    name = made(t, s, box)
    for wait in (0, 0.005, 0.02, 0.05):
        c = s.connection()
        c.request("POST", f"/sandboxes/{box.id}/snapshots", "{}", {"X-API-KEY": s.key})
        time.sleep(wait)
        s.process.send_signal(signal.SIGKILL)
        s.process.wait(20)
        c.close()
        s.start()
        t.equal(box.sh("echo lives; ls ~"), (0, "lives\nf\n", ""))
        t.wait_until(lambda: set(kept(s)) == {x["snapshotID"]
                                              for x in s.ask("GET", "/snapshots").json},
                     40, "files without a row stay")
    t.contains([x["snapshotID"] for x in s.ask("GET", "/snapshots").json], name)
    t.equal([f for f in kept(s) if "." in f], [])


def test_snapshot_killed_inside(t):
    """A program that kills ward-envd's other process, or the sandbox that ends meanwhile: refused,
    and nothing stays."""
    s = Server(t)
    box = s.create()
    t.equal(box.sh("head -c 100000000 /dev/urandom >~/f")[0], 0)
    c = s.connection()
    c.request("POST", f"/sandboxes/{box.id}/snapshots", "{}", {"X-API-KEY": s.key})
    t.equal(box.kill(), 204)
    r = c.getresponse()
    t.equal(r.status in (201, 404, 500), True)
    t.equal((snapshot(s, box).status, fork(s, box).status), (404, 404))
    c.close()
    t.equal(len(kept(s)), len(s.ask("GET", "/snapshots").json))


def test_snapshot_paused(t):
    s = Server(t)
    box = s.create()
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
    for r in (snapshot(s, box), fork(s, box)):
        t.equal((r.status, "resume" in r.json["message"]), (409, True))


def test_fork(t):
    """Forks have the files, variables and metadata, and go their own way; each fails by itself."""
    s = Server(t, "--quota", "4")
    box = s.create(metadata={"k": "v"}, envVars={"A": "1"}, timeout=100)
    t.equal(box.sh("echo before >~/f; mkdir ~/d")[0], 0)
    r = fork(s, box, count=2, timeout=60)
    t.equal((r, r.status, len(r.json)), (r, 201, 2))
    forks = [Box(s, one["sandbox"]) for one in r.json]
    t.equal(len({box.id, forks[0].id, forks[1].id}), 3)
    for one in forks:
        t.equal(one.sh("cat ~/f; ls ~; echo $A"), (0, "before\nd\nf\n1\n", ""))
        t.equal(s.ask("GET", f"/sandboxes/{one.id}").json["metadata"], {"k": "v"})
    forks[0].sh("echo after >~/f")
    t.equal([b.sh("cat ~/f")[1] for b in (box, *forks)], ["before\n", "after\n", "before\n"])
    t.equal((s.ask("GET", "/snapshots").json, kept(s)), ([], []))
    r = fork(s, box, count=3)
    t.equal([list(x) for x in r.json], [["sandbox"], ["error"], ["error"]])
    t.equal({x["error"]["code"] for x in r.json[1:]}, {429})
    for bad in ({"count": 0}, {"count": 21}, {"count": -1}, {"count": "x"}, {"timeout": 0},
                {"timeout": 1 << 40}, []):
        r = s.ask("POST", f"/sandboxes/{box.id}/fork", bad)
        t.equal((bad, r.status, r.json["code"]), (bad, 400, 400))
    t.wait_until(lambda: not kept(s), 10, "the snapshot of the fork stays")


def test_fork_killed_server(t):
    """What a fork had begun is known to the next server: its sandboxes live or are ended, its
    snapshot is removed."""
    s = Server(t)
    box = s.create()
    t.equal(box.sh("head -c 30000000 /dev/urandom >~/f")[0], 0)
    for wait in (0.05, 0.2, 0.4):
        c = s.connection()
        c.request("POST", f"/sandboxes/{box.id}/fork", json.dumps({"count": 3, "timeout": 100}),
                  {"X-API-KEY": s.key})
        time.sleep(wait)
        s.process.send_signal(signal.SIGKILL)
        s.process.wait(20)
        c.close()
        s.start()
        t.equal(box.sh("ls ~"), (0, "f\n", ""))
        t.wait_until(lambda: not kept(s), 40, "the snapshot of the fork stays")
        for one in s.ask("GET", "/v2/sandboxes").json:
            if one["sandboxID"] != box.id:
                t.equal(s.ask("DELETE", f"/sandboxes/{one['sandboxID']}").status, 204)
