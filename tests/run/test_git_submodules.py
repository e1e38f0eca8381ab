"""Commits of submodules: one that is held in the submodule does not come by the commit or index of
the repository around it either, whose `git submodule update` would check it out. The host's git is
the judge."""
import os

from harness import by_turns, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_EDITOR": "true",
       "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow",
       "GIT_CONFIG_VALUE_0": "always"}
PASSED = [word for name in WHO for word in ("--env", name)]

# commits a protected file in a submodule, and leaves the work tree as it was
EVIL = r'''
evil() { (cd $1; mkdir -p .vscode; echo evil > .vscode/tasks.json; git add -Af; git commit -qm evil
          X=$(git rev-parse HEAD); echo $X > /tmp/x; git reset -q --hard HEAD~1
          git update-ref refs/heads/work $X); X=$(cat /tmp/x); }
link() { git update-index --add --cacheinfo 160000,$X,$1; }
'''

HOSTILE = {
    "commit": "evil sub; link sub; git commit -qm link",
    "branch": "evil sub; git checkout -qb other; link sub; git commit -qm link; git checkout -q "
    "main",
    "index": "evil sub; link sub",
    "above": "evil sub; (cd sub; git update-ref refs/heads/more $(git commit-tree -p $X -m more "
    "HEAD^{tree}); git rev-parse more > /tmp/x); X=$(cat /tmp/x); link sub; git commit -qm link",
    "second-name": "evil sub; git config -f .gitmodules submodule.sub.path again; git mv sub again "
    "2>/dev/null; link again; git add .gitmodules; git commit -qm link",
    "embedded": "evil old; link old; git commit -qm link",
    "embedded-index": "evil old; link old",
    "recurse": "evil sub; git config submodule.recurse true; git checkout -qb other; link sub; git "
    "commit -qm link; git checkout -q main",
    "new": "git init -q /tmp/s; (cd /tmp/s; mkdir .vscode; echo evil > .vscode/tasks.json; git add "
    "-A; git commit -qm evil); git submodule --quiet add /tmp/s new; git commit -qm new; rm -rf "
    "/tmp/s",
}

HOST = ("submodule update", "checkout -q other", "submodule update --init --force",
        "-c submodule.recurse=true checkout -q -f main", "stash pop",
        "-c submodule.recurse=true reset -q --hard")


def git(t, *args, cwd, **options):
    return t.run("git", *args, cwd=cwd, env=WHO, **options)


def make(t, ws, names):
    """A repository for each name, with a submodule sub, and one old with a repository of its
    own."""
    inner = t.fresh_dir("inner")
    t.run("bash", "-ec", "git init -q -b main; echo one > f; git add f; git commit -qm one; cd "
          "\"$1\"; git init -q -b main t; cd t; git clone -q \"$0\" old; git submodule --quiet add "
          "\"$0\" sub; git submodule --quiet add \"$0\" old 2>/dev/null; echo x > f; git add -A; "
          "git commit -qm super; cd ..; shift; for n; do cp -a t $n; done; rm -rf t", inner, ws,
          *names, cwd=inner, env=WHO, check=True)


def evil(ws):
    """What came under the protected name."""
    return [path for path, _, files in os.walk(ws) if path.endswith(".vscode") and files]


def use_git(t, ws, names):
    """Ordinary commands on the host."""
    lines = "\n".join(f"git {c} >/dev/null 2>&1 </dev/null; if grep -rqs evil */.vscode; then echo "
                      f"\"$n: git {c}\"; fi" for c in HOST)
    r = t.run("bash", "-c", f"for n; do cd $n\n{lines}\ncd ..; done", "x", *names, cwd=ws, env=WHO,
              timeout=150)
    t.equal(r.out, "", "what came")
    t.equal(evil(ws), [], "what is there in the end")


@by_turns
@needs("git")
@timeout(240)
def test_hostile(t):
    """Each way by which the commit of a submodule is named, in one run and in two."""
    ws = t.workspace()
    two = {f"{n}-2": HOSTILE[n] for n in ("commit", "index", "embedded")}
    make(t, ws, [*HOSTILE, *two])
    script = "\n".join(f"(cd '{name}'\n{EVIL}\n{text}\n)" for name, text in HOSTILE.items())
    first = "\n".join(f"(cd '{name}'\n{EVIL}\n{text.split(';')[0]}\n)" for name, text in
                      two.items())
    r = t.ward("run", *PASSED, "--", "bash", "-c", f"{script}\n{first}", cwd=ws, env=WHO,
               timeout=120)
    t.equal(evil(ws), [], "the sweep")
    later = "\n".join(f"(cd '{name}'; X=$(git -C {text.split(';')[0][5:]} rev-parse "
                      f"ward/held/heads/work)\n{EVIL}\n{text.split(';', 1)[1]}\n)"
                      for name, text in two.items())
    r = t.ward("run", *PASSED, "--", "bash", "-c", later, cwd=ws, env=WHO, timeout=120)
    t.equal(r.rc, 0, r.err)
    use_git(t, ws, [*HOSTILE, *two])
    for name in [*HOSTILE, *two]:
        t.equal(git(t, "fsck", "--no-dangling", cwd=f"{ws}/{name}").rc, 0, f"{name}: fsck")


@by_turns
@needs("git")
@timeout(120)
def test_taken_while_it_runs(t):
    """What arrives while the sandbox runs is none of it: the submodule's own commits come later."""
    ws = t.workspace()
    names = ("commit", "recurse", "embedded", "new")
    make(t, ws, names)
    script = "\n".join(f"(cd '{name}'\n{EVIL}\n{HOSTILE[name]}\n)" for name in names)
    t.ward("run", *PASSED, "--", "bash", "-c", f"{script}\nsleep 4", cwd=ws, env=WHO, timeout=60)
    use_git(t, ws, names)


@needs("git")
@timeout(60)
def test_ordinary(t):
    """A harmless commit of a submodule arrives with the commit around it."""
    ws = t.workspace()
    make(t, ws, ["one"])
    r = t.ward("run", *PASSED, "--", "bash", "-ec", "cd one; for s in sub old; do (cd $s; echo two "
               "> f; git commit -qam two); git add $s; git commit -qm $s; done", cwd=ws, env=WHO)
    t.equal(r.rc, 0, r.err)
    place = f"{ws}/one"
    t.equal(git(t, "log", "--format=%s", cwd=place).out, "old\nsub\nsuper\n", r.err)
    t.equal(git(t, "status", "--short", cwd=place).out, "", "clean")
    t.equal(git(t, "submodule", "update", cwd=place).rc, 0)
    t.equal((t.read(place, "sub/f"), t.read(place, "old/f")), ("two\n", "two\n"))
