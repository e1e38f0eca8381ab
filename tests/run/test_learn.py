"""ward learn: a policy that names what a command needs and nothing above it, seen to suffice; then
ward run under it succeeds unchanged. Secrets, private addresses and names that nobody allowed are
listed, not given, and nothing that a command asks for can break out of its line of the policy."""
import json
import os
import re
import shutil
import signal
import stat
import sys

from harness import by_turns, slow, timeout
from harness.world import SBIN, World, need, serve

from run.test_net_clients import nginx

SECRETS = {".ssh/id_ed25519": "PRIVATE-KEY-MARKER\n", ".ssh/config": "Host x\n",
           ".aws/credentials": "[default]\n", ".netrc": "machine x\n",
           "notes/plan.txt": "sibling\n",
           ".bash_history": "ls\n", ".env": "TOKEN=x\n"}


def person(t):
    """A home with secrets in it, for this test alone; returns the environment that names it."""
    home = t.fresh_dir("home")
    t.write(home, SECRETS)
    return home, {"HOME": home}


def learn(t, *args, cwd, env=None, ward=None, rc=0, **options):
    """Learns into a file; returns its text and the result."""
    path = os.path.join(t.fresh_dir("learned"), "ward.yaml")
    r = (ward or t.ward)("learn", "-o", path, *args, cwd=cwd, env=env, **options)
    t.equal(r.rc, rc, r.err)
    text = t.read(path)
    t.equal(text is not None, rc == 0, "whether there is a policy")
    for secret in SECRETS:
        t.check(secret.replace("notes/", "").split("/")[0] not in (text or ""),
                f"{secret} is in the policy:\n{text}")
    return path, text, r


def test_make(t):
    """Nothing of the host's is needed: the workspace, writable because make writes."""
    home, env = person(t)
    ws = t.workspace({"Makefile": "out: in.c\n\tcat in.c > out\n", "in.c": "int x;\n"})
    path, text, r = learn(t, "--", "make", cwd=ws, env=env)
    t.check("host_mounts" not in text and "network" not in text and "build" not in text, text)
    t.contains(text, "mode: read_write")
    t.check(not os.path.exists(os.path.join(ws, "out")), "a learning run has changed the workspace")
    t.contains(r.err, "discarded")
    t.equal(t.ward("run", "-p", path, "--", "make", cwd=ws, env=env).rc, 0, "ward run")
    t.equal(t.read(ws, "out"), "int x;\n")
    t.equal(t.ward("diff", "--list", cwd=ws).out, "there are no reviews\n",
            "reviews that learning left")
    path, text, _ = learn(t, "--", "cat", "in.c", cwd=ws, env=env)
    t.contains(text, "mode: read_only", "a command that writes nothing")


def test_keep_and_expect(t):
    ws = t.workspace({"a": "x"})
    _, _, r = learn(t, "--keep", "--expect", "7", "--", "sh", "-c", "echo y > b; exit 7", cwd=ws)
    run = re.search(r"ward diff (\S+)", r.err).group(1)
    t.equal(t.ward("apply", run, cwd=ws).rc, 0)
    t.equal(t.read(ws, "b"), "y\n")
    learn(t, "--", "false", cwd=ws, rc=1)
    for args in (["--expect", "x", "--"], ["--expect", "999", "--"], [], ["--nonsense", "--"],
                 ["-o", "/nonexist/x.yaml", "--"], ["-o", ".", "--"], ["-o", "b/", "--"],
                 ["-o", "a", "--"], ["-o", "", "--"],
                 ["--timeout", "abc", "--"], ["--memory", "1", "--"], ["--allow", "a b", "--"],
                 ["--merge", "a", "-o", "c", "--"]):
        r = t.ward("learn", *args, *(["true"] if args else []), cwd=ws)
        t.check(r.rc == 2 and "round" not in r.err, f"{args}: {r.rc} {r.err}")


