"""ward evidence: what is known about a sandbox from outside, before it is destroyed."""
import hashlib
import io
import json
import os
import tarfile

from harness import only_root
from harness.boxes import box, listed

WORK = """
import os, time
open("made", "wb").write(b"made inside\\n" * 3)
os.mkdir("deep")
open("deep/secret link", "w").write("x")
os.symlink("/etc/shadow", "link")
os.mkfifo("pipe")
f = open("made")
print("said", flush=True)
open("ready", "w").close()
for i in range(10 ** 9):
    open("tick", "w").write(str(i))
    time.sleep(0.02)
"""


def archive(path):
    with open(path, "rb") as f:
        data = f.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return data, {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def start(t, *args):
    ws = t.workspace({"work.py": WORK, "old": "was there\n"})
    one = box(t, *args, "--", "/usr/bin/python3", "work.py", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 20, "it did not begin")
    return one, ws


def test_archive(t):
    """Processes, maps, open files, changed files, output and journal; each as its digest says, and
    the archive's own is on record. The sandbox stands still from then on."""
    one, ws = start(t)
    path = os.path.join(t.fresh_dir("out"), "e.tar")
    r = t.ward("evidence", one, "-o", path)
    t.equal(r.rc, 0, r.err)
    t.equal(listed(t)[one]["state"], "paused", "frozen")
    tick = t.read(ws, "tick")
    data, members = archive(path)
    t.equal(r.out.split()[0], hashlib.sha256(data).hexdigest(), "the digest of the archive")
    t.equal(os.stat(path).st_mode & 0o777, 0o600, "nobody else reads it")
    rows = [line.split(None, 2) for line in members["MANIFEST"].decode().splitlines()]
    t.equal(sorted(row[2] for row in rows), sorted(set(members) - {"MANIFEST"}), "all are listed")
    for digest, size, name in rows:
        t.equal((hashlib.sha256(members[name]).hexdigest(), len(members[name])),
                (digest, int(size)), name)
    maps = [name for name, text in members.items() if name.endswith("/maps") and b"python3" in text]
    t.equal(len(maps), 1, "memory maps of the command")
    links = members[maps[0].replace("/maps", "/links")].decode()
    t.check(f"-> {ws}/made\n" in links and "exe -> " in links, f"open files: {links}")
    t.check(b"work.py" in members[maps[0].replace("/maps", "/cmdline")], "its words")
    t.equal(members["files/0/made"], b"made inside\n" * 3, "a file that was made")
    t.contains(members["files/0/link"].decode(), "cannot be read")
    t.contains(members["files/0/pipe"].decode(), "not a regular file")
    t.check("files/0/old" not in members, "what was there before is left out")
    t.contains(members["output.log"].decode(), "said")
    journal = [text for name, text in members.items() if name.startswith("journal/")]
    t.check(b'"kind":"run.start"' in b"".join(journal), "its journal")
    t.equal(json.loads(members["sandbox.json"])["id"], one)
    t.equal(t.read(ws, "tick"), tick, "nothing went on meanwhile")
    found = [e for e in map(json.loads, t.ward("audit", "show", one, "--json").out.splitlines())
             if e.get("change") == "evidence"]
    index = t.run("grep", "-rhs", "evidence", t.environment()["WARD_STATE_DIR"] + "/audit").out
    t.check(found or hashlib.sha256(data).hexdigest() in index, "the digest is on record")
    t.equal(t.ward("resume", one).rc, 0, "resume")
    t.wait_until(lambda: t.read(ws, "tick") != tick, 20, "it does not go on")


def test_hostile_tree(t):
    """A directory that nobody may look into is told of and is no reason to end; names that the
    format has no room for neither collide, nor are absolute, nor lead upwards."""
    names = ["d" * 60 + "/" + "x" * 98, "d" * 60 + "/a../" + "x" * 96,
             "h" * 10 + "/" + "g" * 120, "i" * 10 + "/" + "g" * 120]
    ws = t.workspace()
    one = box(t, "--", "sh", "-c",
              "mkdir -p shut z " + " ".join(map(os.path.dirname, names)) + "; " +
              "".join(f"echo {i} > {n}; " for i, n in enumerate(names)) +
              "echo 1 > 'z/a\\n'; echo 2 > 'z/a\n'; "
              "echo in > shut/x; echo z > z/last; chmod 000 shut; : > ready; sleep 60", cwd=ws)
    t.defer(lambda: t.run("chmod", "700", os.path.join(ws, "shut"), root=True))
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 20, "it did not begin")
    path = os.path.join(t.fresh_dir("out"), "e.tar")
    r = t.ward("evidence", one, "-o", path, "--json")
    t.equal(r.rc, 0, r.err)
    _, members = archive(path)
    t.equal(members["files/0/z/last"], b"z\n", "what comes behind it")
    t.equal((members["files/0/z/a\\\\n"], members["files/0/z/a\\n"]), (b"1\n", b"2\n"),
            "a backslash and a line end")
    if "files/0/shut/x" not in members:
        t.contains(members["files/0/shut/UNREADABLE"].decode(), "cannot be read")
        t.equal(json.loads(r.out)["complete"], False, "it says so")
    t.contains(members["files/DIRECTORIES"].decode(), f"0 {ws}\n")
    manifest = members["MANIFEST"].decode()
    for i, name in enumerate(names):
        whole = f"files/0/{name}"
        digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
        member = f"long/{digest}-{whole[-70:].replace('/', '_')}"
        t.equal(members[member], f"{i}\n".encode(), whole)
        t.contains(manifest, f"  {member}  for {whole}\n")
    t.check(not any(m.startswith("/") or ".." in m.split("/") for m in members), "names")


