"""No ref of a sandbox is lost without a word: each that the import does not bring over is named on
standard error or counted there, named in the report and in the journal, and tried again where it
can help."""
import json
import os
import threading
import time

from harness import by_turns, native_only, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com"}
PASSED = [word for name in WHO for word in ("--env", name)]
MAKE = """h=$(git rev-parse HEAD)
for i in $(seq %d); do echo create refs/heads/b$i $h; done | git update-ref --stdin"""


def run(t, ws, script, **options):
    return t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, report=True,
                  timeout=100, **options)


def refs(t, ws):
    return set(t.run("git", "for-each-ref", "--format=%(refname)", cwd=ws).out.split())


def journal(t, r):
    """The notes of the run, as the journal has them."""
    out = t.ward("audit", "show", r.report["run"], "--json").out
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return " ".join(str(e.get("object", "")) for e in events if e.get("kind") == "run.note")


def named_everywhere(t, r, lost):
    """Report and journal have every name, standard error the first ones and how many."""
    for where, text in (("report", " ".join(r.report["notes"])), ("journal", journal(t, r))):
        words = set(text.replace(",", " ").replace(":", " ").split())
        t.equal(sorted(set(lost) - words), [], f"refs that the {where} does not name")


READY = "touch ready; until [ -e go ]; do sleep 0.05; done\n"


def hold(t, ws, names, moment=None):
    """Locks the refs once the script is READY (the private copy has no locks then), and releases
    them that many seconds later. Returns the thread."""
    def work():
        while not os.path.exists(os.path.join(ws, "ready")):
            time.sleep(0.02)
        t.write(ws, {f".git/{name}.lock": "" for name in names})
        t.write(ws, {"go": ""})
        if moment:
            time.sleep(moment)
            release(t, ws, names)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def release(t, ws, names):
    for name in names:
        with t.root():
            os.unlink(os.path.join(ws, ".git", name + ".lock"))


@by_turns
@needs("git")
@native_only("the same import behind each engine")
@timeout(120)
def test_locked_refs(t):
    """Forty of two thousand refs are locked by a git that was killed: the others arrive, the forty
    are named and arrive when the locks are gone."""
    ws = t.git_repo()
    locked = [f"refs/heads/b{i}" for i in range(7, 2000, 50)]
    thread = hold(t, ws, locked)
    r = run(t, ws, READY + MAKE % 2000)
    thread.join()
    there = refs(t, ws)
    t.equal(len([n for n in there if n.startswith("refs/heads/b")]), 2000 - len(locked), r.err)
    t.contains(r.err, f"{len(locked)} refs were not imported: another git holds its lock file")
    t.contains(r.err, "ward recover")
    named_everywhere(t, r, locked)
    release(t, ws, locked)
    again = t.ward("recover")
    t.equal(again.rc, 0, again.err)
    t.equal(sorted(set(locked) - refs(t, ws)), [], "what the second try did not bring")


@by_turns
@needs("git")
@native_only("the same import behind each engine")
@timeout(120)
def test_locked_for_a_moment(t):
    """A git on the host that works holds its locks for a while: nothing is to be said."""
    ws = t.git_repo()
    thread = hold(t, ws, ["refs/heads/b5", "refs/heads/b6"], 3)
    began = time.time()
    r = run(t, ws, READY + MAKE % 10)
    thread.join()
    t.check(time.time() - began > 2.5, "the run ended before the lock was released")
    t.equal((r.rc, "not imported" in r.err), (0, False), r.err)
    t.equal(len(refs(t, ws) & {f"refs/heads/b{i}" for i in range(1, 11)}), 10, r.err)


@by_turns
@needs("git")
@native_only("the same import behind each engine")
@timeout(200)
def test_too_many_bad_refs(t):
    """Seven hundred refs to commits without their tree, each between two good ones: more than the
    import tries. What does not arrive is named, bad or good, and its value is kept."""
    ws = t.git_repo()
    script = """h=$(git rev-parse HEAD)
t=$(printf '100644 blob 1111111111111111111111111111111111111111\\tx\\n' | git mktree --missing)
for i in $(seq 700); do
    printf 'tree %s\\nauthor a <a@b> %d +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n' \\
        $t $i > /tmp/c$i
    echo /tmp/c$i
done | git hash-object -t commit -w --stdin-paths > /tmp/ids
i=0; for c in $(cat /tmp/ids); do
    i=$((i+1)); mkdir -p .git/refs/tags/d$i; echo $c > .git/refs/tags/d$i/bad
    echo $h > .git/refs/tags/d$i/good
done"""
    r = run(t, ws, script)
    t.equal(r.rc, 0, r.err)
    made = {f"refs/tags/d{i}/{kind}" for i in range(1, 701) for kind in ("bad", "good")}
    there = refs(t, ws) & made
    t.check(there and not [n for n in there if n.endswith("bad")], f"{len(there)} arrived: {r.err}")
    lost = made - there
    named_everywhere(t, r, lost)
    count = sum(int(line.split("git: ")[1].split()[0]) for line in r.err.splitlines()
                if "refs were not imported" in line)
    t.equal(count, len(lost), f"the count on standard error: {r.err}")
    left = t.ward("quarantine", "show", r.report["run"], ".git/refs-not-imported", cwd=ws)
    t.equal({line.split()[1] for line in left.out.splitlines()}, lost, "the file in the quarantine")


@needs("git")
@native_only("the same import behind each engine")
@timeout(60)
def test_each_kind_is_said(t):
    """Standard error names what did not arrive and why, without a terminal."""
    ws = t.git_repo()
    r = run(t, ws, """b=$(git rev-parse HEAD:)
echo $b > .git/refs/heads/tree; echo 1111111111111111111111111111111111111111 > .git/refs/tags/no
echo 'ref: refs/heads/nowhere' > .git/refs/heads/symbol""")
    for said in ("refs/heads/tree was not imported: a branch must refer to a commit",
                 "refs/tags/no was not imported: objects that it refers to are missing",
                 "refs/heads/symbol was not imported"):
        t.contains(r.err, said)