def test_files_beside_secrets(t):
    """One file of the home, one directory elsewhere: those alone, read-only; their siblings stay
    outside."""
    home, env = person(t)
    data = t.fresh_dir("data")
    t.write(data, {"table/one.csv": "1\n", "table/two.csv": "2\n", "table2/three.csv": "3\n"})
    t.write(home, {"notes/words.txt": "WORDS-MARKER\n"})
    ws = t.workspace({"job.sh": f"set -e\ncat {home}/notes/words.txt ~/notes/words.txt\n"
                      f"ls {data}/table\ncat {data}/table/one.csv\ncat {home}/.ssh/id_ed25519 "
                      "|| true\n"})
    path, text, r = learn(t, "--", "sh", "job.sh", cwd=ws, env=env)
    t.contains(text, f'path: "{home}/notes/words.txt"')
    t.contains(text, f'{{path: "{data}/table"}}')
    t.check("table2" not in text and f'"{data}"' not in text and f'"{home}"' not in text
            and f'{home}/notes"' not in text, text)
    t.contains(r.err, "id_ed25519: it may contain a secret")
    r = t.ward("run", "-p", path, "--", "sh", "job.sh", cwd=ws, env=env)
    t.equal(r.rc, 0, r.err)
    t.check("PRIVATE-KEY-MARKER" not in r.out and r.out.count("WORDS-MARKER") == 2, r.out)
    r = t.ward("run", "-p", path, "--", "sh", "-c", f"ls -A ~ {home} {data}; touch {data}/table/x",
               cwd=ws, env=env)
    t.check("plan.txt" not in r.out and ".ssh" not in r.out and "table2" not in r.out and r.rc != 0,
            r.out)


def test_only_a_secret_helps(t):
    """Through whatever name: nothing is given, nothing is written."""
    home, env = person(t)
    data = t.fresh_dir("data")
    os.symlink(os.path.join(home, ".ssh/id_ed25519"), os.path.join(data, "innocent.txt"))
    os.symlink(os.path.join(home, ".ssh"), os.path.join(data, "directory"))
    t.write(data, {"closed": "x\n"})
    os.chmod(os.path.join(data, "closed"), 0o600)
    ws = t.workspace()
    for wanted in (f"{home}/.ssh/id_ed25519", "~/.ssh/config", f"{data}/innocent.txt",
                   f"{data}/directory/config", f"{data}/closed",
                   f"{home}/../{os.path.basename(home)}/.aws/credentials",
                   "/proc/1/environ"):
        _, _, r = learn(t, "--", "sh", "-c", f"cat {wanted}", cwd=ws, env=env, rc=1)
        t.check("PRIVATE-KEY-MARKER" not in r.err + r.out, f"{wanted}: {r.err}")
    _, _, r = learn(t, "--", "ls", home, cwd=ws, env=env, rc=1)
    t.contains(r.err, "it would expose too much")


def test_python_imports(t):
    """Third-party modules of a user's own site directory, and of a virtual environment outside the
    workspace."""
    home, env = person(t)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lib = f".local/lib/{version}"
    t.write(home, {f"{lib}/site-packages/wardthing/__init__.py": "WORD = 'THIRD-PARTY-MARKER'\n",
                   f"{lib}/other/x": ""})
    ws = t.workspace({"script.py": "import wardthing\nprint(wardthing.WORD)\n"})
    path, text, _ = learn(t, "--", "/usr/bin/python3", "-B", "script.py", cwd=ws, env=env)
    t.contains(text, f'{{path: "{home}/.local/lib/{version}/site-packages", at: '
               f'"/home/agent/.local/lib/{version}/site-packages"}}')
    t.equal(text.count("path:"), 1, text)
    t.equal(t.ward("run", "-p", path, "--", "/usr/bin/python3", "-B", "script.py", cwd=ws,
                   env=env).out, "THIRD-PARTY-MARKER\n")
    place = t.fresh_dir("tools")
    t.run("/usr/bin/python3", "-m", "venv", "--without-pip", os.path.join(place, "venv"),
          check=True)
    t.write(place, {f"venv/lib/{version}/site-packages/wardthing.py": "WORD = 'VENV-MARKER'\n",
                    "beside": "x"})
    command = os.path.join(place, "venv/bin/python"), "-B", "script.py"
    path, text, _ = learn(t, "--", *command, cwd=ws)
    t.contains(text, f'{{path: "{place}/venv"}}')
    t.equal(text.count("path:"), 1, text)
    t.equal(t.ward("run", "-p", path, "--", *command, cwd=ws).out, "VENV-MARKER\n")