def test_of_a_frozen_one(t):
    """A sandbox that a rule has frozen stays so; a run in the foreground can be looked at, too."""
    ws = t.workspace()
    run = t.ward_start("run", "--set", "watch.rules=[{name: d, count: denials, do: freeze}]", "--",
                       "sh", "-c", "unshare -U true; sleep 60", cwd=ws)
    line = run.stderr.readline()
    line = line.decode() if isinstance(line, bytes) else line
    t.contains(line, "is frozen")
    name = line.split(" is frozen")[0].rsplit(" ", 1)[1]
    t.wait_until(lambda: name in listed(t), 20, "it is not listed")
    path = os.path.join(t.fresh_dir("out"), "e.tar")
    r = t.ward("evidence", name, "-o", path, "--json")
    t.equal((r.rc, json.loads(r.out)["complete"]), (0, True), r.err)
    _, members = archive(path)
    t.check(any(b"watch.alert" in text for n, text in members.items() if n.startswith("journal/")),
            "the alert is in the journal so far")
    t.equal(t.ward("kill", name).rc, 0, "kill")
    t.equal(t.finish_ward(run).rc, 137)


def test_refused(t):
    """No file, one that is there, no sandbox: an error, and nothing is left behind."""
    one, _ = start(t)
    out = t.fresh_dir("out")
    t.write(out, {"there": "mine"})
    for args, said in (((one,), "no file was named"),
                       ((one, "-o", os.path.join(out, "there")), "not there yet"),
                       (("nobody", "-o", os.path.join(out, "x")), "nobody")):
        r = t.ward("evidence", *args)
        t.check(r.rc != 0 and said in r.err, f"{args}: {r.err}")
    t.equal((os.listdir(out), t.read(out, "there")), (["there"], "mine"), "nothing else")
    t.equal(listed(t)[one]["state"], "running", "nothing was frozen")


@only_root
def test_dead_journal_and_full_disk(t):
    """The state directory is full, and the journal of the run is gone: the archive is complete but
    for that, and everything can still be stopped."""
    state = t.fresh_dir("full")
    t.run("mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "none", state, root=True, check=True)
    t.defer(lambda: t.run("umount", "-l", state, root=True))
    env = {"WARD_STATE_DIR": state}
    ws = t.workspace({"work.py": WORK})
    r = t.ward("run", "-d", "--set", "audit.on_full=continue", "--", "/usr/bin/python3", "work.py",
               cwd=ws, env=env)
    t.equal(r.rc, 0, r.err)
    one = r.out.strip()
    t.defer(lambda: t.ward("rm", "--force", "--all", env=env))
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 20, "it did not begin")
    t.run("sh", "-c", f"cat /dev/zero > {state}/fill 2>/dev/null; rm -rf {state}/audit/live",
          root=True)
    path = os.path.join(t.fresh_dir("out"), "e.tar")
    r = t.ward("evidence", one, "-o", path, env=env)
    t.equal(r.rc, 0, r.err)
    _, members = archive(path)
    t.equal(members["files/0/made"], b"made inside\n" * 3, "a file that was made")
    r = t.ward("panic", env=env)
    t.equal(r.rc, 0, f"panic ends it all the same ({r.err})")
    os.remove(f"{state}/fill")
    r = t.ward("run", "--", "true", cwd=ws, env=env)
    t.check(r.rc == 125 and "panic" in r.err, f"new runs are refused: {r.err}")


def test_signed(t):
    """FILE.sig has the digest signed with the key of the journals; a changed archive, another key
    and a changed signature are seen."""
    one, _ = start(t)
    d = t.fresh_dir("out")
    tar = os.path.join(d, "e.tar")
    r = t.ward("evidence", one, "-o", tar)
    t.equal(r.rc, 0, r.err)
    r = t.ward("evidence", "--verify", tar, "--json")
    t.equal((r.rc, json.loads(r.out)["good"]), (0, True), f"{r.out} {r.err}")
    key = json.loads(r.out)["key"]
    t.equal(t.ward("audit", "key").out.strip(), key, "the journals' own")
    t.equal(t.ward("evidence", "--verify", tar, "--key", key).rc, 0, "named")
    t.equal(t.ward("evidence", "--verify", tar, "--key", key[::-1]).rc, 1, "another one")
    t.equal(t.ward("evidence", "--verify", tar, "--key", "x").rc, 125, "none")
    said = t.read(tar + ".sig")
    for wrong in (said.replace("signature ", "signature 0", 1)[:-2] + "\n", said + "x\n", "",
                  said.replace(key, key[::-1])):
        with open(tar + ".sig", "w") as f:
            f.write(wrong)
        t.check(t.ward("evidence", "--verify", tar).rc in (1, 125), f"seen: {wrong}")
    with open(tar + ".sig", "w") as f:
        f.write(said)
    with open(tar, "r+b") as f:
        f.seek(1000)
        f.write(b"x")
    r = t.ward("evidence", "--verify", tar)
    t.equal(r.rc, 1, "changed")
    t.contains(r.out, "it is not the archive that was signed", "says so")
