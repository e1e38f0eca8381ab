"""What commits and indexes of the sandbox's bring: a protected file that would be quarantined in
the work tree does not come by a checkout, stash, reset or `git am` on the host either. The host's
git is the judge, with hooks of the project that would touch a marker file."""
import os
import shutil

from harness import by_turns, git_battery as battery
from harness import by_turns, native_only, needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_EDITOR": "true"}
PASSED = [word for name in WHO for word in ("--env", name)]

# $C is a commit that changes the file $1 as no sandbox may, $B its content
PRELUDE = r'''
B=$(printf '#!/bin/sh\ntouch %s\n' "$MARK" | git hash-object -w --stdin)
tree_with() { local p=${2:-HEAD}; export GIT_INDEX_FILE=/tmp/$RANDOM; git read-tree $p
              git update-index --add --cacheinfo "100755,$B,$1"; T=$(git write-tree)
              unset GIT_INDEX_FILE; }
evil() { tree_with "${1:-.husky/_/post-checkout}"; C=$(git commit-tree -p HEAD -m evil $T); }
state() { mkdir .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD > onto
          cp onto orig-head; echo refs/heads/main > head-name; echo 1 > msgnum; echo 1 > end
          : > interactive; : > done
          echo "$1" > git-rebase-todo; }
series() { mkdir .git/rebase-apply; cd .git/rebase-apply; echo 1 > next; echo 2 > last
           p=.husky/_/post-commit; id=$(git rev-parse HEAD)
           { printf 'From %s Mon Sep 17 00:00:00 2001\nFrom: a <a@example.com>\n' "${1:-$id}"
             printf 'Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: x\n\n---\n\n'
             printf 'diff --git a/%s b/%s\nnew file mode 100755\n' $p $p
             printf -- '--- /dev/null\n+++ b/%s\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+touch %s\n-- \n2\n' \
               $p "$MARK"; } > 0001
           cp 0001 0002; echo $id > abort-safety; echo x > final-commit; echo x > msg; : > patch
           printf "GIT_AUTHOR_NAME='a'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n" \
             > author-script
           printf 'Author: a\nEmail: a@b\nSubject: x\nDate: x\n\n' > info; echo t > utf8
           echo f > threeway; for f in applying keep messageid quiet scissors sign quoted-cr \
             no_inbody_headers; do : > $f; done; }
'''