def test_program_of_the_home(t):
    home, env = person(t)
    t.write(home, {"bin/wardtool": "#!/bin/sh\necho TOOL-MARKER\n", "bin/other": "x"})
    os.chmod(os.path.join(home, "bin/wardtool"), 0o755)
    env["PATH"] = f"{home}/bin:/usr/bin:/bin"
    ws = t.workspace()
    path, text, _ = learn(t, "--", "wardtool", cwd=ws, env=env)
    t.contains(text, "programs:\n    - wardtool")
    t.equal(t.ward("run", "-p", path, "--", "wardtool", cwd=ws, env=env).out, "TOOL-MARKER\n")


def test_hostile_names(t):
    """What a command names ends up quoted: in the policy, in its comments, in what is said."""
    data = t.fresh_dir("data")
    names = ["a\nnetwork:\n  mode: open", 'quote" , at: "etc', "\x1b[31mred", "- {path: x}",
             "u\u2028l\u0085x", "\U0001f600", "\\u0041", "tab\there"]
    for name in names:
        with open(os.path.join(data, name), "w") as f:
            f.write("x")
    ws = t.workspace({"names.json": json.dumps([os.path.join(data, n) for n in names]),
                      "all.py": "import json\nfor n in json.load(open('names.json')): "
                      "open(n).read()\n"})
    path, text, r = learn(t, "--", "/usr/bin/python3", "-B", "all.py", cwd=ws)
    t.check("\x1b" not in text + r.err and "mode: open\n" not in text, text)
    t.equal(t.ward("run", "-p", path, "--", "/usr/bin/python3", "-B", "all.py", cwd=ws).rc, 0)
    checked = t.ward("check", path, cwd=ws)
    t.equal(checked.rc, 0, checked.out + checked.err)
    plan = json.loads(t.ward("plan", "-p", path, "--json", cwd=ws).out)
    t.check(set(names) <= {m["target"][len(data) + 1:] for m in plan["mounts"]},
            "the names came back")
    with open(os.path.join(os.fsencode(data), b"not-utf8-\xff"), "w") as f:
        f.write("x")
    r = t.ward("learn", "--", "sh", "-c",
               f"cat {data}/not-utf8-*; cat \"$(printf '{data}/not-utf8-\\377')\"", cwd=ws)
    t.check(r.rc == 1 and "no such file" in r.err, r.err)


def test_json_and_output(t):
    ws = t.workspace({"a": "x"})
    said = json.loads(t.ward("learn", "--json", "--", "cat", "a", cwd=ws).out)
    t.check(said["suffices"] and said["exit"] == 0 and "version: 1" in said["policy"]
            and said["mounts"] == [], said)
    t.write(ws, {"ward.yaml": "version: 1\n"})
    r = t.ward("learn", "-o", "ward.yaml", "--", "true", cwd=ws)
    t.check(r.rc == 2 and "--merge" in r.err, r.err)
    t.equal(t.read(ws, "ward.yaml"), "version: 1\n")
    t.equal(t.ward("learn", "-f", "-o", "ward.yaml", "--", "true", cwd=ws).rc, 0)
    r = t.ward("learn", "--", "echo", "hi", cwd=ws)
    t.check(r.out.startswith("# What") and "hi\n" in r.err, "the policy alone is printed")


