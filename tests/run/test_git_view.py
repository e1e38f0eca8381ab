"""The private git directory: ordinary work inside arrives in the host's repository as if it had
been done there, both sides can commit at the same time, and nothing that would run on the host
arrives."""
import os
import re

from harness import by_turns, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "1700000000 +0000",
       "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_EDITOR": "true"}
PASSED = [word for name in WHO for word in ("--env", name)]
FREE = ("-c", "protocol.file.allow=always")

# each is done in a repository with the commits one, two on main and three on side; f differs on
# both
SCENARIOS = {
    "commit": "echo x >> f; git add f; git commit -qm new",
    "staged": "echo x >> f; git add f; echo y > g; git add g; echo z >> f",
    "amend": "echo x >> f; git commit -qa --amend -m other",
    "branch": "git checkout -qb deep/er/branch; echo x >> f; git commit -qam new; git branch "
    "-D side",
    "detached": "git checkout -q --detach HEAD~1",
    "tags": "git tag light; git tag -a -m text heavy; git tag -d old",
    "merge": "git merge -q -m merged -X ours side",
    "conflict": "git merge -q side || true",
    "rebase": "git checkout -q side; git rebase -q -X ours main",
    "rebase stopped": "git checkout -q side; git rebase -q main || true",
    "cherry-pick stopped": "git cherry-pick side || true",
    "revert": "git revert --no-edit HEAD",
    "stash": "echo x >> f; git stash -q; echo y >> f; git stash -q; git stash drop -q stash@{1}",
    "bisect": "git bisect start; git bisect bad; git bisect good HEAD~1",
    "gc": "echo x >> f; git commit -qam new; git gc -q --prune=now",
    "repack": "echo x >> f; git commit -qam new; git repack -adq; git pack-refs --all",
    "notes": "git notes add -m text",
    "reset": "git reset -q --hard HEAD~1",
    "file and directory": "git branch a/b; git branch -D a/b; git branch a; git branch -m a a/c",
    "worktree": "git worktree add -q tree -b tree; cd tree; echo x > t; git add t; git commit -qm "
    "in-tree",
    "sparse": "git sparse-checkout set --no-cone /f",
    "config": "git config branch.main.remote .; git config branch.main.merge refs/heads/side; git "
    "config user.name somebody",
    "moved": "git mv f moved; git commit -qm moved; mkdir d; echo 1 > d/e; git add d; git "
    "commit -qm d",
}

QUESTIONS = ("status --porcelain=v2 --branch", "log --all --format=%H%d%s --graph", "reflog",
             "stash list", "branch -avv", "tag -n",
             "diff", "diff --cached", "fsck --no-progress --no-dangling", "ls-files -s",
             "worktree list", "show-ref", "for-each-ref",
             "config --list --local")


def git(t, *args, cwd, **options):
    """git outside, as the test's user."""
    return t.run("git", *FREE, *args, cwd=cwd, env=WHO, check=True, **options)


def repository(t, directory=None):
    """main: one, two; side: one, three; a tag."""
    ws = directory or t.workspace()
    os.makedirs(ws, exist_ok=True)
    git(t, "init", "-q", "-b", "main", ".", cwd=ws)
    for text, branch in (("one", None), ("two", None), ("three", "side")):
        if branch:
            git(t, "checkout", "-qb", branch, "HEAD~1", cwd=ws)
        t.write(ws, {"f": f"{text}\n"})
        git(t, "add", "-A", cwd=ws)
        git(t, "commit", "-qm", text, cwd=ws)
        git(t, "tag", "old", "-f", cwd=ws)
    git(t, "checkout", "-q", "main", cwd=ws)
    return ws


def answers(t, ws):
    """What the host's git says, without the workspace's name."""
    script = "".join(f"echo '== {q}'; git {q} 2>&1; echo \"rc $?\"\n" for q in QUESTIONS)
    out = t.run("bash", "-c", script, cwd=ws, env=WHO).out.replace(ws, "WS")
    return dict(part.split("\n", 1) for part in out.split("== ")[1:])


