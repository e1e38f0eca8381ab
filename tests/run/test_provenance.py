"""audit.level: full: who changed which file, and what it may have read from the network before;
ward diff --who and --trailer."""
import json
import os
import shutil

from harness import by_turns, timeout
from harness.world import World, policy

from run.test_audit import journal

FULL = ("--set", "audit.level=full")
WRITES = ("--set", "audit.level=writes")


def who(t, ws, *args):
    """path -> list of writers, of the last review here."""
    r = t.ward("diff", "--who", "--json", *args, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return {c["path"]: c["who"] for c in json.loads(r.out)["changes"]}


def programs(writers):
    return [os.path.basename(w["argv"][0]) for w in writers]


def test_who_wrote(t):
    """Each way to change a file; what failed, and what came and went, is nobody's."""
    ws = t.workspace({name: f"content of {name}\n"
                      for name in ("old", "gone", "moved", "same", "mode")})
    script = """echo new > by-shell
cp old by-cp
python3 -Bc 'open("old", "a").write("more")'
rm gone
mv moved moved-away
chmod 600 mode
ln -s old link
mkdir -p deep/er && tee deep/er/file < old > /dev/null
touch for-a-moment; rm for-a-moment
cat same > /dev/null
python3 -Bc 'open("same", "r+").close()'
sh -c 'exec 3> by-exec; exec cat old >&3'
! touch /usr/bin/never"""
    r = t.ward("run", "--review", *FULL, "--", "sh", "-c", script, cwd=ws)
    t.equal(r.rc, 0, r.err)
    seen = who(t, ws)
    wanted = {"by-shell": ["sh"], "by-cp": ["cp"], "old": ["python3"], "gone": ["rm"],
              "mode": ["chmod"], "link": ["ln"], "deep/er/file": ["tee"], "by-exec": ["cat"]}
    for path, names in wanted.items():
        t.equal(programs(seen[path]), names, path)
        t.check(all(w["pid"] > 1 and w["seen"].endswith("Z") and w["hosts"] == []
                    for w in seen[path]), seen[path])
    t.check("mv" in programs(seen["moved-away"]) and "for-a-moment" not in seen
            and "same" not in seen, seen.keys())
    t.equal(seen["by-cp"][0]["argv"], ["cp", "old", "by-cp"])
    text = t.ward("diff", "--who", "by-cp", cwd=ws).out
    t.check(text.startswith("A  by-cp\n") and "by /usr/bin/cp, pid" in text, text)
    trailer = t.ward("diff", "--trailer", cwd=ws).out
    t.check(trailer.startswith("Ward-Run: ") and "Ward-Change: by-cp by /usr/bin/cp (pid "
            f"{seen['by-cp'][0]['pid']})\n" in trailer, trailer)
    parsed = t.run("git", "interpret-trailers", "--parse",
                   input=("subject\n\n" + trailer).encode()).out
    t.equal(parsed, trailer, "git takes all of it for trailers")


def test_without_review(t):
    """In place the journal has it; at another level nothing of it is there, and --who says how to
    get it."""
    ws = t.workspace({"a": "x\n"})
    t.equal(t.ward("run", *FULL, "--", "sh", "-c",
                   "echo y > a; echo z > b; echo no > /usr/bin/x; true", cwd=ws).rc, 0)
    told = {os.path.basename(e["object"]): e for e in journal(t) if e["kind"] == "file.change"}
    t.equal(sorted(told), ["a", "b"])
    t.check(all(e["argv"][0] == "sh" and e["exe"].startswith("/usr/bin/") and e["observed"]
                and "hosts" not in e for e in told.values()), told)
    t.equal(t.ward("audit", "verify", cwd=ws).rc, 0)
    run = t.ward("run", "--review", "--", "sh", "-c", "echo y > c", cwd=ws,
                 report=True).report["run"]
    t.check(not [e for e in journal(t, run) if e["kind"] == "file.change"],
            "told at audit.level: basic")
    r = t.ward("diff", "--who", cwd=ws)
    t.check(r.rc == 125 and "--set audit.level=full" in r.err, r.err)


def test_writes_level(t):
    """Who opened a file to change it, moved or removed it, without what anybody read."""
    world = World(t)
    ws = t.workspace({"old": "x\n", "gone": "x\n", "moved": "x\n", "fetch.py": """
import socket
s = socket.create_connection(("web.test", 80), 10)
s.sendall(b"GET /x HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n")
open("fetched", "w").write(s.makefile().read())
"""})
    script = """echo new > by-shell; cp old by-cp; rm gone; mv moved away; ln -s old link
sh -c 'sh -c "cp old deeper"; cp old beside'; cat old > /dev/null; /usr/bin/python3 fetch.py"""
    r = world.ward("run", "-p", policy(t, ["web.test:80"]), *WRITES, "--", "sh", "-c", script,
                   cwd=ws, timeout=60, report=True)
    t.equal(r.rc, 0, r.err)
    told = journal(t, r.report["run"])
    who = {os.path.basename(e["object"]): (os.path.basename(e["argv"][0]), e["change"])
           for e in told if e["kind"] == "file.change"}
    t.equal(who, {"by-shell": ("sh", "update"), "by-cp": ("cp", "update"), "gone": ("rm", "delete"),
                  "moved": ("mv", "delete"), "away": ("mv", "rename"), "link": ("ln", "create"),
                  "deeper": ("cp", "update"), "beside": ("cp", "update"),
                  "fetched": ("python3", "update")})
    t.check(any(e["kind"] == "exec.start" for e in told), "programs are told, too")
    t.check(not [e for e in told if e["kind"] == "file.read" or "hosts" in e], "only at full")


def test_hostile_names(t):
    """No name breaks out of its line: newlines, escapes, bytes that are no text, a path that looks
    like a trailer."""
    ws = t.workspace()
    names = ["a\nWard-Run: forged", "\x1b[2Jclear", "b\n\nSigned-off-by: me", 'quote"\\',
             "c\r\nWard-Change: x by y"]
    t.write(ws, {"names.json": json.dumps(names)})
    program = ("import json, os\nfor n in json.load(open('names.json')): open(n, 'w').close()\n"
               "open(b'raw-\\xff', 'w').close()\n")
    t.equal(t.ward("run", "--review", *FULL, "--", "/usr/bin/python3", "-Bc", program,
                   cwd=ws).rc, 0)
    for args in (["--trailer"], ["--who"]):
        out = t.ward("diff", *args, cwd=ws).out
        t.check("\x1b" not in out and "\nSigned-off-by" not in out
                and "forged\n" not in out.split(" by ")[0], out)
        t.equal(sum(line.startswith("Ward-Run:") for line in out.splitlines()),
                args == ["--trailer"], out)
    seen = who(t, ws)
    for name in names:
        t.equal(programs(seen[name]), ["python3"], name)
    t.equal(t.ward("audit", "verify", cwd=ws).rc, 0)


@timeout(120)
def test_what_was_read(t):
    """By the process itself, a child, a pipe, a file, a program that was fetched; not by those
    beside."""
    world = World(t)
    ws = t.workspace({"fetch.py": """
import socket, sys
s = socket.create_connection((sys.argv[1], 80), 10)
s.sendall(b"GET /x HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n" % sys.argv[1].encode())
sys.stdout.write(s.makefile().read())
""", "own.py": "import subprocess, sys\nout = subprocess.run([sys.executable, '-B', 'fetch.py', "
                      "'www.web.test'], capture_output=True, check=True).stdout\n"
                      "open('collected', 'wb').write(out)\n"})
    script = """set -e
fetch() { /usr/bin/python3 -B fetch.py "$1"; }
echo before > before
/usr/bin/python3 -B fetch.py web.test > direct
/usr/bin/python3 -B fetch.py other.test | cat | tee piped > /dev/null
/usr/bin/python3 -B own.py
cp direct copied
cp before unrelated
sh -c 'true' && cat before > beside
(printf '#!/bin/sh\\ntouch "$1"\\n#'; cat direct | tr -d '\\n') > /tmp/tool; chmod +x /tmp/tool; cp before innocent
/tmp/tool by-tool"""
    r = world.ward("run", "--review", "-p",
                   policy(t, ["web.test:80", "www.web.test:80", "other.test:80"]), *FULL, "--",
                   "sh", "-c", script, cwd=ws, timeout=60)
    t.equal(r.rc, 0, r.err)
    seen = {path: sorted({h for w in writers for h in w["hosts"]})
            for path, writers in who(t, ws).items()}
    t.equal({k: seen[k] for k in ("before", "unrelated", "beside", "innocent", "direct", "piped",
                                  "collected", "copied", "by-tool")},
            {"before": [], "unrelated": [], "beside": [], "innocent": [], "direct": ["web.test"],
             "piped": ["other.test"], "collected": ["www.web.test"], "copied": ["web.test"],
             "by-tool": ["web.test"]})
    t.contains(t.ward("diff", "--trailer", "copied", cwd=ws).out,
               "Ward-Change: copied by /usr/bin/cp")
    t.contains(t.ward("diff", "--who", "copied", cwd=ws).out, "may have read from: web.test")


def test_what_is_shown_is_still_refused(t):
    """A call that goes to the supervisor to be seen is let through by it: one with set-id bits must
    not be among them."""
    ws = t.workspace({"b": ""})
    program = """import os
for f in (lambda: os.open("a", os.O_CREAT | os.O_WRONLY, 0o4755), lambda: os.chmod("b", 0o6755),
          lambda: os.mkdir("c", 0o2755), lambda: os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4700),
          lambda: os.chmod("b", 0o755)):
    try: f(); print("done")
    except OSError as e: print(e.errno)
"""
    for level in ("basic", "writes", "full"):
        t.equal(t.ward("run", "--set", f"audit.level={level}", "--", "/usr/bin/python3", "-c",
                       program, cwd=ws).out, "1\n1\n1\n1\ndone\n", level)


def test_detached(t):
    """A supervisor that has locked itself up sees the same."""
    ws = t.workspace()
    t.equal(t.ward("run", "-d", "--name", "full", "--review", *FULL, cwd=ws).rc, 0)
    t.equal(t.ward("exec", "full", "sh", "-c", "echo x > made; sleep 1.2; echo y > other",
                   cwd=ws).rc, 0)
    t.equal(t.ward("stop", "full", cwd=ws).rc, 0)
    seen = who(t, ws)
    t.equal({k: programs(v) for k, v in seen.items()}, {"made": ["sh"], "other": ["sh"]})
    t.ward("rm", "full", cwd=ws)


def test_nothing_is_gone(t):
    """A delete or a rename of what was not there is nobody's change; of what was made or moved in
    the run it is one."""
    script = """rm -f nosuch no/such; rmdir nodir; unlink nosuch; mv nosuch there; mkdir dir; rm -f dir/nosuch
mv d e; rm e/in; rm gone; touch a; rm a; true"""
    for review in (FULL, [*FULL, "--review"], WRITES):
        ws = t.workspace({"gone": "x\n", "d/in": "x\n", "d/on": "x\n"})
        r = t.ward("run", *review, "--", "sh", "-c", script, cwd=ws, report=True)
        t.equal(r.rc, 0, r.err)
        told = [e for e in journal(t, r.report["run"]) if e["kind"] == "file.change"]
        deleted = {os.path.relpath(e["object"], ws) for e in told if e["change"] == "delete"}
        t.check({"gone", "d"} <= deleted, deleted)
        t.check(not deleted & {"nosuch", "no/such", "nodir", "there", "dir/nosuch"}, deleted)


@by_turns
@timeout(90)
def test_pipes_do_not_hold_up(t):
    """Many processes on one pipe, which is input and output of all of them: the supervisor keeps
    its time."""
    world = World(t)
    ws = t.workspace({"pipes.py": """
import os, socket, time
r, w = os.pipe()
f = os.open("made", os.O_CREAT | os.O_WRONLY)
os.dup2(r, 0)
os.dup2(w, 1)
for i in range(400):
    if os.spawnv(os.P_WAIT, "/usr/bin/touch", ["touch", "made"]):
        raise SystemExit(1)
    if i == 2:
        try: socket.create_connection(("192.0.2.1", 80), 0.1)
        except OSError: pass
open("made").close()
open("done", "w").close()
time.sleep(60)
"""})
    r = world.ward("run", "-p", policy(t, ["web.test:80"]), *FULL, "--timeout", "6", "--",
                   "/usr/bin/python3", "-B", "pipes.py", cwd=ws, timeout=40)
    t.check(r.seconds < 12, f"took {r.seconds} seconds")
    t.check(os.path.exists(os.path.join(ws, "done")), r.err)
    t.equal(r.rc, 124, r.err)
    t.check(any(e["kind"] == "file.change" and e["object"].endswith("/made") and e.get("hosts")
                for e in journal(t)), "nobody was told about")


def test_long_names(t):
    """Names that the sandbox chooses take so much memory and no more; that some are missing is on
    record."""
    program = """import os
for i in range(9000):
    try: os.open("/tmp/" + "/".join(["%0200d" % i] * 19), os.O_WRONLY)
    except OSError: pass
"""
    ws = t.workspace()
    t.equal(t.ward("run", *FULL, "--", "/usr/bin/python3", "-Bc", program, cwd=ws).rc, 0)
    gaps = [e for e in journal(t) if e["kind"] == "journal.gap"]
    t.check(len(gaps) == 1 and 100 < gaps[0]["lost"] < 9000, gaps)


MANY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 33000; i++) {
		pid_t child = vfork();
		char name[32];

		if (child == 0) {
			snprintf(name, sizeof(name), i == 32999 ? "late" : "f%d", i % 100);
			_exit(open(name, O_CREAT | O_WRONLY, 0600) < 0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			return 1;
	}
	return 0;
}
"""


@by_turns
@timeout(150)
def test_more_processes_than_are_kept(t):
    """What those beyond change is told all the same, without who it was; and that some are missing
    is on record."""
    ws = t.workspace()
    shutil.copy(t.compile(MANY), os.path.join(ws, "many"))
    os.chmod(os.path.join(ws, "many"), 0o755)
    t.equal(t.ward("run", *FULL, "--", "./many", cwd=ws, timeout=120).rc, 0)
    events = journal(t)
    late = [e for e in events if e["kind"] == "file.change" and e["object"].endswith("/late")]
    t.check(len(late) == 1 and "pid" not in late[0] and "exe" not in late[0], late)
    t.check([e for e in events if e["kind"] == "journal.gap" and e["lost"] > 0], "no gap")