HOSTILE = {
    "branch": "evil; git update-ref refs/heads/side $C",
    "checked-out": "evil; git update-ref refs/heads/main $C",
    "parent": "evil; D=$(git commit-tree -p $C -m later 'HEAD^{tree}'); git update-ref "
    "refs/heads/main $D",
    "merge": "evil; D=$(git commit-tree -p HEAD -p $C -m merged 'HEAD^{tree}'); git update-ref "
    "refs/heads/main $D",
    "merge-itself": "tree_with .husky/_/post-checkout; X=$(git commit-tree -p HEAD -m x "
    "'HEAD^{tree}'); D=$(git commit-tree -p HEAD -p $X -m merged $T); git update-ref "
    "refs/heads/main $D",
    "root": "tree_with .husky/_/post-checkout; git update-ref refs/heads/side $(git commit-tree -m "
    "root $T)",
    "light-tag": "evil; git tag side-tag $C",
    "heavy-tag": "evil; git tag -a -m text side-tag $C",
    "tree": "tree_with .husky/_/post-checkout; git update-ref refs/tags/tree $T",
    "tree-tag": "tree_with .husky/_/post-checkout; git tag -a -m text tree $T",
    "remote": "evil; git update-ref refs/remotes/origin/main $C",
    "stash": "evil; I=$(git commit-tree -p HEAD -m 'index on main' 'HEAD^{tree}'); W=$(git "
    "commit-tree -p HEAD -p $I -m 'WIP on main' $T); git update-ref --create-reflog -m WIP "
    "refs/stash $W",
    "detached": "evil; git update-ref --no-deref HEAD $C; echo $C > .git/HEAD",
    "new-head": "evil; git update-ref refs/heads/new $C; git symbolic-ref HEAD refs/heads/new",
    "orig-head": "evil; echo $C > .git/ORIG_HEAD",
    "fetch-head": "evil; printf '%s\\t\\tbranch x of .\\n' $C > .git/FETCH_HEAD",
    "reflog": "evil; git update-ref -m x HEAD $C; git update-ref -m y HEAD $C~1",
    "packed": "evil; git update-ref refs/heads/side $C; git pack-refs --all; git gc -q",
    "index": "git update-index --add --cacheinfo 100755,$B,.husky/_/post-checkout",
    "index-changed": "git update-index --cacheinfo 100755,$B,.husky/_/pre-commit",
    "index-script": "git update-index --cacheinfo 100755,$B,scripts/check",
    "index-moved": "git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:notes),"
    ".vscode/settings.json",
    "index-split": "git update-index --split-index; git update-index --cacheinfo "
    "100755,$B,.husky/_/pre-commit",
    "script": "evil scripts/check; git update-ref refs/heads/side $C",
    "link-target": "evil lib/tasks.json; git update-ref refs/heads/side $C",
    "deep": "evil a/b/.husky/pre-commit; git update-ref refs/heads/side $C",
    "link": "B=$(printf lib | git hash-object -w --stdin); git update-index --index-info "
    "<<< \"120000 $B\t.idea\"; git commit -qm link",
    "link-above": "S=$(printf elsewhere | git hash-object -w --stdin); git rm -q --cached -r "
    "scripts; git update-index --add --cacheinfo 120000,$S,scripts --cacheinfo "
    "100755,$B,elsewhere/check; git commit -qm link",
    "sparse-index": "evil a/.husky/pre-commit; T=$(git rev-parse $C:a); git config "
    "core.sparseCheckout true; git config core.sparseCheckoutCone true; git config index.sparse "
    "true; printf '/*\n!/*/\n/lib/\n' > .git/info/sparse-checkout; git read-tree HEAD; git "
    "read-tree --prefix=a/ $T; git sparse-checkout reapply --sparse-index",
    "rebase": "evil; state \"pick $C x\"",
    "rebase-short": "evil; state \"pick ${C:0:7} x\"",
    "rebase-ref": "evil; git update-ref refs/heads/side $C; state 'pick side x'",
    "rebase-onto": "evil; state 'pick HEAD x'; echo $C > onto; echo $C > orig-head",
    "cherry-pick": "evil; mkdir .git/sequencer; git rev-parse HEAD > .git/sequencer/head; echo "
    "\"pick $C x\" > .git/sequencer/todo; : > .git/sequencer/abort-safety",
    "am": "series",
    "am-rebasing": "evil; series $C; rm applying; : > rebasing; echo refs/heads/main > head-name; "
    "git rev-parse HEAD > onto; cp onto orig-head",
    "bisect": "evil; git bisect start; git bisect bad; echo $C > .git/BISECT_EXPECTED_REV; echo "
    "$C > .git/BISECT_START",
    # what is left of a work tree must not be one that git complains about
    "worktree": "git worktree add -q w; cd w; evil; git reset -q --soft $C",
    "worktree-headless": "git worktree add -q w; rm .git/worktrees/w/HEAD",
    "worktree-nowhere": "git worktree add -q w; printf '%040d\n' 0 > .git/worktrees/w/HEAD",
    "odd-path": "evil $'.husky/a\\nb'; git update-ref refs/heads/side $C",
}

# what the commands of this file do not reach
NOT_BY_THESE = {"merge", "am-rebasing", "cherry-pick", "detached", "sparse-index", "worktree",
                "worktree-headless", "worktree-nowhere"}

# the user's own content, and what is not protected
PEACEFUL = {
    "commit": "echo x >> notes; git commit -qam work; git branch more; git tag -a -m t t1",
    "own-branch": "git checkout -q own; echo x >> notes; git commit -qam work",
    "merge-own": "git merge -q --no-ff -m merged own",
    "pick-own": "git cherry-pick own",
    "rebase-own": "echo x >> other; git add other; git commit -qm work; git branch mine own; git "
    "rebase -q main mine",
    "stash": "echo x >> notes; git stash -q",
}

BATTERY = ("status", "checkout -- .", "sparse-checkout disable", "checkout -q ORIG_HEAD",
           "checkout -q main@{1}",
           "checkout -q -", "stash", "stash pop", "reset --hard", "reset --hard ORIG_HEAD",
           "reset --hard HEAD@{1}", "rebase --continue", "rebase --skip", "rebase --abort",
           "cherry-pick --continue", "cherry-pick --abort", "am --skip", "am --continue",
           "merge FETCH_HEAD", "merge origin/main", "merge -q side", "merge -q new",
           "checkout -q side", "checkout -q side-tag", "checkout tree -- .", "bisect good",
           "bisect reset", "checkout -q main~1", "checkout -q main",
           "commit -q --allow-empty -m by-hand")


def git(t, *args, cwd, **options):
    return t.run("git", *args, cwd=cwd, env=WHO, **options)


