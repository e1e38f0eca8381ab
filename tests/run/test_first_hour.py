"""What people do in the first hour, as a table: a run that fails says the option on standard error,
the report and ward explain have it too, and the same run with that option pasted behind `ward run`
succeeds. A row is a case; nothing of it needs a network outside."""
import concurrent.futures
import json
import os
import re
import shlex
import socket
import sys

from harness import by_turns, engines, timeout

DATA = "1 2 3\n"
NPM = '{"name": "x", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}\n'
CARGO = ("[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n"
         "itoa = \"1\"\n")
FORK = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3 & done; wait"
FILES = "f = [open('/dev/null') for i in range(90)]"
SERVER = "import socket, time; s = socket.create_server(('127.0.0.1', 8123)); time.sleep(4.5)"

WORKS = "works"		# with the option the run succeeds
PLANS = "plans"		# with the option the plan is made: what it opens is not there in a test
WORDS = "words"		# no option can do it: the words say what can

# at isolation level landlock
HOME = "no file can be shown in it"
LIB = "{h}/.local/lib/" + max((x for x in os.listdir("/usr/lib")
                              if re.fullmatch(r"python3\.\d+", x)),
                             key=lambda x: int(x[8:]), default="python3") + "/site-packages"
SOCKET = "there is no network and no socket of others without namespaces"
PATH = "--ro {h}/.local/bin/mytool --env PATH="
# behind gVisor
UNSEEN = "kernel refuses by itself"
BY_GROUP = {"network": {"landlock": SOCKET}}


class Row:
    """group, name: which test runs it. argv: the command; {h}, {o}, {w} are the home, another
    directory and the workspace of the host. option: what is printed; then: what it comes to."""

    def __init__(self, group, name, argv, option, then=WORKS, given="", files=None, program=None,
                 explained=True, root=True, but=(), by=None):
        self.group, self.name, self.option, self.then = group, name, option, then
        self.argv = argv if isinstance(argv, tuple) else ("sh", "-c", argv)
        self.given, self.files, self.program = given, files or {}, program
        self.explained = explained	# refusals before a start have no journal
        self.root = root	# root is held by other means there
        self.but = but	# engines that allow it, or refuse it before the start
        # engines where no option helps, and what they say in its place
        by = {**BY_GROUP.get(group, {}), **(by or {})}
        if engines.asked() in by:
            self.option, self.then, self.explained = by[engines.asked()], WORDS, False

    def fill(self, text, places):
        for key, value in places.items():
            text = text.replace("{" + key + "}", value)
        return text


def py(code):
    return ("python3", "-c", code)


