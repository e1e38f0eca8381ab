"""Real programs under the generic profile, and real agents under their own: the day's work of a
developer, as root and as a user.

A program that the host does not have is the only reason to skip, and the reason is printed. What is
heavy runs with `make test-programs` (or tests/run-tests --slow). WARD_TEST_AGENTS names an npm
prefix with the agents: npm install -g --prefix DIR @anthropic-ai/claude-code ...
"""
import os
import shutil
import zipfile

from harness import by_turns, needs, slow, timeout

NATIVE_ONLY = "the time is that of pip, npm and gdb; ward's part is that of every run"

IDENTITY = ("[user]\n\tname = Some Body\n\temail = some@example.com\n[protocol \"file\"]\n"
            "\tallow = always\n")
AGENTS = os.environ.get("WARD_TEST_AGENTS", "")
ALONE = ("--set", "network.mode=none")	# tests talk to nobody


def inside(t, ws, script, *options, profile="generic", rc=0, shell="bash", **more):
    """Runs a script inside; it must end well and without a denied call."""
    more.setdefault("timeout", 120)
    r = t.ward("run", "--profile", profile, *options, "--", shell, "-ec", f"{script}\necho good",
               cwd=ws, report=True, **more)
    t.equal(r.rc, rc, "exit")
    if rc == 0:
        t.equal(r.out.splitlines()[-1:], ["good"], "the last line")
        # npm and others look for news of themselves
        denied = [d for d in r.report["denials"] if not d["what"].startswith("name ")]
        t.equal(denied, [], "denials")
    return r


def want(t, *programs):
    """Skips with the reason where the host lacks a program."""
    for program in programs:
        if not (os.path.exists(program) if program.startswith("/") else shutil.which(program)):
            t.skip(f"there is no {program} here")


NEW_REPOSITORY = """
git init -q -b main one; cd one; echo a > a; git add a; git commit -qm first; [ "$(git log -1 --format=%ae)" = some@example.com ]
git branch topic; git checkout -q topic; echo b > b; git add b; git commit -qm topic; git checkout -q main; echo c > c; git add c; git commit -qm main
git merge -q -m merged topic; [ -e b ] && [ -e c ]; git worktree add -q ../tree -b side; (cd ../tree; echo d > d; git add d; git commit -qm side)
git merge -q -m sides side; git clone -q . ../two; cd ../two; echo e > e; git add e; git commit -qm two; git push -q origin HEAD:pushed
git fetch -q; git remote add other ../one; git config user.name Other; git rebase -q --exec true HEAD~1
git -c protocol.file.allow=always submodule --quiet add "$PWD/../one" sub; git commit -qm submodule; git submodule update -q; git status --short
git -c protocol.file.allow=always clone -q --recurse-submodules . ../three; [ -e ../three/sub/a ]; git gc -q; git fsck --no-progress 2> /dev/null
"""

OLD_REPOSITORY = """
git status --short; echo x > x; git add x; git commit -qm inside; git branch topic; git checkout -q topic; echo y > y; git add y; git commit -qm topic
git checkout -q main; git merge -q topic; git tag t; git stash list; git log --oneline; git worktree add -q /tmp/tree side 2> /dev/null || git worktree add -q -b side /tmp/tree
(cd /tmp/tree; echo z > z; git add z; git commit -qm side); git merge -q -m side side; git clone -q . /tmp/clone; cd /tmp/clone; echo c > c; git add c; git commit -qm clone
git push -q origin HEAD:refs/heads/pushed
"""


@needs("git")
def test_git_in_new_repositories(t):
    """init, clone, commit, branch, merge, worktree, submodule; after the sweep all of it is still
    there."""
    t.write(t.home, {".gitconfig": IDENTITY})
    ws = t.workspace()
    r = inside(t, ws, NEW_REPOSITORY)
    t.equal(r.report["quarantine"], [], "what the sweep moved")
    for name in ("one", "two", "three"):
        t.equal(t.run("git", "fsck", "--no-progress", cwd=os.path.join(ws, name)).rc, 0,
                f"git fsck of {name} outside")
    t.contains(t.run("git", "-C", f"{ws}/two", "remote", "-v").out, "other")