def template(t, ws):
    """A project with hooks of its own, one of which calls a script; `own` has more of them."""
    t.write(ws, {".husky/_/pre-commit": "#!/bin/sh\nsh scripts/check\n", "scripts/check": "true\n",
                 "lib/tasks.json": "{}\n", "notes": "one\n"})
    os.makedirs(os.path.join(ws, ".vscode"), exist_ok=True)
    t.run("sh", "-c", "ln -s ../lib/tasks.json .vscode/tasks.json; chmod +x .husky/_/pre-commit; "
          "git init -q -b main . && git config core.hooksPath .husky/_ && git add -A && git commit "
          "-qm one && git checkout -qb own && echo '{}' > .mcp.json && git add -A && git commit "
          "-qm own && git checkout -q main", cwd=ws, env=WHO, check=True)


def run_all(t, cases, *options):
    """A repository for each case below one workspace, one run that does them all."""
    ws, marks = t.workspace(), t.workspace()
    lines = []
    for name, script in cases.items():
        os.makedirs(os.path.join(ws, name))
        template(t, os.path.join(ws, name))
        lines.append(f"(export MARK={marks}/{name}; cd '{name}'; {PRELUDE}\n{script}\n)")
    r = t.ward("run", *PASSED, *options, "--", "bash", "-c", "\n".join(lines), cwd=ws, env=WHO,
               timeout=120, report=True)
    return ws, marks, r


def use_git(t, case, mark):
    """Ordinary commands on the host. The marker also appears where, after one of them, a protected
    file has content that nobody on the host wrote."""
    look = ("if grep -qs touch .husky/_/* .husky/* scripts/check lib/tasks.json .vscode/* "
            "a/b/.husky/* || grep -qs '^one$' .vscode/settings.json || [ -L .idea ]; "
            f"then touch {mark}; fi")
    script = battery.script(BATTERY, case).replace("\n", f"\n{look}\n") + f"\n{look}"
    return t.run("bash", "-c", script, env={**battery.ENV, **WHO}, timeout=200).out


def evil_in(t, case, text):
    """Whether a word of the text leads to a commit that is held."""
    r = git(t, "log", "--format=%H", "--grep=evil", "--glob=refs/ward/held/*", cwd=case)
    return any(word in r.out.split() for word in text.split())


def judge(t, ws, marks, name):
    """Ordinary commands on the host bring nothing."""
    mark = os.path.join(marks, name)
    t.equal(use_git(t, os.path.join(ws, name), mark), "", f"{name}: every command ends")
    t.check(not os.path.exists(mark), f"{name}: nothing arrived and nothing ran")


@by_turns
@needs("git")
@timeout(600)
def test_hostile(t):
    """Each case is stopped, and named where a ref or the index would have brought it."""
    ws, marks, r = run_all(t, HOSTILE)
    t.contains(r.err, "branch/.git/refs/heads/side", "the line on standard error")
    moved = "\n".join(r.report["quarantine"])
    for name in ("branch", "checked-out", "stash", "script", "link-target", "root", "merge"):
        t.contains(moved, f"{name}/.git/refs/", "the report")
        held = git(t, "for-each-ref", "refs/ward/held", cwd=os.path.join(ws, name)).out
        t.check(held.strip(), f"{name}: the commits are kept")
    for name in ("index", "index-changed", "index-script"):
        t.contains(moved, f"{name}/.git/index", "the report")
    for name, path in (("detached", "HEAD"), ("cherry-pick", "sequencer/todo"),
                       ("am-rebasing", "rebase-apply/0001"), ("merge", "refs/heads/main")):
        file = os.path.join(ws, name, ".git", path)
        t.check(not os.path.exists(file) or not evil_in(t, os.path.join(ws, name), t.read(file)),
                f"{name}: {path} leads to nothing that is held")
    for name in HOSTILE:
        judge(t, ws, marks, name)
        t.equal(git(t, "fsck", "--no-dangling", cwd=os.path.join(ws, name)).rc, 0, f"{name}: fsck")


@by_turns
@needs("git")
@native_only("nothing of ward runs in it")
@timeout(600)
def test_the_battery_judges(t):
    """Without ward the same cases run or bring what they should not."""
    ws, marks = t.workspace(), t.workspace()
    missed = set(HOSTILE) - NOT_BY_THESE
    # git compares times of files: a case may pass by where all happens within one tick of the clock
    for _ in range(4):
        for name in sorted(missed):
            case = os.path.join(ws, name)
            os.makedirs(case)
            template(t, case)
            script = f"export MARK={marks}/{name}\n{PRELUDE}\n{HOSTILE[name]}"
            t.run("bash", "-c", script, cwd=case, env=WHO)
            use_git(t, case, os.path.join(marks, name))
            shutil.rmtree(case, ignore_errors=True)
        missed -= set(os.listdir(marks))
    t.equal(sorted(missed), [], "what does nothing")


