"""Review as git users expect it: commits arrive as commits, both sides' edits merge, hunks are
asked for, directories fold, pages hold nothing that acts."""

import html.parser
import json
import os
import random
import subprocess
import time

from harness import native_only

SHELL = ("/bin/sh", "-c")
TEN = "".join(f"line {i}\n" for i in range(1, 31))


def review(t, ws, command, *options):
    r = t.ward("run", "--review", *options, "--", *SHELL, command, cwd=ws, report=True)
    t.equal(r.rc, 0, r.err)
    return r.report["run"]


def git(t, *words, cwd, rc=0):
    r = t.run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words, cwd=cwd)
    t.equal(r.rc, rc, f"git {words[0]}: {r.err}")
    return r.out


def named(t, ws):
    """A repository in which a run can commit."""
    git(t, "config", "user.name", "agent", cwd=ws)
    git(t, "config", "user.email", "agent@example.com", cwd=ws)
    return ws


def settle(ws):
    """Lets the clock move on: git looks again at what has the index's own time, so does ward."""
    time.sleep(0.05)
    return ws


def test_commits_arrive_as_commits(t):
    """One line in ward diff; after the apply branch, index and reflog agree, whatever the
    host's git did meanwhile."""
    ws = named(t, t.git_repo({"a": "a\n", "b": "b\n"}))
    review(
        t,
        ws,
        "for i in 1 2 3; do echo $i >> a; git commit -qam \"number $i\"; done; "
        "git checkout -q -b topic; echo t > t; git add t; git commit -qm topic",
    )
    r = t.ward("diff", cwd=ws)
    t.contains(r.out, "git: 3 commits on branch main (")
    t.contains(r.out, "git: 4 commits on branch topic, which is new (")
    t.contains(r.out, "git: branch topic is checked out now")
    t.check(".git/" not in r.out, r.out)
    git(t, "branch", "other", cwd=ws)
    git(t, "tag", "mine", cwd=ws)
    r = t.ward("apply", cwd=ws)
    t.equal(r.rc, 0, r.out + r.err)
    t.equal(
        git(t, "log", "--format=%s", "main", cwd=ws).split("\n")[:3],
        ["number 3", "number 2", "number 1"],
    )
    t.equal(git(t, "status", "--short", cwd=ws), "")
    t.equal(git(t, "symbolic-ref", "HEAD", cwd=ws), "refs/heads/topic\n")
    t.contains(git(t, "reflog", "main", cwd=ws), "number 3")
    t.equal(git(t, "fsck", "--strict", cwd=ws), "")
    t.equal(git(t, "rev-parse", "other", cwd=ws), git(t, "rev-parse", "mine^{commit}", cwd=ws))


def test_linked_worktree(t):
    """A workspace that is a linked work tree: commits, diff, patch and apply."""
    main = named(t, t.git_repo({"a": TEN}))
    ws = os.path.join(t.fresh_dir(), "tree")
    git(t, "worktree", "add", "-q", "-b", "side", ws, cwd=main)
    settle(ws)
    review(t, ws, "sed -i s/'line 3$'/three/ a; echo new > new")
    t.write(ws, {"a": TEN.replace("line 20\n", "twenty\n")})
    r = t.ward("diff", cwd=ws)
    t.check("M  a  (changed outside since; both edits merge)" in r.out and "A  new" in r.out, r.out)
    patch = t.ward("diff", "-p", cwd=ws).out
    t.equal(t.run("git", "apply", "--check", "-", input=patch, cwd=ws).rc, 0, patch)
    r = t.ward("apply", cwd=ws)
    t.equal(r.rc, 0, r.out + r.err)
    t.equal(t.read(ws, "a"), TEN.replace("line 20\n", "twenty\n").replace("line 3\n", "three\n"))
    t.equal(git(t, "fsck", "--strict", cwd=ws), "")
    t.contains(git(t, "status", "--short", cwd=ws), "?? new")