ROWS = [
    # files that only the host has
    Row("files", "a file that a program opens", py("open('{o}/data')"), "--ro {o}/data"),
    Row("files", "a file that a script reads", ("./build.sh",), "--ro {o}/data",
        files={"build.sh": "#!/bin/sh\nset -e\nread x < {o}/data\n"}),
    Row("files", "a file deep in make", ("make", "-s"), "--ro {o}/data", program="make",
        files={"Makefile": "all:\n\t@cat {o}/data\n"}),
    Row("files", "a file that node reads",
        ("node", "-e", "require('fs').readFileSync('{o}/data')"), "--ro {o}/data", program="node"),
    Row("files", "a file that perl reads", ("perl", "-e", "open(F, '{o}/data') or die '{o}/data: '"
                                            ". $!"), "--ro {o}/data", program="perl"),
    Row("files", "a directory", "ls {o}", "--ro {o}"),
    Row("files", "a dotfile of the home", "cat ~/.toolrc", "--ro {h}/.toolrc:/home/agent/.toolrc",
        by={"landlock": HOME}),
    Row("files", "a dotfile that python reads",
        py("import os; open(os.path.expanduser('~/.toolrc'))"),
        "--ro {h}/.toolrc:/home/agent/.toolrc", by={"landlock": HOME}),
    Row("files", "credentials of the home", "cat ~/.aws/credentials", "may contain credentials",
        WORDS),
    Row("files", "an ssh key", "cat ~/.ssh/id_ed25519", "may contain credentials", WORDS),
    Row("files", "a file that is hidden", "cat .env", "take its pattern out", WORDS,
        given="--hide .env", but=("landlock",), files={".env": "KEY=1\n"}),
    # writing
    Row("writes", "a new file elsewhere", py("open('{o}/new', 'w')"), "--rw {o}"),
    Row("writes", "a shell that writes elsewhere", "echo x > {o}/new", "--rw {o}"),
    Row("writes", "the system", "echo x > /etc/motd", "--rw DIR", WORDS),
    Row("writes", "the system, by python", py("open('/usr/local/lib/x', 'w')"), "--rw DIR", WORDS),
    Row("writes", "a directory of the system", "mkdir /opt/x", "--rw DIR", WORDS),
    Row("writes", "the root", "echo x > /beside", "--rw DIR", WORDS),
    Row("writes", "a workspace that is read-only", py("open('new', 'w')"),
        "--set filesystem.mode=read_write", given="--set filesystem.mode=read_only"),
    Row("writes", "a protected file", "echo x >> .envrc", "--add filesystem.protect='!/.envrc'",
        files={".envrc": "a\n"}, but=("landlock",)),
    # programs
    Row("programs", "a program of the host", ("mytool",), "--add filesystem.programs=mytool",
        by={"landlock": PATH}),
    Row("programs", "called by a shell", "mytool", "--add filesystem.programs=mytool",
        by={"landlock": PATH}),
    Row("programs", "called by a script", ("./build.sh",), "--add filesystem.programs=mytool",
        by={"landlock": PATH}, files={"build.sh": "#!/bin/sh\nset -e\nmytool\n"}),
    Row("programs", "called by python", py("import subprocess; subprocess.run(['mytool'])"),
        "--add filesystem.programs=mytool",
        by={"landlock": PATH}),
    Row("programs", "called by make", ("make", "-s"), "--add filesystem.programs=mytool",
        by={"landlock": PATH}, program="make", files={"Makefile": "all:\n\t@mytool\n"}),
    Row("programs", "by its path", ("{h}/.local/bin/mytool",), "--ro {h}/.local/bin/mytool"),
    Row("programs", "a library of pip install --user", ("/usr/bin/python3", "-c", "import mylib"),
        f"--ro {LIB}:/home/agent{LIB[3:]}", by={"landlock": f"--env PYTHONPATH={LIB}"}),
    Row("programs", "a database file without its name", py("import sqlite3; sqlite3.connect("
                                                           "'{o}/none').execute('select 1')"),
        "remedy: --hints", WORDS, explained=False, by={"gvisor": UNSEEN}),
    Row("programs", "git without a login",
        "echo \"fatal: could not read Username for 'https://git.invalid': \" >&2; exit 128",
        "--secret NAME@git.invalid:basic=USER", WORDS),
    Row("programs", "nobody's, called by a script", ("./build.sh",), "is not on your PATH either",
        WORDS, explained=False, by={"gvisor": UNSEEN},
        files={"build.sh": "#!/bin/sh\nnobody-has-this\n", ".env": "KEY=1\n"}),
    Row("programs", "git below its repository", ("git", "status"), "--workspace {w}",
        given="--workspace {w}/src", files={"src/x": "", ".git/HEAD": "x"}, then=WORDS,
        explained=False),
    Row("programs", "a port of root's", "echo 'Error: listen EACCES: :::80' >&2; exit 1",
        "which --publish 8080", WORDS, explained=False),
    Row("programs", "a script without its mode", ("./build",), "chmod +x ./build", WORDS,
        files={"build": "#!/bin/sh\n"}),
    Row("programs", "a program of nobody", ("nobody-has-this",), "not on your PATH either", WORDS,
        by={"gvisor": "remedy: --hints"}),
    Row("programs", "sudo", ("sudo", "ls"), "nothing inside gets root rights", WORDS),
    Row("programs", "sudo in a script", "sudo ls", "nothing inside gets root rights", WORDS),
    Row("programs", "su", ("su", "-c", "id"), "nothing inside gets root rights", WORDS),
    Row("programs", "ping", ("ping", "-c1", "192.0.2.1"), "only TCP", WORDS),
    Row("programs", "chown", "touch x && chown daemon x", "run it outside", WORDS),
    Row("programs", "an ssh-agent", ("ssh-add", "-l"), "--ssh USER@HOST", WORDS),
    Row("programs", "systemctl", ("systemctl", "start", "x"), "run it outside", WORDS),
    Row("programs", "crontab", ("crontab", "/nowhere"), "run it outside", WORDS),
    Row("programs", "apt-get", ("apt-get", "install", "x"), "build an image", WORDS),
    Row("programs", "docker", ("docker", "ps"), "run docker outside", WORDS),
    # system calls
    Row("calls", "strace", ("strace", "-o", "/dev/null", "true"), "--set process.syscalls=build",
        program="strace", but=("gvisor",)),
    Row("calls", "gdb", ("gdb", "-batch", "-ex", "run", "-ex", "quit $_exitcode", "/bin/true"),
        "--set process.syscalls=build", program="gdb", but=("gvisor",)),
    Row("calls", "that nothing allows", ("dmesg",), "no option allows it", WORDS, program="dmesg",
        explained=False, but=("gvisor",)),
    Row("calls", "a namespace", ("unshare", "-U", "true"), "--set process.nesting=true",
        but=("gvisor", "oci", "landlock")),
    Row("calls", "a mount", ("mount", "-t", "tmpfs", "x", "/mnt"), "--ro DIR", WORDS),
    Row("calls", "a device", "cat < /dev/fuse", "devices of the host are not inside", WORDS,
        program="/dev/fuse", but=("gvisor",)),
    # limits; as root a cgroup may hold them, and says the same
    Row("limits", "memory", py("x = bytearray(150 << 20)"), "--memory 200Mi",
        given="--memory 100Mi", but=("landlock",)),
    Row("limits", "processes", FORK, "--pids 16", given="--pids 8", root=False,
        but=("gvisor", "landlock")),
    Row("limits", "threads", py("import threading, time\nfor i in range(10):\n "
                                "threading.Thread(target=time.sleep, args=(0.3,)).start()"),
        "--pids 16", given="--pids 8", root=False, but=("gvisor", "landlock")),
    Row("limits", "open files", py(FILES), "--set resources.open_files=128",
        given="--set resources.open_files=64", but=("gvisor",)),
    Row("limits", "more open files", ("bash", "-c", "ulimit -n 100"),
        "--set resources.open_files=128", given="--set resources.open_files=64", but=("gvisor",)),
    Row("limits", "disk", "head -c 15000000 /dev/zero > /tmp/big || exit 3", "--disk 20Mi",
        given="--disk 10Mi", root=False, but=("landlock",)),
    Row("limits", "time", ("sleep", "1.5"), "--timeout 2", given="--timeout 1", but=("gvisor",)),
    # names and connections
    Row("network", "npm", ("npm", "install", "--no-audit", "--fetch-retries=0"),
        "--allow npm.invalid", PLANS, files={"package.json": NPM}, program="npm",
        given="--env npm_config_registry=https://npm.invalid/"),
    Row("network", "pip", ("/usr/bin/python3", "-m", "pip", "download", "--no-deps", "--index-url",
                           "https://pip.invalid/simple", "x"), "--allow pip.invalid", PLANS,
        given="--env PIP_RETRIES=0", program="pip3", by={"gvisor": UNSEEN}),
    Row("network", "cargo", ("cargo", "--config", "source.crates-io.replace-with=\"m\"", "--config",
                             "source.m.registry=\"sparse+https://cargo.invalid/\"", "fetch"),
        "--allow cargo.invalid", PLANS, program="cargo",
        files={"Cargo.toml": CARGO, "src/lib.rs": ""}),
    Row("network", "go", ("go", "mod", "download"), "--allow go.invalid", PLANS, program="go",
        given="--env GOPROXY=https://go.invalid --env GOFLAGS=-mod=mod",
        files={"go.mod": "module x\ngo 1.19\nrequire example.com/y v1.6.0\n"}),
    Row("network", "curl", ("curl", "-sS", "https://a.invalid/"), "--allow a.invalid", PLANS),
    Row("network", "git over https", ("git", "clone", "https://git.invalid/a/b"),
        "--allow git.invalid", PLANS),
    Row("network", "git over ssh", ("git", "clone", "git@git.invalid:a/b.git"),
        "--ssh git@git.invalid", WORDS),
    Row("network", "ssh", ("ssh", "-o", "BatchMode=yes", "me@host.invalid"),
        "--ssh me@host.invalid", WORDS),
    Row("network", "the loopback of the host", "exit 3", "--service svc{p}=127.0.0.1:{p}", PLANS,
        given="--allow localhost:{p}", explained=False, but=("landlock",)),
    Row("network", "an address", py("import socket; "
                                    "socket.create_connection(('192.0.2.9', 4321), 5)"),
        "--allow 192.0.2.9:4321", PLANS, by={"gvisor": UNSEEN}),
    Row("network", "a datagram", py("import socket; s = socket.socket(type=socket.SOCK_DGRAM); "
                                    "s.sendto(b'x', ('192.0.2.9', 53))"), "--allow HOST", WORDS,
        by={"gvisor": UNSEEN}),
    Row("network", "a server that nobody reaches", py(SERVER + "; exit(1)"), "--publish 8123",
        PLANS, by={"gvisor": UNSEEN}),
    Row("network", "a service of the host", py("import socket; "
                                               "socket.create_connection(('127.0.0.1', {p}))"),
        "--service svc{p}=127.0.0.1:{p}", PLANS,
        by={"gvisor": UNSEEN}),
    # variables of the caller
    Row("variables", "that python reads", py("import os; os.environ['DATABASE_URL']"),
        "--env DATABASE_URL"),
    Row("variables", "that a shell reads", ": ${DATABASE_URL:?is missing}", "--env DATABASE_URL"),
    Row("variables", "that a script asks for", ("./deploy.sh",), "--env DATABASE_URL",
        files={"deploy.sh": "#!/bin/sh\n[ \"$DATABASE_URL\" ] && exit\n"
                            "echo 'error: set DATABASE_URL.' >&2\nexit 1\n"}),
    Row("variables", "with a secret", py("import os; os.environ['MY_TOKEN']"),
        "--secret MY_TOKEN@HOST", WORDS),
    # the policy and the command line
    Row("policy", "a wrong option", ("true",), "did you mean --allow", WORDS, given="--alow x",
        explained=False),
    Row("policy", "a wrong key", ("true",), "did you mean \"network\"", WORDS, explained=False,
        files={"ward.yaml": "version: 1\nnetwrk:\n  mode: none\n"}),
    Row("policy", "a wrong type", ("true",), "expected a map", WORDS, explained=False,
        files={"ward.yaml": "version: 1\nnetwork: none\n"}),
    Row("policy", "a wrong size", ("true",), "expected a size such as 512Mi", WORDS,
        explained=False, given="--memory lots"),
    Row("policy", "a policy that widens", ("true",), "ward trust", WORDS, explained=False,
        files={"ward.yaml": "version: 1\nnetwork: {mode: open}\n"}),
]