@needs("git")
@timeout(120)
def test_peaceful(t):
    """The user's own protected files travel with merges, rebases and checkouts."""
    ws, _, r = run_all(t, PEACEFUL)
    t.equal(r.rc, 0, f"the scripts; {r.err}")
    for name in PEACEFUL:
        case = os.path.join(ws, name)
        t.equal(git(t, "for-each-ref", "refs/ward", cwd=case).out, "", f"{name}: nothing is held")
    case = os.path.join(ws, "commit")
    t.contains(git(t, "log", "--format=%s", "more", "t1", cwd=case).out, "work", "the commit")
    t.contains(git(t, "log", "--format=%s", "mine", cwd=os.path.join(ws, "rebase-own")).out, "work",
               "the rebased branch")
    t.contains(git(t, "symbolic-ref", "HEAD", cwd=os.path.join(ws, "own-branch")).out, "own",
               "the branch is checked out")


@needs("git")
@timeout(120)
def test_accepted(t):
    """What is held can be taken: by git, from the quarantine, or by a policy that releases it."""
    case = {"one": "evil; git update-ref refs/heads/side $C; git update-ref refs/heads/more $C"}
    ws, _, r = run_all(t, case)
    repo = os.path.join(ws, "one")
    t.contains(r.err, "refs/ward/held/heads/side", "how to take it")
    git(t, "-c", "core.hooksPath=/dev/null", "merge", "-q", "refs/ward/held/heads/side", cwd=repo,
        check=True)
    t.contains(git(t, "log", "-1", "--format=%s", cwd=repo).out, "evil", "merged")
    r = t.ward("run", *PASSED, "--", "git", "-C", "one", "branch", "next", cwd=ws, env=WHO)
    t.equal(git(t, "rev-parse", "next", cwd=repo).rc, 0, "known from then on")
    case = {"one": "evil .vscode/settings.json; git update-ref refs/heads/side $C"}
    ws, _, r = run_all(t, case)
    t.check(git(t, "rev-parse", "side", cwd=os.path.join(ws, "one")).rc, "held")
    ws, _, r = run_all(t, case, "--set", 'filesystem.protect=["!.vscode/"]')
    t.equal(git(t, "rev-parse", "side", cwd=os.path.join(ws, "one")).rc, 0, "released")


@needs("git")
@timeout(60)
def test_linked_worktree(t):
    """The repository lies outside of the workspace: the scripts that its hooks call count, too."""
    ws, linked, marks = t.workspace(), t.workspace(), t.workspace()
    template(t, ws)
    git(t, "worktree", "add", "-q", f"{linked}/tree", "-b", "linked", cwd=ws, check=True)
    script = (f"export MARK={marks}/x\n{PRELUDE}\nevil scripts/check; git update-ref "
              "refs/heads/one $C; evil .vscode/settings.json; git update-ref refs/heads/two $C; "
              "echo x >> notes; git commit -qam work")
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=f"{linked}/tree", env=WHO)
    names = git(t, "for-each-ref", "--format=%(refname)", cwd=ws).out.split()
    for name in ("one", "two"):
        t.check(f"refs/heads/{name}" not in names, f"{name} is held; {r.err}")
    t.contains(git(t, "log", "--format=%s", "linked", cwd=ws).out, "work", "the rest arrives")


@by_turns
@needs("git")
@timeout(120)
def test_review_and_second_run(t):
    """The same by `ward apply`, and where one run brings the objects and the next one the names."""
    ws, marks, _ = run_all(t, {"one": HOSTILE["checked-out"]}, "--review")
    r = t.ward("apply", cwd=ws)
    t.contains(git(t, "for-each-ref", cwd=os.path.join(ws, "one")).out, "refs/ward/held", r.err)
    judge(t, ws, marks, "one")
    for second in ("state \"pick $C x\"", "state \"pick ${C:0:8} x\"",
                   "git update-ref refs/heads/x $C",
                   "git update-ref refs/heads/main $(git commit-tree -p $C -m y 'HEAD^{tree}')",
                   "state 'pick ward/held/heads/side x'"):
        ws, marks, _ = run_all(t, {"one": "evil; git update-ref refs/heads/side $C"})
        script = (f"export MARK={marks}/one; cd one; {PRELUDE}\n"
                  f"C=$(git rev-parse ward/held/heads/side)\n{second}")
        t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO)
        judge(t, ws, marks, "one")