def run(t, ws, script, *options, rc=0):
    """A script inside."""
    r = t.ward("run", *PASSED, *options, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=60)
    if rc is not None:
        t.equal(r.rc, rc, f"exit of the script; {r.err}")
    return r


@by_turns
@needs("git")
@timeout(300)
def test_ordinary_work(t):
    """Each scenario inside leaves what it leaves outside."""
    for name, script in SCENARIOS.items():
        inside, outside = repository(t), repository(t)
        t.run("bash", "-c", script, cwd=outside, env=WHO)
        r = run(t, inside, script, rc=None)
        wanted, got = answers(t, outside), answers(t, inside)
        for question in QUESTIONS:
            t.equal(got[question], wanted[question], f"{name}: git {question}; {r.err}")


@needs("git")
@timeout(120)
def test_continues_outside(t):
    """What was begun inside goes on outside."""
    for begin, end, subject in (("git merge -q side || true", "commit -qam merged", "merged"),
                                ("git checkout -q side; git rebase -q main || true",
                                 "rebase --continue", "three"),
                                ("git cherry-pick side || true", "cherry-pick --continue", "three"),
                                ("git merge -q side || true", "merge --abort", "two")):
        ws = repository(t)
        run(t, ws, begin)
        t.write(ws, {"f": "resolved\n"})
        if "abort" not in end:
            git(t, "add", "f", cwd=ws)
        git(t, *end.split(), cwd=ws)
        t.equal(git(t, "log", "-1", "--format=%s", cwd=ws).out.strip(), subject, f"{begin}, {end}")
        git(t, "fsck", "--strict", cwd=ws)