@needs("git")
def test_git_rebase_of_the_users(t):
    """A rebase with commands that was under way goes on inside; its list is the user's and stays,
    an added command is not."""
    t.write(t.home, {".gitconfig": IDENTITY})
    ws = t.workspace()
    t.run("sh", "-ec", "git init -q -b main; for i in 1 2 3; do git commit -q --allow-empty -m $i; "
          "done; ! git rebase -q -x 'test -e done1' -x 'test -e done2' HEAD~2", cwd=ws, check=True)
    r = inside(t, ws, "touch done1; ! git rebase --continue 2> /dev/null; grep -q done2 "
               ".git/rebase-merge/git-rebase-todo")
    t.equal(r.report["quarantine"], [], "what the sweep moved")
    t.equal(t.run("sh", "-ec", "touch done2; git rebase --continue", cwd=ws).rc, 0,
            "the rebase outside")


@needs("git")
def test_git_in_a_repository_that_was_there(t):
    """Everything works inside; harmless settings arrive, an address does not before the user has
    set it."""
    t.write(t.home, {".gitconfig": IDENTITY})
    ws, other = t.git_repo(), t.git_repo()
    inside(t, ws, OLD_REPOSITORY)
    t.contains(t.run("git", "branch", cwd=ws).out, "pushed")
    for command, key, value in ((f"git remote add o {other}", "remote.o.url", ""),
                                ("git branch -u side", "branch.main.merge", "refs/heads/side\n"),
                                ("git config alias.x '!evil'", "alias.x", "")):
        r = t.ward("run", "--profile", "generic", "--ro", other, "--", "sh", "-c", command, cwd=ws)
        t.equal(r.rc, 0, f"{command}: {r.err}")
        t.equal(t.run("git", "config", "--local", key, cwd=ws).out, value, command)


def wheel(directory):
    """A small wheel, made by hand."""
    name = os.path.join(directory, "wardsample-1.0-py3-none-any.whl")
    files = {"wardsample.py": "def main():\n    print('sample runs')\n",
             "wardsample-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: wardsample\n"
             "Version: 1.0\n",
             "wardsample-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
             "Root-Is-Purelib: true\nTag: py3-none-any\n",
             "wardsample-1.0.dist-info/entry_points.txt": "[console_scripts]\n"
             "wardsample = wardsample:main\n"}
    files["wardsample-1.0.dist-info/RECORD"] = "".join(f"{f},,\n"
                                                       for f in files) + "wardsample-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(name, "w") as z:
        for file, text in files.items():
            z.writestr(file, text)
    return name


@by_turns
@timeout(180)
def test_venv_and_pip(t):
    """A virtual environment, and pip from a local index: a server on the sandbox's own loopback."""
    want(t, "/usr/bin/python3", "/usr/lib/python3")
    if t.run("/usr/bin/python3", "-c", "import ensurepip, venv").rc != 0:
        t.skip("there is no python3-venv here")
    ws = t.workspace({"index/wardsample/.keep": ""})
    wheel(os.path.join(ws, "index/wardsample"))
    inside(t, ws, """
        /usr/bin/python3 -m venv v; . v/bin/activate; (cd index; exec python -m http.server --bind 127.0.0.1 8765 > /dev/null 2>&1) & server=$!
        for i in $(seq 100); do python -c 'import socket; socket.create_connection(("127.0.0.1", 8765))' 2> /dev/null && break; sleep 0.1; done
        pip install -q --disable-pip-version-check --index-url http://127.0.0.1:8765/ wardsample; kill $server
        [ "$(wardsample)" = "sample runs" ]; [ "$(pip cache dir)" = ~/.cache/pip ]; touch ~/.cache/pip/kept; pip list --disable-pip-version-check | grep wardsample""", timeout=170)
    inside(t, ws, "[ -e ~/.cache/pip/kept ]; v/bin/wardsample; v/bin/pip install -q "
           "--force-reinstall --no-index --find-links index/wardsample wardsample",
           timeout=100)


@timeout(180)
def test_npm_ci_and_npm_test(t):
    want(t, "npm")
    ws = t.workspace({"dep/package.json": '{"name": "dep", "version": "1.0.0", "main": "i.js"}',
                      "dep/i.js": "module.exports = x => x * 2;",
                      "package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"dep": '
                      '"file:dep-1.0.0.tgz"}, "scripts": {"test": "node t.js"}}',
                      "t.js": 'if (require("dep")(21) !== 42) process.exit(1); '
                      'console.log("tested");'})
    inside(t, ws, "(cd dep; npm pack --silent --pack-destination ..); npm install --offline "
           "--no-audit --no-fund --package-lock-only --silent", timeout=100)
    r = inside(t, ws, "npm ci --offline --no-audit --no-fund; npm test", timeout=100)
    t.contains(r.out, "tested")
    t.check(os.path.isdir(os.path.join(ws, "node_modules/dep")), "npm ci left no module")