def test_merge(t):
    """Adds what is missing, keeps everything else of the file, and asks first."""
    data = t.fresh_dir("data")
    t.write(data, {"one.csv": "1\n", "two.csv": "2\n"})
    ws = t.workspace({"job.sh": f"set -e\ncat {data}/one.csv {data}/two.csv\necho x > out\n"})
    old = ("# mine\nversion: 1\nfilesystem:\n  mode: read_write   # stays\n  host_mounts:\n"
           f"    - {data}/one.csv\nprocess:\n  env: [TERM]\n")
    t.write(ws, {"own.yaml": old})
    t.equal(t.ward("trust", "--yes", "own.yaml", cwd=ws).rc, 0)
    r = t.ward("learn", "--merge", "own.yaml", "--", "sh", "job.sh", cwd=ws)
    t.check(r.rc == 125 and "two.csv" in r.out and t.read(ws, "own.yaml") == old,
            f"nobody was asked: {r.out} {r.err}")
    r = t.ward("learn", "--merge", "own.yaml", "--yes", "--", "sh", "job.sh", cwd=ws)
    t.equal(r.rc, 0, r.err)
    new = t.read(ws, "own.yaml")
    t.check("# mine" in new and "# stays" in new and new.count("csv") == 2
            and f"{data}/two.csv" in new, new)
    t.equal(t.ward("run", "-p", "own.yaml", "--", "sh", "job.sh", cwd=ws).rc, 0)
    t.write(ws, {"bad.yaml": "nonsense: 1\n"})
    for args in (["--merge", "bad.yaml"], ["--merge", "gone.yaml"]):
        t.equal(t.ward("learn", *args, "--", "true", cwd=ws).rc, 125, args)


def test_merge_of_a_policy_that_nobody_accepted(t):
    """A hostile checkout's file: not one round runs under it; after ward trust they do."""
    place = t.fresh_dir("place")
    proof = os.path.join(place, "proof")
    t.write(place, {"evil.sh": f"#!/bin/sh\ntouch {proof}\ncat > /dev/null\n"})
    os.chmod(os.path.join(place, "evil.sh"), 0o755)
    ws = t.workspace({"ward.yaml": f"version: 1\naudit:\n  sinks:\n    - {{type: command, to: "
                      f"{place}/evil.sh}}\n",
                      "mounts.yaml": f"version: 1\nfilesystem:\n  host_mounts: [{place}]\n"})
    for name in ("ward.yaml", "mounts.yaml"):
        r = t.ward("learn", "--merge", name, "--yes", "--", "sh", "-c", "echo STARTED >&2", cwd=ws)
        t.check(r.rc == 125 and f"ward trust {ws}/{name}" in r.err and "STARTED" not in r.err,
                r.err)
    t.check(not os.path.exists(proof), "its command ran")
    t.equal(t.ward("trust", "--yes", "mounts.yaml", cwd=ws).rc, 0)
    r = t.ward("learn", "--merge", "mounts.yaml", "--yes", "--", "ls", place, cwd=ws)
    t.equal(r.rc, 0, r.err)


def is_alive(mark):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if words[0] == b"/usr/bin/python3" and mark.encode() in words:
            return True
    return False


@timeout(120)
def test_it_ends_when_told(t):
    """Whatever ends it: the sandbox goes with it, no policy is written, no file stays. (Not with
    sh: dash drops a SIGINT that comes while it starts a program.)"""
    ws = t.workspace()
    for number, sent in enumerate((signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT,
                                   signal.SIGKILL)):
        path, mark = os.path.join(t.fresh_dir("learned"), "p.yaml"), f"mark{os.getpid()}x{number}"
        temporary = t.fresh_dir("temporary")
        p = t.ward_start("learn", "-o", path, "--", "/usr/bin/python3", "-c",
                         "import time; open('made', 'w').write('x'); time.sleep(100)", mark, cwd=ws,
                         env={"TMPDIR": temporary})
        t.wait_until(lambda: is_alive(mark), 10)
        with t.root():
            os.kill(p.pid, sent)
        r = t.finish_ward(p)
        t.check(r.rc in ((-9, 137) if sent == signal.SIGKILL else (128 + sent,)),
                f"{sent}: {r.rc} {r.err}")
        t.wait_until(lambda: not is_alive(mark), 15, f"{sent}: its sandbox goes on")
        t.check(not os.path.exists(path) and "round 2" not in r.err, f"{sent}: {r.err}")
        t.wait_until(lambda: not os.listdir(os.path.join(t.state_dir, "learn"))
                     and not os.listdir(temporary), 15, f"{sent}: a file stays")
        t.wait_until(lambda: t.ward("diff", "--list", cwd=ws).out == "there are no reviews\n", 15,
                     f"{sent}: a review stays")