@needs("git")
@timeout(90)
def test_both_commit(t):
    """The host's commits come in, the sandbox's come out, while it runs; where both moved a branch,
    none is lost."""
    ws = repository(t)
    script = """
    git checkout -q side; echo inside > inside; git add inside; git commit -qm from-inside; touch committed
    for i in $(seq 200); do git log --all --format=%s | grep -q from-outside && echo seen && break; sleep 0.1; done
    """
    p = t.ward_start("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "committed")), 20)
    t.wait_until(lambda: "from-inside" in git(t, "log", "--all", "--format=%s", cwd=ws).out, 20,
                 "the commit did not come out")
    tree = git(t, "write-tree", cwd=ws).out.strip()
    new = git(t, "commit-tree", "-p", "main", "-m", "from-outside", tree, cwd=ws).out.strip()
    git(t, "update-ref", "refs/heads/main", new, cwd=ws)
    r = t.finish_ward(p, timeout=40)
    t.contains(r.out, "seen", "the host's commit came in")
    log = git(t, "log", "--all", "--format=%s", cwd=ws).out
    t.check("from-inside" in log and "from-outside" in log, log)
    git(t, "fsck", "--strict", cwd=ws)


@needs("git")
def test_conflict_is_kept(t):
    """The same branch on both sides: the host's stays, the sandbox's is under
    refs/ward/conflict."""
    ws = repository(t)
    script = "git commit -q --allow-empty -m inside; touch done1; while [ ! -e go ]; do sleep 0.05; done; " \
             "git commit -q --allow-empty -m inside2"
    p = t.ward_start("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO)
    t.wait_until(lambda: "inside" in git(t, "log", "--all", "--format=%s", cwd=ws).out, 20)
    tree = git(t, "write-tree", cwd=ws).out.strip()
    new = git(t, "commit-tree", "-p", "main~1", "-m", "outside", tree, cwd=ws).out.strip()
    git(t, "update-ref", "refs/heads/main", new, cwd=ws)
    t.write(ws, {"go": ""})
    r = t.finish_ward(p, timeout=40)
    log = git(t, "log", "--all", "--format=%s", cwd=ws).out
    t.check("outside" in log and "inside" in log, f"{log} {r.err}")
    git(t, "fsck", "--strict", cwd=ws)


@needs("git")
def test_hooks_and_settings_stay_outside(t):
    """Hooks, programs in the configuration and new addresses do not arrive; the run says so."""
    ws = repository(t)
    marker = os.path.join(t.fresh_dir("marker"), "ran")
    script = f"""
    printf '#!/bin/sh\\ntouch {marker}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
    printf '#!/bin/sh\\ntouch {marker}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
    git config core.fsmonitor 'touch {marker}'; git config remote.origin.url ext::sh; git config core.pager 'touch {marker}'
    echo ../evil > .git/commondir; mkdir .git/branches; echo https://example.com > .git/branches/origin
    echo x >> f; git -c core.fsmonitor=false -c core.hooksPath=/dev/null commit -qam harmless
    """
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, report=True)
    for words in ("status", "checkout -q side", "checkout -q main", "log -1",
                  "commit --allow-empty -qm x"):
        t.run("git", *words.split(), cwd=ws, env=WHO)
    t.check(not os.path.exists(marker), "something of the sandbox's ran on the host")
    t.equal([n for n in os.listdir(os.path.join(ws, ".git/hooks")) if not n.endswith(".sample")],
            [], "hooks")
    config = t.read(ws, ".git/config")
    t.check("fsmonitor" not in config and "pager" not in config and "ext::" not in config, config)
    t.check(not os.path.exists(os.path.join(ws, ".git/commondir")), "commondir")
    moved = " ".join(r.report["quarantine"])
    for path in (".git/hooks/pre-commit", ".git/config", ".git/commondir"):
        t.contains(moved, path, "quarantine")


@needs("git")
def test_push_with_upstream(t):
    """git push -u to a remote that the host has: the branch's settings arrive."""
    ws = repository(t)
    bare = os.path.join(ws, "remote.git")
    git(t, "init", "-q", "--bare", bare, cwd=ws)
    git(t, "remote", "add", "origin", "./remote.git", cwd=ws)
    r = run(t, ws, "git checkout -qb new; git push -qu origin new")
    t.contains(git(t, "config", "branch.new.merge", cwd=ws).out, "refs/heads/new", r.err)
    t.contains(git(t, "for-each-ref", cwd=bare).out, "refs/heads/new", "the bare repository")


@needs("git")
def test_objects_are_not_believed(t):
    """A loose object under the name of another one does not arrive."""
    ws = repository(t)
    blob = git(t, "rev-parse", "HEAD:f", cwd=ws).out.strip()
    script = f"""
    evil=$(echo evil | git hash-object -w --stdin); b={blob}
    mkdir -p .git/objects/${{b:0:2}}; cp .git/objects/${{evil:0:2}}/${{evil:2}} .git/objects/${{b:0:2}}/${{b:2}}
    git commit -q --allow-empty -m x
    """
    run(t, ws, script)
    t.equal(git(t, "cat-file", "blob", blob, cwd=ws).out, "two\n", "the blob")
    git(t, "fsck", "--strict", cwd=ws)


@needs("git")
def test_hostile_index(t):
    """An index whose paths lead into .git or out of the work tree does not arrive."""
    ws = repository(t)
    before = git(t, "ls-files", "-s", cwd=ws).out
    script = r"""
    id=$(printf '#!/bin/sh\ntouch RAN\n' | git hash-object -w --stdin)
    python3 - "$id" <<'END'
import hashlib, struct, sys
entries = b""
for path in sys.argv[2:] or [".git/hooks/post-checkout"]:
    e = struct.pack(">10I", *[0] * 6, 0o100755, 0, 0, 0) + bytes.fromhex(sys.argv[1]) + struct.pack(">H", len(path)) + path.encode()
    entries += e + b"\0" * (8 - len(e) % 8)
data = b"DIRC" + struct.pack(">II", 2, 1) + entries
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
END
    """
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, report=True)
    t.equal(r.rc, 0, r.err)
    t.equal(git(t, "ls-files", "-s", cwd=ws).out, before, "the index")
    t.contains(" ".join(r.report["quarantine"]), ".git/index", "quarantine")
    git(t, "checkout", "--", ".", cwd=ws)
    t.check(not os.path.exists(os.path.join(ws, ".git/hooks/post-checkout")), "a hook was written")