def test_commit_in_a_linked_worktree(t):
    """A run in a linked work tree commits, tags and stages: nothing of it is in the repository
    until ward apply brings it over; ward discard leaves all as it was. Hooks do not come out."""
    main = named(t, t.git_repo({"a": TEN, "secret": "of the main work tree\n"}))
    ws = os.path.join(t.fresh_dir(), "tree")
    git(t, "worktree", "add", "-q", "-b", "side", ws, cwd=main)
    settle(ws)
    before = git(t, "for-each-ref", cwd=main)
    work = f"""cat {main}/secret && exit 9; echo x >> a; git commit -qam one
        echo y > b; git add b; git commit -qm two; git tag t; git branch other; echo z > c
        git add c; mkdir -p {main}/.git/hooks; echo '#!/bin/sh' > {main}/.git/hooks/pre-commit
        chmod +x {main}/.git/hooks/pre-commit"""
    review(t, ws, work)
    t.equal(git(t, "for-each-ref", cwd=main), before, "the repository before ward apply")
    t.equal(git(t, "status", "--short", cwd=ws), "", "the work tree before ward apply")
    shown = t.ward("diff", cwd=ws)
    t.contains(shown.out, "git: 2 commits on branch side", "ward diff")
    r = t.ward("apply", cwd=ws)
    t.check(r.rc in (0, 1), r.out + r.err)
    t.equal(git(t, "log", "--format=%s", "side", cwd=ws).split("\n")[:2], ["two", "one"], r.err)
    t.equal(git(t, "status", "--short", cwd=ws), "A  c\n", "the index is the sandbox's")
    t.equal(git(t, "rev-parse", "t", "other", cwd=main),
            git(t, "rev-parse", "side", "side", cwd=main))
    t.check(not os.path.exists(f"{main}/.git/hooks/pre-commit"), "a hook came out")
    t.equal(git(t, "status", "--short", cwd=main), "", "the main work tree")
    t.equal(git(t, "fsck", "--strict", cwd=ws), "")
    before = git(t, "for-each-ref", cwd=main)
    review(t, ws, "git commit -qm three")
    t.equal(t.ward("discard", cwd=ws).rc, 0)
    t.equal(git(t, "for-each-ref", cwd=main), before, "the repository after ward discard")
    t.equal(git(t, "status", "--short", cwd=ws), "A  c\n", "the work tree after ward discard")


def merged(t, ws, ours, theirs, during=False):
    """The agent makes the one of file a, the host the other; ward apply's result and the file."""
    t.write(ws, {"theirs": theirs})
    settle(ws)
    if during:
        mark = "started-" + os.path.basename(ws)
        p = t.ward_start(
            "run",
            "--review",
            "--",
            *SHELL,
            f"touch {mark}; read x; cat theirs > a",
            cwd=ws,
            stdin=subprocess.PIPE,
        )
        state = os.path.join(t.state_dir, "review")
        end = time.time() + 20
        while time.time() < end and not any(mark in files for _, _, files in os.walk(state)):
            time.sleep(0.05)
        t.write(ws, {"a": ours})
        r = t.finish(p, p.args, b"go\n", 30)
        t.equal(r.rc, 0, r.err)
    else:
        review(t, ws, "cat theirs > a")
        t.write(ws, {"a": ours})
    r = t.ward("apply", "a", cwd=ws)
    return r, t.read(ws, "a")


def test_edits_of_both_sides_merge(t):
    ours, theirs = TEN.replace("line 3\n", "mine\n"), TEN.replace("line 25\n", "agent's\n")
    ws = t.workspace({"a": TEN})
    r, got = merged(t, ws, ours, theirs)
    t.equal((r.rc, got), (0, ours.replace("line 25\n", "agent's\n")), r.out)
    t.contains(r.out, "1 merged with edits of your own")


