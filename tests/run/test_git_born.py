"""Repositories that a run makes: what their commits have under protected names does not come to the
work tree by a checkout, stash or reset on the host, also after later runs, until a person ends the
sparse checkout. The rest of the clone is an ordinary one. The host's git is the judge."""
import os

from harness import by_turns, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_EDITOR": "true"}
PASSED = [word for name in WHO for word in ("--env", name)]

# a clone with protected files in its history, each with the word evil in it
MAKE = r"""
git init -q -b main c; cd c; mkdir -p .vscode a/.vscode .claude/plans docs
for f in .envrc .vscode/tasks.json a/.vscode/tasks.json .claude/settings.json; do echo evil > $f
done
echo plan > .claude/plans/p; echo one > f; echo doc > docs/d; git add -A; git commit -qm one
echo two > f; git commit -qam two; git branch side; git checkout -q -b other HEAD~1
mkdir .husky; echo evil > .husky/pre-commit; git add -A; git commit -qm husky; git checkout -q main
"""
FORMS = {"v2": "true", "v4": "git update-index --index-version 4",
         "threads": "git config index.threads 4; git read-tree HEAD",
         "worktree": "git worktree add -q ../w side", "packed": "git gc -q",
         "own patterns": "git sparse-checkout set --no-cone '/*' tasks.json '.envrc'",
         "cone": "git sparse-checkout set docs", "sparse index": "git sparse-checkout set "
         "--sparse-index docs", "split": "git update-index --split-index",
         "own setting": "git config extensions.worktreeConfig true; git config --worktree "
         "core.sparseCheckout false", "no info": "rm -r .git/info",
         "cloned": "git clone -q . ../w", "bare": "git clone -q --bare . ../b.git"}

HOST = ("status", "checkout -- .", "restore .", "reset --hard", "checkout HEAD -- .", "checkout -f",
        "checkout -q other", "checkout -q side", "checkout -q main~1", "checkout -q main",
        "stash -q", "stash pop -q", "merge -q side", "checkout-index -a -f", "read-tree -um HEAD",
        "read-tree --reset -u HEAD", "rebase -q side", "cherry-pick other",
        "reset -q --hard HEAD~1", "revert --no-edit HEAD", "update-index --refresh",
        "sparse-checkout reapply", "gc -q", "worktree add -q {other} other")

# what a later run tries in such a repository
LATER = {
    "disable": "git sparse-checkout disable",
    "setting": "git config core.sparseCheckout false; git config --unset-all core.sparseCheckout",
    "own-setting": "git config extensions.worktreeConfig true; git config --worktree "
    "core.sparseCheckout false; git reset -q --hard",
    "patterns": "echo '/*' > .git/info/sparse-checkout; git reset -q --hard",
    "no-patterns": "rm .git/info/sparse-checkout; git read-tree HEAD",
    "flag": "git update-index --no-skip-worktree .envrc .vscode/tasks.json",
    "new-index": "rm .git/index; git -c core.sparseCheckout=false read-tree HEAD",
    "split": "git update-index --no-skip-worktree .envrc; git update-index --split-index",
    "worktree": "git worktree add -q ../new; cd ../new; rm $(git rev-parse --git-path info)/*; git "
    "-c core.sparseCheckout=false read-tree HEAD",
    "worktree-index": "git worktree add -q ../new; cd ../new; git -c core.sparseCheckout=false "
    "read-tree HEAD",
    "commit": "echo evil >> .envrc; git add --sparse .envrc; git commit -qm more",
    "branch": "git checkout -q other; git update-index --no-skip-worktree .husky/pre-commit",
}


def git(t, *args, cwd, **options):
    """git on the host, as the test's user."""
    return t.run("git", *args, cwd=cwd, env=WHO, **options)


def evil(ws):
    """Files of the work trees with what the sandbox wrote under protected names."""
    found = []
    for path, dirs, files in os.walk(ws):
        if ".git" in dirs:
            dirs.remove(".git")
        if os.path.basename(path).endswith(".git"):
            dirs[:] = []
            continue
        for name in files:
            with open(os.path.join(path, name), "rb") as f:
                if b"evil" in f.read():
                    found.append(os.path.relpath(os.path.join(path, name), ws))
    return found


def use_git(t, ws, place):
    """Ordinary commands, after none of which a protected file is there."""
    look = f"grep -rl --exclude-dir=.git --exclude-dir='*.git' evil {ws}"
    lines = [f"git {c} >/dev/null 2>&1 </dev/null; {look} && echo 'after git {c}'" for c in HOST]
    script = "\n".join(lines).format(other=os.path.join(ws, "by-hand"))
    r = t.run("bash", "-c", script, cwd=place, env=WHO, timeout=120)
    t.equal(r.out, "", f"{place}: what came")


@by_turns
@needs("git")
@timeout(240)
def test_protected_files_stay_away(t):
    """Whatever form the repository has."""
    ws = t.workspace()
    for name in FORMS:
        os.mkdir(os.path.join(ws, name))
    script = "\n".join(f"(cd '{name}'; {MAKE}\n{form})" for name, form in FORMS.items())
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=120)
    t.equal(r.rc, 0, r.err)
    for name in FORMS:
        place = os.path.join(ws, name)
        t.equal(evil(place), [], f"{name}: quarantined")
        t.equal(git(t, "fsck", cwd=f"{place}/c").rc, 0, f"{name}: fsck")
    for name in ("v2", "v4", "threads", "worktree", "packed", "cloned", "no info"):
        t.equal(git(t, "status", "--short", cwd=f"{ws}/{name}/c").out, "", f"{name}: clean")
        t.equal(t.read(f"{ws}/{name}/c/.claude/plans/p"), "plan\n", "what agents may write")
    for name in FORMS:
        use_git(t, f"{ws}/{name}", f"{ws}/{name}/c")
    for name in ("worktree/w", "cloned/w", "bare/b.git"):
        use_git(t, f"{ws}/{os.path.dirname(name)}", f"{ws}/{name}")