@needs("git")
def test_submodule(t):
    """A submodule that is added inside works outside."""
    ws = repository(t)
    other = repository(t, os.path.join(ws, "other"))
    run(t, ws, f"git {' '.join(FREE)} submodule --quiet add ./other sub; git commit -qm sub")
    t.check(os.path.isdir(os.path.join(ws, ".git/modules/sub")), "the submodule's repository")
    t.contains(git(t, "log", "--format=%s", cwd=os.path.join(ws, "sub")).out, "two", other)
    git(t, "status", cwd=ws)
    git(t, "fsck", cwd=os.path.join(ws, "sub"))


@needs("git")
def test_killed_run_is_finished(t):
    """ward is killed: the commits that were made come with the next start."""
    ws = repository(t)
    p = t.ward_start("run", *PASSED, "--", "bash", "-c",
                     "echo x >> f; git commit -qam killed; touch done1; sleep 60", cwd=ws, env=WHO)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "done1")), 20)
    p.kill()
    p.wait()
    t.wait_until(lambda: "killed" in git(t, "log", "--all", "--format=%s", cwd=ws).out or
                 t.ward("recover").rc != 0, 20, "the commit is lost")
    state = os.path.join(t.environment()["WARD_STATE_DIR"], "git")
    t.wait_until(lambda: t.ward("recover").rc == 0 and not os.listdir(state), 20,
                 "the private git directory stays")
    git(t, "fsck", "--strict", cwd=ws)


@needs("git")
def test_reads_only_what_it_should(t):
    """A run that does not touch git leaves the repository alone."""
    ws = repository(t)
    paths = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(ws, ".git")) for f in files]
    before = {p: os.stat(p).st_ctime_ns for p in paths}
    run(t, ws, "true")
    t.equal({p: os.stat(p).st_ctime_ns for p in paths}, before, "change times")


@needs("git")
def test_nothing_is_left(t):
    """No private copy stays in the state directory."""
    ws = repository(t)
    run(t, ws, "echo x >> f; git commit -qam x")
    run(t, ws, "true")
    state = os.path.join(t.environment()["WARD_STATE_DIR"], "git")
    t.equal(os.listdir(state) if os.path.isdir(state) else [], [], "private git directories")
    t.check(not re.search(r"ward", " ".join(os.listdir(os.path.join(ws, ".git")))),
            "something of ward's in .git")


def left_in_state(t):
    """The private git directories in the state directory."""
    state = os.path.join(t.environment()["WARD_STATE_DIR"], "git")
    return sorted(os.listdir(state)) if os.path.isdir(state) else []


def begin_review(t, ws, script):
    """A run under review that does this; its id."""
    r = t.ward("run", *PASSED, "--review", "--", "bash", "-ec", script, cwd=ws, env=WHO,
               timeout=60, report=True)
    t.equal(r.rc, 0, r.err)
    return r.report["run"]


@needs("git")
def test_continued_review(t):
    """A continued review goes on in the private git directory of its first run: it sees that run's
    commits and stash, and all of them arrive together."""
    for end in ("apply", "discard"):
        ws = repository(t)
        before = git(t, "rev-parse", "main", cwd=ws).out
        one = begin_review(t, ws, "echo x >> f; git commit -qam first; echo s >> f; git stash -q; "
                                  "git branch kept")
        t.equal(left_in_state(t), [one], "private git directories")
        r = run(t, ws, "git log --format=%s -2; git stash list; git branch --list kept; "
                       "echo y >> f; git commit -qam second", "--continue", one)
        t.contains(r.out, "first\ntwo\nstash@{0}")
        t.contains(r.out, "kept")
        r = run(t, ws, "git log --format=%s -3", "--continue", one)
        t.equal(r.out, "second\nfirst\ntwo\n", "a third run")
        t.equal(left_in_state(t), [one], "private git directories of the three runs")
        t.equal(git(t, "rev-parse", "main", cwd=ws).out, before, "main before the end")
        t.equal(t.ward(end, one, cwd=ws).rc, 0, end)
        t.equal(left_in_state(t), [], f"private git directories after {end}")
        t.equal(git(t, "log", "--format=%s", "-3", cwd=ws).out.split(),
                ["second", "first", "two"] if end == "apply" else ["two", "one"])
        t.equal(git(t, "stash", "list", cwd=ws).out != "", end == "apply", "the stash")
        git(t, "fsck", "--strict", cwd=ws)