def test_edits_during_the_run_merge(t):
    """The content from before comes from git: committed, and edited but not committed."""
    ours, theirs = TEN.replace("line 3\n", "mine\n"), TEN.replace("line 25\n", "agent's\n")
    ws = t.git_repo({"a": TEN})
    time.sleep(1.1)
    git(t, "update-index", "--refresh", cwd=ws)
    r, got = merged(t, ws, ours, theirs, during=True)
    t.equal((r.rc, got), (0, ours.replace("line 25\n", "agent's\n")), r.out)
    dirty = TEN.replace("line 10\n", "dirty\n")
    ws = t.git_repo({"a": TEN})
    t.write(ws, {"a": dirty})
    r, got = merged(
        t,
        ws,
        dirty.replace("line 3\n", "mine\n"),
        TEN.replace("line 25\n", "agent's\n"),
        during=True,
    )
    t.equal(
        (r.rc, got),
        (0, TEN.replace("line 3\n", "mine\n").replace("line 25\n", "agent's\n")),
        "the agent took the uncommitted edit back",
    )


def test_without_the_content_from_before_it_stays_a_conflict(t):
    ws = t.workspace({"a": TEN})
    r, got = merged(
        t, ws, TEN.replace("line 3\n", "mine\n"), TEN.replace("line 25\n", "agent's\n"), during=True
    )
    t.equal((r.rc, got), (1, TEN.replace("line 3\n", "mine\n")), r.out)
    t.contains(r.out, "conflict: a")


def test_true_conflicts_stay_and_get_markers(t):
    ws = t.workspace({"a": TEN})
    r, got = merged(
        t,
        ws,
        TEN.replace("line 3\n", "mine\n"),
        TEN.replace("line 3\n", "agent's\n").replace("line 25\n", "x\n"),
    )
    t.equal((r.rc, got), (1, TEN.replace("line 3\n", "mine\n")), r.out)
    t.contains(r.out, "ward apply --markers PATH")
    r = t.ward("apply", "--markers", "a", cwd=ws)
    t.equal(r.rc, 1, r.out)
    lines = t.read(ws, "a").split("\n")
    t.equal(
        lines[2:9:2],
        ["<<<<<<< workspace", "||||||| when the run began", "=======", lines[8]],
        lines,
    )
    t.check(
        lines[3] == "mine"
        and lines[5] == "line 3"
        and lines[7] == "agent's"
        and lines[8].startswith(">>>>>>> run ")
        and "x" in lines,
        lines,
    )
    t.equal(t.ward("diff", cwd=ws).rc, 125, "nothing is left")