class Place:
    """The directories of a row, and what the host has in them."""

    def __init__(self, t, row):
        self.t, self.row = t, row
        other = t.fresh_dir("other")
        tools = os.path.join(t.home, ".local/bin")
        t.write(other, {"data": DATA})
        t.write(t.home, {".toolrc": "x\n", ".aws/credentials": "KEY\n", ".ssh/id_ed25519": "KEY\n",
                         ".local/bin/mytool": "#!/bin/sh\necho it runs\n",
                         LIB[4:] + "/mylib.py": ""})
        os.chmod(os.path.join(tools, "mytool"), 0o755)
        for path in (other, t.home):
            os.chmod(path, 0o755)
        self.env = {"PATH": tools + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "DATABASE_URL": "postgres://db", "MY_TOKEN": "TOPSECRET"}
        server = socket.create_server(("127.0.0.1", 0))
        t.defer(server.close)
        self.places = {"h": t.home, "o": other, "p": str(server.getsockname()[1])}
        self.ws = t.workspace({p: c and self.fill(c) for p, c in row.files.items()})
        for path in row.files:
            if path.endswith(".sh"):
                os.chmod(os.path.join(self.ws, path), 0o755)
        self.places["w"] = self.ws
        self.option = self.fill(row.option)

    def fill(self, text):
        return self.row.fill(text, self.places)

    def ward(self, verb, *more):
        return self.t.ward(verb, *shlex.split(self.fill(self.row.given)), *more, "--",
                           *map(self.fill, self.row.argv), cwd=self.ws, env=self.env, timeout=60,
                           report=verb == "run")