@needs("git")
@timeout(120)
def test_an_ordinary_repository(t):
    """A person works on in it, and can have all of it; by review it is the same."""
    ws = t.workspace()
    t.ward("run", *PASSED, "--review", "--", "bash", "-c", MAKE, cwd=ws, env=WHO)
    t.ward("apply", cwd=ws)
    place = os.path.join(ws, "c")
    t.write(place, {"f": "mine\n", "new/file": "mine\n"})
    git(t, "add", "-A", cwd=place, check=True)
    git(t, "commit", "-qm", "mine", cwd=place, check=True)
    git(t, "merge", "-q", "-m", "merged", "other", cwd=place, check=True)
    t.equal(git(t, "status", "--short", cwd=place).out, "", "clean")
    names = git(t, "ls-tree", "-r", "--name-only", "HEAD", cwd=place).out
    t.contains(names, ".envrc", "in commits")
    t.equal(evil(ws), [], "and not in the work tree")
    text = t.read(f"{place}/.git/info/sparse-checkout")
    t.contains(text, "git sparse-checkout disable", "how")
    git(t, "sparse-checkout", "disable", cwd=place, check=True)
    t.equal(len(evil(ws)), 5, "all of it")
    r = t.ward("run", *PASSED, "--", "sh", "-c", "cd c && echo x >> f && git commit -qam later && "
               "git worktree add -q ../new", cwd=ws, env=WHO)
    t.equal(git(t, "log", "-1", "--format=%s", cwd=place).out, "later\n", r.err)
    t.equal(git(t, "rev-parse", "new", cwd=place).rc, 0, "a work tree as everywhere")


@by_turns
@needs("git")
@timeout(240)
def test_later_runs(t):
    """What a later run does in it does not end the sparse checkout."""
    ws = t.workspace()
    for name in LATER:
        os.mkdir(os.path.join(ws, name))
    script = "\n".join(f"(cd '{name}'; {MAKE})" for name in LATER)
    t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=120)
    script = "\n".join(f"(cd '{name}/c'; {later})" for name, later in LATER.items())
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=120)
    t.contains(r.err, "sparse", "it is said")
    for name in LATER:
        use_git(t, f"{ws}/{name}", f"{ws}/{name}/c")
        if os.path.lexists(f"{ws}/{name}/new/.git"):
            use_git(t, f"{ws}/{name}", f"{ws}/{name}/new")
        t.equal(git(t, "fsck", cwd=f"{ws}/{name}/c").rc, 0, f"{name}: fsck")


# what a branch has that is not checked out: links in place of directories with protected names,
# and directories of that kind where protected ones have everything left out
LINKS = (".vscode", ".claude", "a/.config", "mise", ".github", ".jj", "a/.husky")
INNER = (".vim/plugin/mise/x.vim", ".claude/agents/mise/x.md", ".vscode/.claude/plans/x",
         ".claude/agents/.claude/plans/x.md", ".codex/.github/x")
# repositories in such a directory, and one in which the policy protects a file
PLACES = {"mise": "config.toml", "b/mise": "conf.d/x.toml", "d/.config": "fish/config.fish",
          "e/.github": "hooks/x", "p": "run.sh", "q/r": "deep/run.sh"}


def make_branch(place, paths, links=()):
    """A repository whose branch other has protected names, main none of them."""
    lines = [f"(mkdir -p '{place}'; cd '{place}'; git init -q -b main; echo one > f; mkdir ev",
             "echo evil > ev/tasks.json; git add -A; git commit -qm one; git checkout -qb other"]
    for path in links:
        lines.append(f"mkdir -p $(dirname {path}); ln -s $PWD/ev {path}")
    for path in paths:
        lines.append(f"mkdir -p $(dirname {path}); echo evil > {path}")
    return "\n".join(lines + ["git add -A; git commit -qm other; git checkout -q main)"])


@needs("git")
@timeout(120)
def test_links_and_places(t):
    """A pattern for a directory does not match a link, and one for DIR/NAME does not match NAME in
    a repository that lies in DIR: git writes neither."""
    ws = t.workspace()
    script = [make_branch("links", (), LINKS), make_branch("inner", INNER)]
    script += [make_branch(place, [path]) for place, path in PLACES.items()]
    r = t.ward("run", *PASSED, "--set", 'filesystem.protect=["/p/run.sh", "/q/r/deep/"]', "--",
               "bash", "-ec", "\n".join(script), cwd=ws, env=WHO, timeout=60)
    t.equal(r.rc, 0, r.err)
    places = {"links": LINKS, "inner": INNER, **{at: [path] for at, path in PLACES.items()}}
    for place, paths in places.items():
        for command in ("checkout -q other", "reset -q --hard", "checkout -q main", "stash -q",
                        "merge -q other", "worktree add -q ../by-hand-{} other"):
            git(t, *command.format(os.path.basename(place)).split(), cwd=f"{ws}/{place}")
            for top in (place, os.path.join(place, f"../by-hand-{os.path.basename(place)}")):
                came = [p for p in paths if os.path.lexists(os.path.join(ws, top, p))]
                if top != place:	# elsewhere the name of the place does not count
                    came = [p for p in came if place in ("links", "inner")]
                t.equal(came, [], f"{place}: after git {command}")
        t.equal(t.read(ws, place, "f"), "one\n", "the rest is there")
