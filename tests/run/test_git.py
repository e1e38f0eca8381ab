"""git inside, wherever its directory lies: the daily work succeeds, what would run later with the
user's rights does not change."""
import os

from harness import by_turns, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com"}
PASSED = [word for name in WHO for word in ("--env", name)]

WORK = """
set -e
git status --short; echo y >> f; git add f; git commit -qm inside; git diff HEAD~1 --stat
n=$(date +%N); git branch b$n; git checkout -q b$n; echo z >> f; git stash -q; git stash pop -q; git commit -qam second
git rebase -q --exec true HEAD~1; git tag t$n; git log --oneline; git gc -q; git fsck; git rev-parse --show-toplevel
"""

# none may arrive: they are what runs, or decides what runs, when the user calls git next
PLANT = """
cd "$(git rev-parse --git-common-dir)"
(echo 'touch /tmp/x' > hooks/pre-commit) && echo planted hook
(echo '[core] fsmonitor = touch' >> config) && echo planted config
git config core.pager touch && echo planted by git config
mv config config.old && echo moved config
mv hooks hooks.old && echo moved hooks
true
"""


def git(t, *args, cwd, **options):
    """git outside, as the test's user."""
    return t.run("git", "-c", "protocol.file.allow=always", *args, cwd=cwd, env=WHO, check=True,
                 **options)


def repository(t, directory, files=None):
    """Makes a repository with one commit in a directory."""
    os.makedirs(directory, exist_ok=True)
    t.write(directory, files or {"a": "a\n"})
    git(t, "init", "-q", "-b", "main", ".", cwd=directory)
    git(t, "add", "-A", cwd=directory)
    git(t, "commit", "-qm", "first", cwd=directory)
    return directory


def check(t, workspace, git_dir, options=()):
    """The work is done inside, nothing is planted, and the user sees the commits outside."""
    r = t.ward("run", *PASSED, *options, "--", "bash", "-c", WORK, cwd=workspace, env=WHO)
    t.equal(r.rc, 0, "exit of the work")
    t.contains(git(t, "log", "--format=%s", cwd=workspace).out, "second")
    before = t.read(git_dir, "config"), sorted(os.listdir(os.path.join(git_dir, "hooks")))
    r = t.ward("run", *PASSED, *options, "--", "bash", "-c", PLANT, cwd=workspace, env=WHO)
    t.equal(r.rc, 0, "exit of what plants; it has a git directory of its own")
    t.equal((t.read(git_dir, "config"), sorted(os.listdir(os.path.join(git_dir, "hooks")))), before,
            "configuration, hooks")


@needs("git")
def test_plain_repository(t):
    ws = repository(t, t.workspace())
    check(t, ws, os.path.join(ws, ".git"))


@by_turns
@needs("git")
def test_odd_names(t):
    """Spaces, a line break and letters that are not ASCII, in the path and in the files."""
    for name in ("sp ace", "new\nline", "ü ñ 日本", "-dash", "quo'te\"s"):
        ws = repository(t, os.path.join(t.fresh_dir("odd"), name), {f"{name} file": "x\n"})
        check(t, ws, os.path.join(ws, ".git"))


@needs("git")
def test_linked_worktree(t):
    """Its git directory lies in another place, which points back; the main work tree beside it is
    not to be seen."""
    main = repository(t, t.workspace({"secret": "of the main work tree\n"}))
    linked = os.path.join(t.fresh_dir("linked"), "tree")
    git(t, "worktree", "add", "-q", linked, cwd=main)
    check(t, linked, os.path.join(main, ".git"))
    r = t.ward("run", "--", "cat", os.path.join(main, "secret"), cwd=linked)
    t.check(r.rc != 0 and "of the main" not in r.out, "the main work tree is in view")


@needs("git")
def test_submodule_as_workspace(t):
    inner = repository(t, t.workspace())
    outer = repository(t, t.workspace())
    git(t, "submodule", "--quiet", "add", inner, "sub", cwd=outer)
    git(t, "commit", "-qm", "sub", cwd=outer)
    check(t, os.path.join(outer, "sub"), os.path.join(outer, ".git/modules/sub"))
    check(t, outer, os.path.join(outer, ".git"))


@needs("git")
def test_git_directory_elsewhere(t):
    """One that does not point back is nobody's: it is not given unless the user says so."""
    apart, ws = os.path.join(t.fresh_dir("apart"), "git"), t.workspace({"a": "a\n"})
    git(t, "init", "-q", f"--separate-git-dir={apart}", ".", cwd=ws)
    git(t, "add", "-A", cwd=ws)
    git(t, "commit", "-qm", "first", cwd=ws)
    r = t.ward("run", "--", "git", "status", cwd=ws, report=True)
    t.check(r.rc != 0, "a directory that does not point back was given")
    t.contains(" ".join(r.report["notes"]), "mount it with --rw")
    check(t, ws, apart, ("--rw", apart))
    t.write(ws, {".git": f"gitdir: {os.path.relpath(apart, ws)}\n"})
    check(t, ws, apart, ("--rw", apart))


@needs("git")
def test_bare_repository(t):
    source = repository(t, t.workspace())
    bare = os.path.join(t.fresh_dir("bare"), "x.git")
    git(t, "clone", "-q", "--bare", source, bare, cwd=source)
    work = """set -e; git log --oneline; git update-ref refs/heads/z HEAD; git gc -q; git clone -q . /tmp/c; cd /tmp/c
              echo q > q; git add q; git commit -qm q; git push -q origin HEAD:refs/heads/pushed"""
    t.equal(t.ward("run", *PASSED, "--", "bash", "-c", work, cwd=bare, env=WHO).rc, 0)
    t.contains(git(t, "branch", cwd=bare).out, "pushed")
    r = t.ward("run", "--", "bash", "-c", PLANT, cwd=bare)
    t.equal(r.rc, 0, "exit of what plants")


@needs("git")
def test_part_of_a_repository(t):
    """A directory of a repository as workspace: git is not there, and the note says how to give
    it."""
    ws = repository(t, t.workspace(), {"dir/file": "x\n"})
    part = os.path.join(ws, "dir")
    r = t.ward("run", "--", "git", "status", cwd=part, report=True)
    t.check(r.rc != 0, "the repository above is in view")
    t.contains(" ".join(r.report["notes"]), f"--workspace {ws}")
    r = t.ward("run", *PASSED, "--workspace", ws, "--chdir", part, "--", "bash", "-c", WORK,
               cwd=part, env=WHO)
    t.equal(r.rc, 0, "with the repository as workspace")
    notes = t.ward("run", "--", "true", cwd=ws, report=True).report["notes"]
    t.check(not any("git" in n for n in notes), f"a note without a reason: {notes}")


@by_turns
@needs("git")
@timeout(120)
def test_a_thousand_files_in_one_commit(t):
    ws = repository(t, t.workspace())
    r = t.ward("run", *PASSED, "--", "bash", "-c",
               """set -e; mkdir d; cd d; for i in $(seq 1000); do echo $i > f$i; done
               git add .; git commit -qm many; git mv f1 g1; git commit -qm moved; git status --short""",
               cwd=ws, env=WHO, timeout=100)
    t.equal((r.rc, r.out), (0, ""))
    t.equal(len(git(t, "ls-files", cwd=ws).out.splitlines()), 1001, "files")