def test_merge_equals_gits(t):
    """Random edits of both sides: clean where git merge-file is, with its result."""
    rng = random.Random(t.seed if hasattr(t, "seed") else 7)
    ws = t.workspace({f"f{i}": "".join(f"{i} {k}\n" for k in range(40)) for i in range(60)})
    base = {f"f{i}": t.read(ws, f"f{i}") for i in range(60)}
    ours, theirs = {}, {}
    for name, text in base.items():
        for side in (ours, theirs):
            lines = text.splitlines(True)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(lines))
                what = rng.randrange(3)
                lines[at : at + 1] = (
                    []
                    if what == 0
                    else (
                        [f"new {rng.random()}\n"]
                        if what == 1
                        else [lines[at], f"more {rng.random()}\n"]
                    )
                )
            side[name] = "".join(lines)
    agent = t.workspace(theirs)
    r = t.ward("run", "--review", "--ro", agent, "--", *SHELL, f"cp {agent}/* .", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.write(ws, ours)
    side = t.workspace(
        {f"{n}.{k}": v[n] for k, v in (("o", ours), ("b", base), ("t", theirs)) for n in base}
    )
    t.ward("apply", cwd=ws)
    clean = 0
    for name in base:
        r = t.run("git", "merge-file", "-p", f"{name}.o", f"{name}.b", f"{name}.t", cwd=side)
        if r.rc == 0:
            t.equal(t.read(ws, name), r.out, name)
            clean += 1
        else:
            t.equal(t.read(ws, name), ours[name], f"{name}: git has a conflict")
    t.check(10 < clean < 60, f"{clean} clean")


def test_hunk_by_hunk(t):
    """y n s q a d as git add -p has them; what was not taken stays and is no conflict."""
    ws = t.workspace({"a": TEN, "gone": "g\n", "z": "z\n"})
    edit = (
        "sed -i -e s/'line 2$'/two/ -e s/'line 5$'/five/ -e s/'line 25$'/more/ a; "
        "rm gone; echo new > new; echo zz > z"
    )
    review(t, ws, edit)
    r = t.ward("apply", "-p", cwd=ws, input="s\ny\nn\ny\nn\ny\nq\n")
    t.equal(r.rc, 0, r.out + r.err)
    t.equal(t.read(ws, "a"), TEN.replace("line 2\n", "two\n").replace("line 25\n", "more\n"))
    t.check(
        os.path.exists(os.path.join(ws, "gone"))
        and t.read(ws, "new") == "new\n"
        and t.read(ws, "z") == "z\n",
        os.listdir(ws),
    )
    r = t.ward("diff", cwd=ws)
    t.equal(r.out.split("\n")[:3], ["M  a", "D  gone", "M  z"], r.out)
    r = t.ward("apply", "-p", cwd=ws, input="x\n?\nd\ny\na\n")
    t.contains(r.out, "d - do not apply it or the rest of this file")
    t.equal(
        (t.read(ws, "a"), os.path.exists(os.path.join(ws, "gone")), t.read(ws, "z")),
        (TEN.replace("line 2\n", "two\n").replace("line 25\n", "more\n"), False, "zz\n"),
    )
    t.equal(t.ward("apply", "-p", cwd=ws, input="").rc, 0, "the end of the input is q")
    t.equal(t.ward("apply", cwd=ws).rc, 0)
    t.contains(t.read(ws, "a"), "five\n")


def test_hunks_ask_for_git_and_leave_what_is_protected(t):
    ws = named(t, t.git_repo({"a": "a\n"}))
    review(
        t, ws, "echo b >> a; git commit -qam b; mkdir .vscode; echo '{}' > .vscode/settings.json"
    )
    head = git(t, "rev-parse", "HEAD", cwd=ws)
    r = t.ward("apply", "-p", cwd=ws, input="y\nn\n")
    t.contains(r.out, "left: .vscode/settings.json: protected")
    t.equal(git(t, "rev-parse", "HEAD", cwd=ws), head)
    r = t.ward("apply", "-p", cwd=ws, input="y\ny\ny\n")
    t.check(git(t, "rev-parse", "HEAD", cwd=ws) != head, r.out)
    t.check(not os.path.exists(os.path.join(ws, ".vscode")), "protected")


def test_folds(t):
    """Ignored directories and git's data are one line; the workspace's .gitignore counts, not the
    run's, and nothing that stands out is folded."""
    ws = t.git_repo({".gitignore": "node_modules/\n/build\n", "src/a.c": "a\n"})
    review(
        t,
        ws,
        "mkdir -p node_modules/x/y build dist; "
        "for i in 1 2 3; do echo $i > node_modules/x/y/$i; done; echo o > build/o; "
        "echo d > dist/d; printf 'src/\\n' >> .gitignore; echo evil >> src/a.c; "
        "mkdir node_modules/.vscode; echo '{}' > node_modules/.vscode/settings.json; "
        "git init -q sub; mkdir -p gen/out; printf 'out/\\n' > gen/.gitignore; touch gen/out/1",
    )
    r = t.ward("diff", cwd=ws)
    for line in (
        "A  node_modules/  (3 files, ignored by git)\n",
        "A  build/  (1 file, ignored by git)\n",
        "M  src/a.c\n",
        "A  dist/d\n",
        "A  gen/out/  (1 file, ignored by the run's own .gitignore)\n",
        "git's own data)\n",
    ):
        t.contains(r.out, line)
    t.contains(r.out, "A  node_modules/.vscode/settings.json  (protected")
    t.contains(t.ward("diff", "--all", cwd=ws).out, "A  node_modules/x/y/2\n")
    t.contains(t.ward("diff", "node_modules/x", cwd=ws).out, "A  node_modules/x/y/2\n")
    r = t.ward("diff", "-p", cwd=ws)
    t.check(
        "node_modules/x" not in r.out and "not in the patch: node_modules/ (3 files" in r.err, r.err
    )
    t.equal(t.run("git", "apply", "--check", "-", input=r.out, cwd=ws).rc, 0)
    t.ward("apply", cwd=ws)
    t.equal(t.read(ws, "node_modules/x/y/2"), "2\n", "an apply takes them along")


def test_pager_and_colours(t):
    """The user's pager and colours, on a terminal only; never what the workspace says."""
    ws = t.git_repo({"a": TEN})
    home = t.fresh_dir()
    git(t, "config", "core.pager", f"touch {home}/owned; cat", cwd=ws)
    git(t, "config", "color.ui", "never", cwd=ws)
    review(t, ws, "echo x >> a")
    env = {"TERM": "xterm", "HOME": home, "GIT_PAGER": f"tee {home}/seen"}
    r = t.ward_tty("diff", "-p", cwd=ws, env=env)
    t.contains(r.out, "\x1b[32m+x\x1b[0m")
    t.contains(t.read(home, "seen"), "+x")
    t.write(home, {".gitconfig": f"[core]\n\tpager = tee {home}/global\n[color]\n\tui = false\n"})
    del env["GIT_PAGER"]
    r = t.ward_tty("diff", "-p", cwd=ws, env=env)
    t.check("\x1b[32m" not in r.out and "+x" in r.out, repr(r.out))
    t.contains(t.read(home, "global"), "+x")
    os.unlink(os.path.join(home, "global"))
    t.ward_tty("diff", "-p", "--no-pager", cwd=ws, env=env)
    t.ward("diff", "-p", cwd=ws, env=env)
    t.check(not os.path.exists(os.path.join(home, "global")), "paged although nobody looks")
    t.write(home, {".gitconfig": ""})
    r = t.ward_tty("diff", cwd=ws, env=dict(env, PAGER="cat", NO_COLOR="1"))
    t.check("\x1b[" not in r.out and "M  a" in r.out, repr(r.out))
    t.check(not os.path.exists(os.path.join(home, "owned")), "the workspace's pager ran")


class Page(html.parser.HTMLParser):
    TAGS = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "p",
        "code",
        "div",
        "span",
        "a",
        "nav",
        "ul",
        "li",
        "main",
        "section",
        "details",
        "summary",
        "table",
        "colgroup",
        "col",
        "tbody",
        "tr",
        "td",
    }
    ATTRIBUTES = {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "open",
        "colspan",
        "aria-label",
    }

    def __init__(self, text):
        super().__init__()
        self.strange, self.text = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in self.TAGS or any(
            a not in self.ATTRIBUTES or (a == "href" and not v.startswith("#")) for a, v in attrs
        ):
            self.strange.append((tag, attrs))

    def handle_data(self, data):
        self.text.append(data)