def check_said(t, p, r):
    """Standard error has the option once, before the line of the policy."""
    row = p.row
    t.check(r.rc != 0, (row.name, r))
    lines = [x for x in r.err.splitlines() if p.option in x]
    t.check(lines, f"{row.name}: no {p.option!r} in:\n{r.err}")
    if row.then != WORDS:
        t.check(len(lines) <= 2, (row.name, lines))	# for two reasons at most
        t.check(lines[0].startswith(("ward: ", "  remedy: ")), (row.name, lines))
        where = lines[0].find("(policy: ")
        t.check(where < 0 or lines[0].index(p.option) < where, (row.name, lines))


def check_explained(t, p, r):
    """The report has it, or the limit that was reached; ward explain has the option."""
    explained = t.ward("explain", "--json", cwd=p.ws, env=p.env)
    t.equal(explained.rc, 0, (p.row.name, explained.err))
    found = json.loads(explained.out)["denials"]
    t.check(any(p.option in json.dumps(d, ensure_ascii=False).replace('\\"', '"')
                for d in found), f"{p.row.name}: ward explain has no {p.option!r}: {found}")
    text = json.dumps(r.report, ensure_ascii=False).replace('\\"', '"')
    hit = [n for n, x in r.report["limits"].items() if x["hit"]]
    t.check(p.option in text or hit, f"{p.row.name}: the report has no {p.option!r}: {text}")