def test_ctrl_c_on_the_terminal(t):
    ws = t.workspace()
    path = os.path.join(t.fresh_dir("learned"), "p.yaml")
    r = t.ward_tty("learn", "-o", path, "--", "/usr/bin/python3", "-c",
                   "import time; print('READY', flush=True); time.sleep(100)", input=b"\x03",
                   after=b"READY", cwd=ws)
    t.check(r.rc == 130 and "round 2" not in r.out and not os.path.exists(path), r.out)
    _, text, _ = learn(t, "--expect", "130", "--", "sh", "-c", "kill -INT $$", cwd=ws)
    t.contains(text, "version: 1")


def test_no_more_than_the_directory_itself(t):
    """A program that asks for everything above what it wants gets what it wants."""
    data = t.fresh_dir("data")
    t.write(data, {"opt/mods/wardthing.py": "WORD = 1\n", "opt/other/x": "y\n"})
    ws = t.workspace({"all.py": f"import os, sys\np = '{data}/opt/mods'\nwhile p != '/':\n"
                      "    os.path.exists(p); p = os.path.dirname(p)\nsys.path.insert(0, "
                      f"'{data}/opt/mods')\nimport wardthing\n"})
    _, text, _ = learn(t, "--", "/usr/bin/python3", "-B", "all.py", cwd=ws)
    t.contains(text, f'path: "{data}/opt/mods"')
    t.check(f'"{data}/opt"' not in text and f'"{data}"' not in text
            and "locale.alias" not in text, text)


@by_turns
@timeout(120)
def test_git_clone(t):
    """Over https from a server of the world: by --allow, by --allow-public, by a yes on the
    terminal; not without."""
    world = nginx(t)
    ws = t.workspace()
    shutil.copy(os.path.join(world.certificates, "ca.pem"), ws)
    command = ("git", "-c", f"http.sslCAInfo={ws}/ca.pem", "clone", "-q",
               "https://web.test:9443/repo.git", "copy")
    ward = lambda *args, **options: world.ward(*args, timeout=100, **options)
    _, _, r = learn(t, "--", *command, cwd=ws, ward=ward, rc=1)
    t.contains(r.err, "web.test: not in the allow-list")
    for flags in (["--allow", "web.test"], ["--allow-public"]):
        path, text, _ = learn(t, *flags, "--", *command, cwd=ws, ward=ward)
        t.contains(text, 'egress_allowlist:\n    - "web.test:9443"\n', flags)
        t.check("open" not in text and "host_mounts" not in text, text)
    r = world.ward("run", "-p", path, "--", *command, cwd=ws)
    t.equal((r.rc, t.read(ws, "copy/README")), (0, "GOOD-ANSWER\n"), r.err)
    shutil.rmtree(os.path.join(ws, "copy"))


@timeout(120)
def test_private_names(t):
    """Never unasked; with a rule of the user's own that says so."""
    world = World(t)
    ws = t.workspace({"get.py": "import socket, sys\ns = socket.create_connection((sys.argv[1], "
                      "int(sys.argv[2])), 5)\ns.sendall(b'SIZE 5\\n')\nassert s.recv(5)\n"})
    command = lambda host: ("/usr/bin/python3", "-B", "get.py", host, "5432")
    for flags, host in ((["--allow-public"], "private.test"),
                        (["--allow", "private.test"], "private.test"),
                        (["--allow-public"], "metadata.test"),
                        (["--allow", "loop.test:5432"], "loop.test"),
                        (["--allow-public"], "home.test")):
        _, _, r = learn(t, *flags, "--", *command(host), cwd=ws, ward=world.ward, rc=1)
        t.contains(r.err, "requested, not granted: " + host)
    rule = "{host: private.test, ports: [5432], mode: tcp, private: true}"
    path, text, _ = learn(t, "--allow", rule, "--allow", "other.test", "--",
                          *command("private.test"), cwd=ws, ward=world.ward)
    t.contains(text, f"egress_allowlist:\n    - {rule}\n")
    t.check("other.test" not in text, "a rule that was not used")
    t.equal(world.ward("run", "-p", path, "--", *command("private.test"), cwd=ws).rc, 0)
    path, text, _ = learn(t, "--allow", "db.test", "--", *command("db.test"), cwd=ws,
                          ward=world.ward)
    t.contains(text, '- "db.test:5432"')