HOSTILE = [
    '"><script>document.title="owned"<',
    "<img src=x onerror=document.title='owned'>",
    "'&amp;<svg onload=document.title='owned'>",
    "\x1b[31mred\u202e",
    "]]><!--",
    "javascript:alert(1)",
]


def hostile_page(t):
    ws = t.git_repo({"same": TEN, "h": "\n".join(HOSTILE) + "\n"})
    script = (
        "import os\n"
        + "".join(
            f"open({n!r}.replace('/', '_'), 'w').write({n!r} * 3 + "
            "'\\n</td></table><script>document.title=1</script>')\n"
            for n in HOSTILE
        )
        + "open('h', 'a').write('<plaintext>\\n')\n"
        + "os.symlink('</summary><script>document.title=2</script>', 'link')\n"
    )
    r = t.ward("run", "--review", "--", "python3", "-c", script, cwd=ws)
    t.equal(r.rc, 0, r.err)
    page = os.path.join(t.fresh_dir(), "page.html")
    r = t.ward("diff", f"--web={page}", cwd=ws)
    t.equal((r.rc, r.out), (0, page + "\n"), r.err)
    return page


def test_web_page_holds_nothing_that_acts(t):
    page = hostile_page(t)
    text = t.read(page)
    t.equal(os.stat(page).st_mode & 0o777, 0o600)
    p = Page(text)
    t.equal(p.strange, [], "tags and attributes that are not the page's own")
    t.contains(text, "default-src 'none'; style-src 'unsafe-inline'")
    t.check(
        "\x1b" not in text
        and "\u202e" not in text
        and "<script" not in text
        and "http://" not in text.replace("http-equiv", ""),
        "acts",
    )
    t.contains("".join(p.text), HOSTILE[0])