def test_make(t):
    want(t, "make", "gcc")
    sources = {f"f{i}.c": f"int f{i}(void) {{ return {i}; }}\n" for i in range(8)}
    ws = t.workspace({**sources, "main.c": "#include <stdio.h>\nint f7(void);\n"
                      "int main(void) { printf(\"%d\\n\", f7()); return 0; }\n",
                      "Makefile": "objects = main.o $(patsubst %,f%.o,0 1 2 3 4 5 6 7)\n"
                      "program: $(objects)\n\t$(CC) -o $@ $^\ntest: program\n\t./program\n"})
    r = inside(t, ws, "make -j2 test; ! command -v ccache || { ccache gcc -c main.c -o m.o; [ -d "
               "~/.cache/ccache ]; }")
    t.contains(r.out, "\n7\n")


def test_gdb_on_an_own_child(t):
    want(t, "gdb", "gcc")
    ws = t.workspace({"a.c": "int sum(int a, int b) { return a + b; }\nint main(void) { return "
                      "sum(40, 2) - 42; }\n"})
    r = inside(t, ws, """gcc -g -O0 a.c -o a
        gdb -q -batch -nx -ex 'break sum' -ex run -ex bt -ex finish -ex continue ./a 2>&1 | tee log
        grep -q 'Value returned is .* = 42' log; grep -q 'exited normally' log
        sleep 30 & gdb -q -batch -nx -ex bt -p $! > attached 2>&1; kill $!; grep -q 'sleep' attached""")
    t.contains(r.out, "Breakpoint 1, sum (a=40, b=2)")


@slow
@timeout(300)
def test_cargo(t):
    want(t, "/usr/bin/cargo")
    ws = t.workspace({"Cargo.toml": '[workspace]\nmembers = ["app", "lib"]\n',
                      "lib/Cargo.toml": '[package]\nname = "lib"\nversion = "0.1.0"\n'
                      'edition = "2021"\n', "lib/src/lib.rs": "pub fn f() -> i32 { 42 }\n",
                      "app/Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\n'
                      'edition = "2021"\n[dependencies]\nlib = { path = "../lib" }\n',
                      "app/src/main.rs": 'fn main() { println!("{}", lib::f()); }\n#[test]\n'
                      'fn t() { assert_eq!(lib::f(), 42); }\n'})
    t.contains(inside(t, ws, "cargo build --offline; target/debug/app; cargo test --offline",
                      timeout=280).out, "42")


@slow
@timeout(300)
def test_go(t):
    want(t, "go")
    ws = t.workspace({"go.mod": "module example.com/app\n\ngo 1.19\n",
                      "lib/lib.go": "package lib\n\nfunc F() int { return 42 }\n",
                      "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.com/app/lib"\n)\n\n'
                      'func main() { fmt.Println(lib.F()) }\n',
                      "lib/lib_test.go": 'package lib\n\nimport "testing"\n\n'
                      'func TestF(t *testing.T) {\n\tif F() != 42 {\n\t\tt.Fatal()\n\t}\n}\n'})
    t.contains(inside(t, ws,
                      "go build -o app .; ./app; go test ./...; [ -n \"$(ls ~/.cache/go-build)\" ]",
                      timeout=280).out, "42")
    again = t.ward("run", "--profile", "generic", "--", "go", "build", "-o", "app2", ".", cwd=ws,
                   timeout=100)
    t.equal(again.rc, 0)
    t.check(again.seconds < 20, f"with the cache of the first run it took {again.seconds:.1f} s")


@slow
@timeout(180)
def test_postgresql(t):
    want(t, "/usr/lib/postgresql", "psql")
    ws = t.workspace()
    inside(t, ws, """
        PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); initdb -D d -U agent > /dev/null; trap 'cat l' ERR
        pg_ctl -D d -w -l l -o "-k /tmp" start > /dev/null
        psql -q -h /tmp postgres -c 'create table t(a int primary key)' -c 'insert into t select generate_series(1, 10000)' -c 'vacuum analyze t'
        [ "$(psql -h localhost -At postgres -c 'select sum(a) from t')" = 50005000 ]
        [ "$(psql -h ::1 -At postgres -c 'select count(*) from t a join t b using (a)')" = 10000 ]; pg_ctl -D d -w -m fast stop > /dev/null
        pg_ctl -D d -w -l l -o "-k /tmp" start > /dev/null; psql -h /tmp -At postgres -c 'select max(a) from t'; pg_ctl -D d -w -m fast stop""")