def check_works(t, p):
    """The option is pasted as it was printed."""
    words = shlex.split(p.option)
    if p.row.then == WORKS:
        r = p.ward("run", *words)
        t.equal(r.rc, 0, f"{p.row.name}: with {p.option}: {r!r}")
    elif p.row.then == PLANS:
        r = p.ward("plan", *words)
        t.equal(r.rc, 0, f"{p.row.name}: with {p.option}: {r!r}")


def without(t, engine, why):
    if engines.asked() == engine:
        t.skip(why)


def is_there(name):
    places = [name] if name.startswith("/") else [f"/usr/bin/{name}", f"/usr/local/bin/{name}"]
    return any(os.path.exists(path) for path in places)


def check_group(t, group):
    rows = [r for r in ROWS if r.group == group and engines.asked() not in r.but]
    done = 0
    for row in rows:
        if row.program and not is_there(row.program) or t.as_user == "root" and not row.root:
            continue
        p = Place(t, row)
        r = p.ward("run")
        check_said(t, p, r)
        if row.explained:
            check_explained(t, p, r)
        check_works(t, p)
        done += 1
    t.check(done >= len(rows) / 2 or engines.asked(), f"only {done} of {len(rows)} could be tried")


@timeout(120)
def test_files(t):
    check_group(t, "files")