@native_only(
    "the browser has no sanitizer; test_web_page_holds_nothing_that_acts makes the page sanitized"
)
def test_web_page_in_a_browser(t):
    page = hostile_page(t)
    home = t.fresh_dir("chrome")
    apart = ["unshare", "-n"] if t.as_user == "root" else ["unshare", "-rn"]
    r = t.run(
        *apart,
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={home}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        "file://" + page,
        env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        timeout=120,
    )
    t.equal(r.rc, 0, r.err)
    title = r.out[r.out.index("<title>") + 7 : r.out.index("</title>")]
    t.check(title.startswith("20") and "owned" not in title and title not in ("1", "2"), title)
    t.contains(r.out, "&lt;script&gt;")


def test_foreground_runs_in_ps_and_top(t):
    """Listed, measured and stopped by a beginning of its id; nobody joins it."""
    ws = t.workspace()
    p = t.ward_start("run", "--", *SHELL, "while :; do :; done", cwd=ws)
    end, run = time.time() + 20, None
    while time.time() < end and not run:
        run = next(
            (
                s
                for s in json.loads(t.ward("ps", "--json").out)["sandboxes"]
                if s["workspace"] == ws
            ),
            None,
        )
    t.check(
        run and run["foreground"] and run["command"][0] == "/bin/sh" and run["state"] == "running",
        str(run),
    )
    for words in (("ps",), ("top", "--once")):
        out = t.ward(*words).out
        t.check("for" in out and all(len(line) <= 80 for line in out.split("\n")), out)
    row = next(
        s for s in json.loads(t.ward("top", "--json").out)["sandboxes"] if s["id"] == run["id"]
    )
    t.check(
        row["answers"]
        and row["memory_bytes"] > 0
        and {"bytes_in", "bytes_out", "denials", "cpu_percent"} <= set(row),
        str(row),
    )
    end = time.time() + 30
    while row["cpu_ms"] == 0 and time.time() < end:
        row = next(
            s for s in json.loads(t.ward("top", "--json").out)["sandboxes"] if s["id"] == run["id"]
        )
    t.check(row["cpu_ms"] > 0, str(row))
    r = t.ward("exec", run["id"], "--", "true")
    t.check(r.rc == 125 and "foreground" in r.err, r.err)
    r = t.ward("stop", "--timeout", "1", run["id"].rsplit("-", 1)[1][:4])
    t.equal(r.rc, 0, r.err)
    p.wait(20)
    t.equal(
        [s for s in json.loads(t.ward("ps", "--json").out)["sandboxes"] if s["id"] == run["id"]], []
    )


def test_ambiguous_beginning_of_an_id(t):
    from harness.boxes import box

    one, two = (box(t, "--", "sleep", "60", cwd=t.workspace()) for _ in range(2))
    r = t.ward("stop", one[:4])
    t.check(r.rc == 125 and "ambiguous" in r.err and one in r.err and two in r.err, r.err)
    t.equal(t.ward("stop", "--timeout", "0", one).rc, 0)
    t.equal(
        t.ward("stop", "--timeout", "0", two[:4]).rc,
        0,
        "one that has ended does not make it ambiguous",
    )
    t.check(t.ward("logs", one[:4]).rc == 125, "of both")


def test_top_on_a_terminal(t):
    """Drawn until q, 80 columns, and the terminal is as it was."""
    r = t.ward_tty("top", cwd=t.workspace(), input=b"q", env={"TERM": "xterm"})
    t.equal(r.rc, 0, r.out)
    t.check(
        "no sandbox is running" in r.out and r.out.rstrip().endswith("\x1b[?25h\x1b[?1049l"),
        repr(r.out),
    )