@needs("git")
def test_continued_review_finds_its_repository(t):
    """Between two runs of a review the host gets, replaces and loses repositories: each private git
    directory stays with the repository it was made of."""
    ws = t.workspace()
    for name in ("m", "n", "o"):
        repository(t, os.path.join(ws, name))
    one = begin_review(t, ws, "for r in m n o; do git -C $r commit -q --allow-empty -m in-$r; done")
    repository(t, os.path.join(ws, "a"))
    os.rename(os.path.join(ws, "n"), os.path.join(t.fresh_dir(), "n"))
    os.rename(os.path.join(ws, "o/.git"), os.path.join(t.fresh_dir(), "o"))
    repository(t, os.path.join(ws, "o"))
    r = run(t, ws, "for r in a m o; do git -C $r log --format=$r:%s -1; done; "
                   "git -C a commit -q --allow-empty -m in-a", "--continue", one)
    t.equal(r.out, "a:two\nm:in-m\no:two\n", "last commits inside")
    shown = t.ward("diff", one, cwd=ws)
    t.equal(shown.rc, 0, shown.err)
    t.contains(shown.out, "n/.git")
    r = t.ward("apply", one, cwd=ws)
    t.equal(r.rc, 125, "two repositories of the review are not there any more")
    t.equal(left_in_state(t), [one], "nothing that was not imported is lost")
    got = [git(t, "-C", n, "log", "--format=%s", "-1", cwd=ws).out.strip() for n in ("a", "m", "o")]
    t.equal(got, ["in-a", "in-m", "two"], "last commits on the host")
    t.equal(t.ward("discard", one, cwd=ws).rc, 0, "discard")
    t.equal(left_in_state(t), [], "private git directories after discard")


@needs("git")
def test_continued_review_releases_less(t):
    """Settings that the first run's policy released are judged again if that of the run that
    continues does not release them."""
    ws = repository(t)
    one = t.ward("run", *PASSED, "--review", "--set", "filesystem.protect=['!.git/config']", "--",
                 "bash", "-ec",
                 "echo x >> f; git commit -qam first", cwd=ws, env=WHO, report=True).report["run"]
    run(t, ws, "git config core.fsmonitor ./evil; git config user.name agent", "--continue", one)
    t.ward("apply", one, cwd=ws)
    t.equal(git(t, "log", "--format=%s", "-1", cwd=ws).out, "first\n")
    t.check("fsmonitor" not in t.read(ws, ".git/config"), t.read(ws, ".git/config"))


@needs("git")
def test_refused_review_leaves_nothing(t):
    """A run under review that is refused leaves no private git directory; one that continues a
    review leaves that review's."""
    ws = repository(t)
    refused = ("--secret", "none=file:/nowhere@example.org", "--", "true")
    r = t.ward("run", "--review", *refused, cwd=ws, env=WHO)
    t.equal(r.rc, 125, r.err)
    t.equal(left_in_state(t), [], "private git directories")
    one = begin_review(t, ws, "echo x >> f; git commit -qam first")
    r = t.ward("run", "--continue", one, *refused, cwd=ws, env=WHO)
    t.equal(r.rc, 125, r.err)
    t.equal(left_in_state(t), [one], "private git directories")
    t.equal(run(t, ws, "git log --format=%s -1", "--continue", one).out, "first\n")


@needs("git")
def test_too_deep_to_copy(t):
    """A git directory that cannot be copied does not stop the run: git reads it inside, and a note
    says why it is read-only."""
    ws = t.git_repo()
    deep = os.path.join(ws, ".git/refs/heads", *("d" * 80))
    t.run("mkdir", "-p", deep, check=True)
    r = t.ward("run", "--verbose", "--", "sh", "-c",
               "git log --format=%s; touch .git/x || echo closed", cwd=ws)
    t.equal((r.rc, r.out), (0, "first\nclosed\n"), r.err)
    t.contains(r.err, "too deep")