@timeout(120)
def test_writes(t):
    check_group(t, "writes")


@timeout(120)
def test_programs(t):
    check_group(t, "programs")


@timeout(120)
def test_system_calls(t):
    check_group(t, "calls")


@by_turns
@timeout(120)
def test_limits(t):
    check_group(t, "limits")


@by_turns
@timeout(240)
def test_network(t):
    check_group(t, "network")


@timeout(60)
def test_variables(t):
    check_group(t, "variables")


def test_variables_that_nothing_misses(t):
    """Nothing is said about one that is inside, that a part of a word names, that the command
    succeeded with, or that leads to what is not inside."""
    ws = t.workspace()
    env = {"PATH": "/usr/bin:/bin", "DATABASE_URL": "postgres://db", "SSH_AUTH_SOCK": "/x"}
    for given, script in (("--env DATABASE_URL", "echo DATABASE_URL >&2; exit 3"),
                          ("", "echo MY_DATABASE_URL DATABASE_URL2 >&2; exit 3"),
                          ("", "echo DATABASE_URL >&2"), ("", "echo SSH_AUTH_SOCK >&2; exit 3")):
        r = t.ward("run", *given.split(), "--", "sh", "-c", script, cwd=ws, env=env)
        t.equal([x for x in r.err.splitlines() if x.startswith("ward: ")], [], (given, script))


@timeout(60)
def test_policy(t):
    check_group(t, "policy")