PAGE = ('<html><body><h1 id="x">plain</h1><script>document.getElementById("x").textContent = '
        '"rendered " + 6 * 7</script></body></html>')


@slow
@timeout(180)
def test_headless_chromium(t):
    """A page with a script, as text and as a picture. ward is the sandbox (--no-sandbox); with
    process.nesting the browser's own works inside."""
    want(t, "chromium")
    ws = t.workspace({"index.html": PAGE})
    url = f"file://{ws}/index.html"
    for own, options in (("--no-sandbox", ()), ("", ("--set", "process.nesting=true"))):
        r = t.ward("run", "--profile", "generic", *options, "--", "sh", "-ec",
                   f"chromium --headless --disable-gpu {own} --dump-dom {url}; "
                   f"chromium --headless --disable-gpu {own} --screenshot=$PWD/shot.png {url}",
                   cwd=ws, timeout=120)
        t.equal(r.rc, 0, f"exit with {own or 'its own sandbox'}")
        t.contains(r.out, '<h1 id="x">rendered 42</h1>')
        with open(os.path.join(ws, "shot.png"), "rb") as f:
            t.equal(f.read(8), b"\x89PNG\r\n\x1a\n", "the picture")
        os.unlink(os.path.join(ws, "shot.png"))


def agent(t, name, word):
    """--version and --help of an agent under its profile, and its home is kept."""
    if not AGENTS:
        t.skip("WARD_TEST_AGENTS names no directory with the agents")
    if not os.path.exists(os.path.join(AGENTS, "bin", name)):
        t.skip(f"there is no {name} in {AGENTS}")
    env = {"PATH": f"{AGENTS}/bin:/usr/local/bin:/usr/bin:/bin"}
    ws = t.git_repo()
    r = t.ward("run", "--profile", name, *ALONE, "--", name, "--version", cwd=ws, env=env,
               timeout=100)
    t.equal(r.rc, 0, "exit of --version")
    t.check(any(c.isdigit() for c in r.out), f"version: {r.out!r}")
    r = t.ward("run", "--profile", name, *ALONE, "--", name, "--help", cwd=ws, env=env, timeout=100,
               report=True)
    t.equal(r.rc, 0, "exit of --help")
    t.contains(r.out, word)
    t.equal(r.report["denials"], [], "denials")
    t.check(os.path.isdir(os.path.join(t.state_dir, "homes", name, "home")), "the home is not kept")
    # its full screen comes up on a terminal; the time ends it
    r = t.ward_tty("run", "--profile", name, *ALONE, "--timeout", "30", "--", name, cwd=ws,
                   size=(30, 100), env={**env, "TERM": "xterm-256color"}, timeout=90)
    t.contains(r.out, word.split()[0], "the screen")
    t.check(r.rc in (0, 1, 124), f"exit {r.rc} of the full screen")
    return ws, env


@slow
@timeout(300)
def test_claude(t):
    ws, env = agent(t, "claude", "Claude Code")
    # no key and no network: it must say so by itself, not hang or crash
    r = t.ward("run", "--profile", "claude", *ALONE, "--timeout", "90", "--", "claude", "-p",
               "hello", cwd=ws, env=env, timeout=120)
    t.check(r.rc not in (124, 125, 126, 127) and r.rc < 128,
            f"exit {r.rc} of a prompt without a key: {r.out} {r.err}")


@slow
@timeout(300)
def test_codex(t):
    """Its own sandbox works inside because the profile sets process.nesting, and says why not
    without."""
    ws, env = agent(t, "codex", "Codex")
    r = t.ward("run", "--profile", "codex", *ALONE, "--", "codex", "sandbox", "--", "sh", "-c",
               "echo nested; ! touch ~/x", cwd=ws, env=env, timeout=100)
    t.equal((r.rc, r.out), (0, "nested\n"), "codex sandbox")
    r = t.ward("run", "--profile", "codex", *ALONE, "--set", "process.nesting=false", "--", "codex",
               "sandbox", "--", "true", cwd=ws, env=env, timeout=100, report=True)
    t.check(r.rc != 0, "its sandbox came up without nesting")
    t.contains(" ".join(d["remedy"] for d in r.report["denials"]), "process.nesting")


@slow
@timeout(300)
def test_gemini(t):
    agent(t, "gemini", "Gemini CLI")