def test_asks_on_a_terminal(t):
    world = World(t)
    ws = t.workspace({"get.py": "import socket\ns = socket.create_connection(('web.test', 80), 5)\n"
                      "s.sendall(b'GET / HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n')\n"
                      "assert s.recv(9)\n"})
    path = os.path.join(t.fresh_dir("learned"), "p.yaml")
    argv = t.ward_argv("learn", "-o", path, "--", "/usr/bin/python3", "-B", "get.py",
                       wrap=world.wrap(ws))
    r = t.tty(*argv, input=b"y\n", after=b"[y/N]", cwd=ws, root=True, timeout=60)
    t.equal(r.rc, 0, r.out)
    t.contains(t.read(path), '- "web.test:80"')
    r = t.tty(*t.ward_argv("learn", "--", "/usr/bin/python3", "-B", "get.py", wrap=world.wrap(ws)),
              input=b"n\n", after=b"[y/N]", cwd=ws, root=True, timeout=60)
    t.check(r.rc == 1 and r.out.count("[y/N]") == 1, r.out)


@slow
@timeout(240)
def test_npm_test(t):
    npm, = need(t, "npm")
    home, env = person(t)
    ws = t.workspace({"package.json": json.dumps({"name": "small", "version": "1.0.0",
                                                  "scripts": {"test": "node --test"}}),
                      "add.js": "module.exports = (a, b) => a + b;\n",
                      "add.test.js": "const test = require('node:test'); const assert = "
                      "require('node:assert');\ntest('adds', () => "
                      "assert.equal(require('./add')(1, 2), 3));\n"})
    path, text, _ = learn(t, "--", "npm", "test", cwd=ws, env=env, timeout=200)
    t.check("host_mounts" not in text and "network" not in text, text)
    r = t.ward("run", "-p", path, "--", "npm", "test", cwd=ws, env=env, timeout=60)
    t.check(r.rc == 0 and "pass 1" in r.out, r.out + r.err)


@slow
@timeout(240)
def test_psql(t):
    """A PostgreSQL client: host and port of the server, nothing of ~/.pgpass and its like."""
    base = "/usr/lib/postgresql"
    versions = sorted(os.listdir(base)) if os.path.isdir(base) else []
    if not versions or not shutil.which("psql", path=SBIN):
        t.skip("there is no PostgreSQL here")
    world = World(t)
    data = os.path.join(world.dir, "data")
    with t.root():
        os.mkdir(data)
        os.chown(data, 65534, 65534)
        os.chmod(world.dir, 0o755)
    programs = os.path.join(base, versions[-1], "bin")
    as_nobody = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    t.run(*as_nobody, f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "agent", "-N",
          root=True, check=True, timeout=60)
    with t.root():
        with open(os.path.join(data, "pg_hba.conf"), "a") as f:
            f.write("host all all all trust\n")
    serve(t, world, [f"{programs}/postgres", "-D", data, "-c", "listen_addresses=*", "-p", "5433",
                     "-k", data], 5433, root=False)
    home, env = person(t)
    t.write(home, {".pgpass": "db.test:5433:*:agent:PASSWORD-MARKER\n", ".psqlrc": "\\set x 1\n"})
    os.chmod(os.path.join(home, ".pgpass"), stat.S_IRUSR)
    command = ("psql", "-h", "db.test", "-p", "5433", "-U", "agent", "-d", "postgres", "-Atc",
               "select 'GOOD-ANSWER'")
    ws = t.workspace()
    ward = lambda *args, **options: world.ward(*args, timeout=100, **options)
    path, text, r = learn(t, "--allow", "db.test", "--", *command, cwd=ws, env=env, ward=ward)
    t.contains(text, 'egress_allowlist:\n    - "db.test:5433"\n')
    t.check("pgpass" not in text and "psqlrc" not in text and "host_mounts" not in text, text)
    t.contains(r.err, ".pgpass: it may contain a secret")
    t.equal(world.ward("run", "-p", path, "--", *command, cwd=ws, env=env).out, "GOOD-ANSWER\n")