def test_another_program_of_the_same_name(t):
    """python3 on the caller's PATH is another one than inside: said also when all goes well."""
    without(t, "landlock", "the option names a path there")
    ws, tools = t.workspace(), t.fresh_dir("tools")
    t.write(tools, {"python3": "#!/bin/sh\necho mine\n"})
    os.chmod(os.path.join(tools, "python3"), 0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    r = t.ward("run", "--", "python3", "-c", "print('other')", cwd=ws, env=env)
    t.equal((r.rc, r.out), (0, "other\n"), r.err)
    t.contains(r.err, f"not {tools}/python3")
    option = r.err.split("to use that one: ")[1].splitlines()[0]
    r = t.ward("run", *shlex.split(option), "--", "python3", "-c", "print('other')", cwd=ws,
               env=env)
    t.equal((r.rc, r.out), (0, "mine\n"), r.err)


@by_turns
def test_a_server_that_succeeds_is_no_news(t):
    """Nor is one that ends soon, or whose port the kernel chose, or that is published."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cases = (((), SERVER), ((), SERVER.replace("4.5", "0.2") + "; exit(1)"),
             ((), SERVER.replace("8123", "0") + "; exit(1)"),
             (("--publish", f"{port}:8123"), SERVER + "; exit(1)"))
    places = [t.workspace() for _ in cases]

    def start(case, ws):
        return t.ward("run", *case[0], "--", "python3", "-c", case[1], cwd=ws)

    with concurrent.futures.ThreadPoolExecutor() as pool:	# they wait, not compute
        for case, r in zip(cases, pool.map(start, cases, places)):
            t.check("listens there" not in r.err and "--publish" not in r.err, (case, r.err))


def test_its_own_lines_begin_at_the_margin(t):
    """Also where the command left its last line open."""
    without(t, "gvisor", "a lookup without a word is not seen")
    without(t, "landlock", "a lookup is refused as a socket")
    ws = t.workspace()
    r = t.ward("run", "--", "sh", "-c", "printf 'half a line' >&2; getent hosts a.invalid; exit 3",
               cwd=ws)
    t.equal(r.err.splitlines()[0], "half a line", r.err)
    t.check(r.err.splitlines()[1].startswith("ward: denied: name a.invalid"), r.err)
    r = t.ward("run", "--", "sh", "-c", "printf 'half a line' >&2; exit 3", cwd=ws)
    t.equal(r.err, "half a line")


def test_learning_fails_fast_too(t):
    """ward learn begins with a network that reaches nothing: npm must not try for minutes."""
    without(t, "landlock", "it has no networks")
    ws = t.workspace()
    for more in ((), ("--set", "network.mode=restricted")):
        r = t.ward("run", *more, "--", "sh", "-c", "echo $npm_config_fetch_retries", cwd=ws)
        t.equal((r.rc, r.out), (0, "0\n"), more)
    r = t.ward("run", "--allow", "a.invalid", "--", "sh", "-c", "echo $npm_config_fetch_retries",
               cwd=ws)
    t.equal((r.rc, r.out), (0, "\n"))


def test_words_are_not_believed(t):
    """What a program prints leads to no option that ward would not give anyway: nothing for what
    the host does not have, nothing for secrets, nothing for what it succeeded with."""
    without(t, "gvisor", "what it does not see is a remedy, too")
    ws = t.workspace()
    t.write(t.home, {".ssh/id_rsa": "KEY\n", ".netrc": "KEY\n"})
    script = (f"cd {ws}; for f in {t.home}/.ssh/id_rsa {t.home}/.netrc {t.home} / /etc/shadow "
              "/nonexistent/x; do echo \"x: $f: No such file or directory\" >&2; done; "
              "printf 'x: /tmp/\\033[2J: No such file or directory\\n' >&2; exit %d")
    r = t.ward("run", "--", "sh", "-c", script % 3, cwd=ws)
    own = [x for x in r.err.splitlines() if x.startswith("ward: ")]
    t.check(not any("--ro /" in x or "\033" in x for x in own), own)
    t.check(not any("/nonexistent/x" in x for x in own), own)
    t.equal(len([x for x in own if "may contain credentials" in x]) > 0, True, own)
    r = t.ward("run", "--", "sh", "-c", script % 0, cwd=ws)
    t.check(not [x for x in r.err.splitlines() if x.startswith("ward: ")], r.err)
    for limit in ("MemoryError", "Too many open files", "Cannot fork"):
        r = t.ward("run", "--set", "resources.memory_limit=none", "--set",
                   "resources.open_files=none", "--set", "resources.pids_limit=none", "--",
                   sys.executable if sys.executable.startswith("/usr") else "python3", "-c",
                   f"import sys; sys.exit('{limit}')", cwd=ws)
        t.check("remedy" not in r.err, (limit, r.err))


def test_standard_error_everywhere(t):
    """Into a file, with 2>&1, and on a terminal the last words are heard all the same."""
    ws, other = t.workspace(), t.fresh_dir("other")
    t.write(other, {"data": DATA})
    os.chmod(other, 0o755)
    argv = ("python3", "-c", f"open('{other}/data')")
    log = os.path.join(ws, "log")
    for form in ("2>err", ">out 2>err", ">out 2>&1", ">>out 2>&1"):
        t.run("sh", "-c", f'"$@" {form}', "sh", t.ward_path, "run", "--", *argv, cwd=ws)
        text = (t.read(ws, "err") or "") + (t.read(ws, "out") or "")
        t.contains(text, f"remedy: --ro {other}/data")
        t.check(text.count("Traceback") == 1 or form.startswith(">>"), (form, text))
        for name in ("err",) if form != ">out 2>&1" else ("err", "log"):
            if os.path.exists(os.path.join(ws, name)):
                os.remove(os.path.join(ws, name))
    t.check(not os.path.exists(log), "a file nobody named")
    r = t.ward_tty("run", "--", *argv, cwd=ws)
    t.contains(r.out.replace("\r\n", ""), f"--ro {other}/data")
