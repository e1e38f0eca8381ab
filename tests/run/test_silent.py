"""No silent failure: what a run is refused is said once on standard error, and is in the report and
in ward explain, with the option that allows it first. Real clients without a network: nothing
leaves the sandbox."""
import concurrent.futures
import json
import os
import re
import socket

SHELL = ("/bin/sh", "-c")
PACKAGE = '{"name": "x", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}\n'
PIDS = "version: 1\nresources: {pids_limit: 77}\n"


def plan_of(t, directory):
    return json.loads(t.ward("plan", "--json", cwd=directory).out)


def python(code):
    return ("python3", "-c", code)


def said(r):
    """The lines that ward itself wrote."""
    return [line for line in r.err.splitlines() if line.startswith("ward:")]


def denials(t, ws):
    return json.loads(t.ward("explain", "--json", cwd=ws).out)["denials"]


def need(t, *programs):
    for name in programs:
        if not os.path.exists(f"/usr/bin/{name}"):
            t.skip(f"{name} is not installed")


def check_host(t, r, ws, host, option=None):
    option = option or f"--allow {host}"
    t.check(r.rc != 0, r)
    lines = [line for line in said(r) if option in line]
    t.equal(len(lines), 1, r.err)
    # the option comes first
    t.check(lines[0].index(option) < lines[0].index("network.egress_allowlist"), lines[0])
    found = [d for d in denials(t, ws) if host in d["what"]]
    t.equal([d["option"] for d in found], [option], found)
    t.contains(found[0]["yaml"], "egress_allowlist")


def test_names_without_a_network(t):
    """Every client: the name is refused at once, and the option that ward prints opens it."""
    ws = t.workspace({"package.json": PACKAGE})
    commands = {"curl": ("curl", "-sS", "https://curl.invalid/"),
                "git": ("git", "clone", "https://git.invalid/a/b"),
                "python3": python("import socket; socket.getaddrinfo('python3.invalid', 443)"),
                "getent": ("getent", "hosts", "getent.invalid")}
    for name, argv in commands.items():
        need(t, name)
        r = t.ward("run", "--", *argv, cwd=ws)
        check_host(t, r, ws, f"{name}.invalid")
        t.check(r.seconds < 15, f"{name} took {r.seconds} s")


def test_npm_gives_up(t):
    """npm retries a failed lookup for 70 seconds by itself."""
    need(t, "npm")
    ws = t.workspace({"package.json": PACKAGE})
    r = t.ward("run", "--env", "npm_config_registry=https://npm.invalid/", "--", "npm", "install",
               "--no-audit", cwd=ws, timeout=60)
    check_host(t, r, ws, "npm.invalid")
    t.check(r.seconds < 40, r.seconds)


def test_pip_gives_up(t):
    ws = t.workspace()
    r = t.run("/usr/bin/python3", "-m", "pip", "--version")
    if r.rc != 0:
        t.skip("pip is not installed")
    r = t.ward("run", "--", "/usr/bin/python3", "-m", "pip", "download", "--no-deps",
               "--index-url", "https://pip.invalid/simple", "sampleproject", cwd=ws, timeout=60)
    check_host(t, r, ws, "pip.invalid")


def test_connects_without_a_network(t):
    ws = t.workspace()
    code = "import socket; socket.create_connection(('%s', %d), 5)"
    r = t.ward("run", "--", "python3", "-c", code % ("192.0.2.7", 8443), cwd=ws)
    check_host(t, r, ws, "192.0.2.7:8443")
    r = t.ward("run", "--", "python3", "-c", code % ("2001:db8::7", 443), cwd=ws)
    t.check(r.rc != 0, r)
    t.contains(r.err, "remedy: --add network.egress_allowlist='[\"[2001:db8::7]:443\"]'")
    # what stays inside is nobody's business
    r = t.ward("run", "--", "python3", "-c", """
import socket, threading
s = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=s.accept, daemon=True).start()
socket.create_connection(s.getsockname()).close()
socket.getaddrinfo("localhost", 80)
try: socket.create_connection(("127.0.0.1", 1))
except ConnectionRefusedError: pass
""", cwd=ws)
    t.equal((r.rc, r.err), (0, ""))


def test_many_names_are_bounded(t):
    ws = t.workspace()
    r = t.ward("run", "--", "python3", "-c", """
import socket
for i in range(300):
    try: socket.getaddrinfo(f"host{i}.invalid", 80)
    except OSError: pass
raise SystemExit(3)
""", cwd=ws, timeout=60)
    t.equal(r.rc, 3, r.err)
    t.check(2 < len(said(r)) <= 13, r.err)
    t.contains(said(r)[-1], "more, see ward explain")


def test_services_of_the_host(t):
    """A port that only the host serves, and a Unix socket that only the host has."""
    ws = t.workspace()
    server = socket.create_server(("127.0.0.1", 0))
    t.defer(server.close)
    port = server.getsockname()[1]
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    r = t.ward("run", "--", *python(code), cwd=ws)
    t.check(r.rc != 0, r)
    t.contains(r.err, f"--service svc{port}=127.0.0.1:{port}")
    d = t.fresh_dir("sockets")
    path = os.path.join(d, "s")
    unix = socket.socket(socket.AF_UNIX)
    t.defer(unix.close)
    unix.bind(path)
    unix.listen()
    r = t.ward("run", "--",
               *python(f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"), cwd=ws)
    t.check(r.rc != 0, r)
    t.contains(r.err, f"connection to {path}")
    t.equal([x["what"] for x in denials(t, ws)], [f"connection to {path}"])


def test_report_has_the_option(t):
    ws = t.workspace()
    r = t.ward("run", "--", "getent", "hosts", "a.invalid", cwd=ws, report=True)
    d = r.report["denials"]
    line = 'network.egress_allowlist: ["a.invalid"]'
    t.equal([(x["what"], x["option"], x["remedy"]) for x in d],
            [("name a.invalid", "--allow a.invalid", line)], d)


def test_with_a_policy_file_the_option_widens(t):
    """Options only narrow a policy file: the one that is printed works as it stands."""
    ws = t.workspace({"ward.yaml": "version: 1\n"})
    r = t.ward("run", "--", "getent", "hosts", "a.invalid", cwd=ws)
    t.contains(r.err, "--allow a.invalid --widen")
    r = t.ward("plan", "--allow", "a.invalid", "--widen", "--", "true", cwd=ws)
    t.equal(r.rc, 0, r.err)


def test_quiet_and_success(t):
    ws = t.workspace()
    script = "getent hosts a.invalid; getent hosts b.invalid; exit %d"
    r = t.ward("run", "--quiet", "--", *SHELL, script % 3, cwd=ws)
    t.equal((r.rc, r.err), (3, ""))
    r = t.ward("run", "--", *SHELL, script % 0, cwd=ws)
    t.equal((r.rc, len(said(r))), (0, 1), r.err)	# one line for all
    t.contains(r.err, "--allow a.invalid")
    t.contains(r.err, "--allow b.invalid")
    t.equal(t.ward("run", "--", "true", cwd=ws).err, "")
    r = t.ward("run", "--", *SHELL, script % 3, cwd=ws)
    t.equal(len(said(r)), 2, r.err)
    r = t.ward_tty("run", "--", "true", cwd=ws)
    t.equal(len([line for line in r.out.splitlines() if line.strip()]), 1, r.out)


def test_programs_of_the_host(t):
    """A program that only the host has: as the command, and called by a script, also npm's."""
    ws = t.workspace({"build.sh": "#!/bin/sh\nset -e\nonly-here --version\n",
                      "package.json": '{"scripts": {"build": "only-here x"}}\n'})
    os.chmod(os.path.join(ws, "build.sh"), 0o755)
    tools = t.fresh_dir("tools")
    t.write(tools, {"only-here": "#!/bin/sh\necho it runs\n"})
    os.chmod(os.path.join(tools, "only-here"), 0o755)
    env = {"PATH": tools + ":" + os.environ["PATH"]}
    for argv in (("only-here",), (*SHELL, "only-here a b"), ("./build.sh",), ("sh", "build.sh"),
                 ("npm", "run", "build")):
        if argv[0] == "npm" and not os.path.exists("/usr/bin/npm"):
            continue
        r = t.ward("run", "--", *argv, cwd=ws, env=env, timeout=60)
        t.equal(r.rc, 127, (argv, r))
        t.contains(r.err, f"--ro {tools}", argv)
        t.check(denials(t, ws), argv)
    r = t.ward("run", "--ro", tools, "--", "./build.sh", cwd=ws, env=env)
    t.equal((r.rc, r.out), (0, "it runs\n"), r.err)
    r = t.ward("run", "--", *SHELL, "nobody-has-this", cwd=ws)
    t.check(r.rc == 127 and "is not on your PATH either" in r.err, r)


def test_failed_lookups_are_no_programs(t):
    ws = t.workspace()
    code = ("import subprocess; subprocess.run(['true'], "
            "env={'PATH': '/nowhere:/usr/local/nothing:/usr/bin:/bin'})")
    r = t.ward("run", "--set", "audit.level=exec", "--env", "PATH=/nowhere:/usr/bin:/bin", "--",
               *python(code), cwd=ws)
    t.equal(r.rc, 0, r.err)
    events = map(json.loads, t.ward("audit", "show", "--json", cwd=ws).out.splitlines())
    started = [e["object"] for e in events if e["kind"] == "exec.start"]
    t.check(started and not any("/nowhere" in s or "/nothing" in s for s in started), started)
    t.check(any(s.endswith("/true") for s in started), started)


def test_the_projects_policy_counts_below_it(t):
    """As git finds its root: the workspace is the project, the directory stays."""
    ws = t.workspace({"ward.yaml": PIDS, "a/b/file": "x\n", "top": "y\n"})
    below = os.path.join(ws, "a/b")
    plan = plan_of(t, below)
    t.equal((plan["workspace"], plan["cwd"], plan["limits"]["pids"]["value"]),
            (os.path.realpath(ws), os.path.realpath(below), 77))
    r = t.ward("run", "--", *SHELL, "pwd; cat ../../top", cwd=below)
    t.equal((r.rc, r.out), (0, f"{os.path.realpath(below)}\ny\n"), r.err)
    t.equal(t.ward("policy", "add", "--yes", "process.env", "LANG=C", cwd=below).rc, 0)
    t.equal(t.read(below, "ward.yaml"), None)
    t.contains(t.read(ws, "ward.yaml"), "LANG=C")
    # and what looks back finds the run from there, and the policy that it had
    for verb in (("explain",), ("audit", "show"), ("check", "--replay")):
        r = t.ward(*verb, cwd=below)
        t.equal(r.rc, 0, (verb, r))
    # a policy of its own takes the place of that one, and ward init says so
    r = t.ward("init", "--yes", cwd=below)
    t.contains(r.out, f"note: {os.path.realpath(ws)} has a policy")
    os.remove(os.path.join(below, "ward.yaml"))
    # not beyond a repository, and an untrusted policy that widens is refused, as ever
    os.mkdir(os.path.join(ws, "a/.git"))
    t.equal(plan_of(t, below)["workspace"], os.path.realpath(below))
    os.rmdir(os.path.join(ws, "a/.git"))
    t.write(ws, {"ward.yaml": "version: 1\nnetwork: {mode: open}\n"})
    r = t.ward("run", "--", "true", cwd=below)
    t.check(r.rc == 125 and "ward trust" in r.err, r)


def test_a_policy_of_others_does_not_count(t):
    ws = t.workspace({"ward.yaml": PIDS, "a/file": "x\n"})
    below = os.path.join(ws, "a")
    for path, mode, back in ((ws, 0o777, 0o755), (os.path.join(ws, "ward.yaml"), 0o666, 0o644)):
        os.chmod(path, mode)
        r = t.ward("run", "--", *SHELL, "ls ..", cwd=below)
        t.contains(r.err, "ward.yaml is not used", path)
        t.contains(r.err, "-p", path)
        t.equal(plan_of(t, below)["workspace"], os.path.realpath(below))
        os.chmod(path, back)
    t.equal(plan_of(t, below)["workspace"], os.path.realpath(ws))
    os.rename(os.path.join(ws, "ward.yaml"), os.path.join(ws, "real"))
    os.symlink("real", os.path.join(ws, "ward.yaml"))
    t.contains(t.ward("run", "--", "true", cwd=below).err, "is not a regular file")


def test_a_profile_that_a_file_overrides(t):
    ws = t.workspace({"ward.yaml": "version: 1\nnetwork: {mode: none}\n"})
    r = t.ward("run", "--profile", "claude", "--", "true", cwd=ws)
    t.equal(r.rc, 0, r.err)
    lines = [line for line in said(r) if "profile claude" in line]
    t.check(len(lines) == 1 and "network.mode" in lines[0] and "no network" in lines[0], r.err)
    t.equal(t.ward("run", "--quiet", "--profile", "claude", "--", "true", cwd=ws).err, "")
    t.write(ws, {"ward.yaml": "version: 1\n"})
    t.equal(t.ward("run", "--profile", "claude", "--", "true", cwd=ws).err, "")


def test_env_file_that_could_be_read(t):
    ws = t.workspace({".env": "KEY=1\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.check(len(said(r)) == 1 and "--hide .env" in r.err and "filesystem.hide" in r.err, r.err)
    t.equal(t.ward("run", "--set", "filesystem.hide=[.env]", "--", "true", cwd=ws).err, "")
    t.write(ws, {".env": ""})
    t.equal(t.ward("run", "--", "true", cwd=ws).err, "")


def test_limits_under_watch(t):
    """The line names the limit, what holds it, and an option that can be pasted."""
    ws = t.workspace()
    r = t.ward("run", "--timeout", "0.5", "--", "sleep", "5", cwd=ws)
    t.check(r.rc == 124 and "remedy: --timeout 1\n" in r.err, r)
    script = "head -c 30000000 /dev/zero > big; sleep 2"
    r = t.ward("run", "--disk", "4Mi", "--", *SHELL, script, cwd=ws)
    # the watch ends it, or the kernel cuts the file at the limit
    t.check(r.rc in (0, 137) and re.search(r"remedy: --disk 8Mi", r.err), r)


def test_plan_is_short(t):
    ws = t.workspace()
    r = t.ward("plan", "--allow", "a.example", "--", "make", "test", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.check(len(r.out.splitlines()) <= 16 and "\nstages\n" not in r.out, r.out)
    for part in ("command    make test", "network    only a.example", "limits ", "weaker ",
                 "network.mode", "--full"):
        t.contains(r.out, part)
    r = t.ward("plan", "--", "true", cwd=ws)
    t.contains(r.out, "nothing is weaker than the defaults")
    t.contains(t.ward("plan", "--full", "--", "true", cwd=ws).out, "\nstages\n")


def test_doctor_has_a_verdict(t):
    last = t.ward("doctor").out.rstrip().split("\n\n")[-1].splitlines()
    t.check(last[0].startswith("verdict: "), last)
    t.check(any(line.startswith("next:    ") for line in last), last)
    found = json.loads(t.ward("doctor", "--json").out)
    t.check(found["verdict"] and "next" in found, found)


def test_replay_is_about_this_workspace(t):
    """And a policy loses nothing of its own run: programs, files, a limit that ended it."""
    text = "version: 1\nresources: {timeout_seconds: 1}\naudit: {level: full}\n"
    ws, other = t.workspace({"ward.yaml": text}), t.workspace({"ward.yaml": text})
    t.equal(t.ward("trust", cwd=ws).rc, 0)
    code = "import subprocess; subprocess.run([\"true\"])"
    script = (f"mkdir -p d; echo x > d/f; mv d/f g; rm -r d; python3 -c '{code}'; "
              "getent hosts a.invalid; exit 0")
    t.ward("run", "--", *SHELL, script, cwd=ws)
    t.equal(t.ward("run", "--", "sleep", "5", cwd=ws).rc, 124)
    t.equal(t.ward("run", "--", "true", cwd=other).rc, 0)
    found = json.loads(t.ward("check", "--replay", "--json", cwd=ws).out)
    t.equal((found["runs"], found["lost"]), (2, []), found)
    t.equal(json.loads(t.ward("check", "--replay", "--json", "--all", cwd=ws).out)["runs"], 3)
    empty = t.workspace({"ward.yaml": "version: 1\n"})
    t.contains(t.ward("check", "--replay", cwd=empty).out, "no run of this workspace")


def test_the_words_of_a_failed_command(t):
    """Files are not watched in an ordinary run: what the command names leads to the next step."""
    ws, other = t.workspace(), t.fresh_dir("other")
    t.write(other, {"table.csv": "1\n", ".ssh/id_ed25519": "KEY\n"})
    wanted = os.path.join(other, "table.csv")
    for argv in (("cat", wanted), (*SHELL, f"cat < {wanted}")):
        r = t.ward("run", "--", *argv, cwd=ws)
        t.check(r.rc != 0, r)
        t.contains(r.err, f"remedy: --ro {wanted} (policy: ")
    t.equal(t.ward("run", "--ro", wanted, "--", "cat", wanted, cwd=ws).rc, 0)
    r = t.ward("run", "--", "cat", os.path.join(other, ".ssh/id_ed25519"), cwd=ws)
    t.contains(r.err, "may contain credentials")
    t.check(f"--ro {other}" not in r.err, r.err)
    r = t.ward("run", "--", "touch", "/etc/motd", cwd=ws)
    t.contains(r.err, "writing /etc/motd: it cannot be written inside")
    for argv in (("systemctl", "start", "x"), (*SHELL, "cd /; crontab -l"), ("apt-get", "update")):
        r = t.ward("run", "--", *argv, cwd=ws)
        t.check(r.rc == 0 or any("outside" in x or "host" in x for x in said(r)), (argv, r))
    r = t.ward("run", "--", "cat", "/nonexistent/file", cwd=ws)
    t.equal((r.rc, said(r)), (1, []))


def test_work_that_fails_names_hints(t):
    """A file that is missing deep inside a build: the first run names --hints, which names it. A
    command that answers at once gets no line."""
    d = t.fresh_dir("outside")
    path = os.path.join(d, "data")
    with open(path, "w") as f:
        f.write("x")
    ws = t.workspace({"build.sh": f"sleep 2.2\n{{ read x < {path}; }} 2>/dev/null || exit 5\n"})
    cases = (("--", "sh", "build.sh"), ("--hints", "--", "sh", "build.sh"),
             ("--quiet", "--", "sh", "-c", "sleep 2.2; exit 5"), ("--", "sh", "-c", "exit 5"),
             ("--", "sh", "-c", "sleep 2.2"))
    with concurrent.futures.ThreadPoolExecutor() as pool:	# they wait, not compute
        first, hints, quiet, at_once, fine = pool.map(
            lambda words: t.ward("run", *words, cwd=ws), cases)
    t.equal(first.rc, 5, first.err)
    lines = [line for line in said(first) if "remedy: --hints;" in line]
    t.equal(len(lines), 1, first.err)
    t.contains(hints.err, path)
    t.check("remedy: --hints" not in hints.err, hints.err)
    for r, rc in ((quiet, 5), (at_once, 5), (fine, 0)):
        t.equal((r.rc, r.err), (rc, ""))


def test_where_libraries_are_is_inside(t):
    """dpkg-shlibdeps and others read the configuration of the dynamic linker."""
    ws = t.workspace()
    for name in ("ld.so.conf", "ld.so.conf.d", "dpkg"):
        if not os.path.exists(f"/etc/{name}"):
            continue
        r = t.ward("run", "--", "ls", f"/etc/{name}", cwd=ws)
        t.equal((r.rc, r.err), (0, ""))
        r = t.ward("run", "--", *SHELL, f"echo x >>/etc/{name} || touch /etc/{name}/x", cwd=ws)
        t.check(r.rc != 0, r)


def test_check_and_trust_find_the_project(t):
    """As ward run does: the policy of a directory above, and a line about one that does not
    count."""
    ws = t.workspace({"ward.yaml": "version: 1\nresources: {pids_limit: 5000}\n", "a/b/x": ""})
    deep = os.path.join(ws, "a/b")
    r = t.ward("check", cwd=deep)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, os.path.join(ws, "ward.yaml") + ": valid")
    r = t.ward("run", "--", "true", cwd=deep)
    t.check(r.rc == 125, r)
    r = t.ward("trust", "--yes", cwd=deep)
    t.equal(r.rc, 0, r.err)
    r = t.ward("run", "--", "true", cwd=deep)
    t.equal(r.rc, 0, r.err)
    r = t.ward("check", cwd=ws)
    t.equal((r.rc, r.out.splitlines()[-1]), (0, "ward.yaml: valid"), r.err)
    os.chmod(os.path.join(ws, "ward.yaml"), 0o666)
    r = t.ward("check", cwd=deep)
    t.equal(r.rc, 125, r)
    t.contains(r.err, "is not used: another user could have written it")
    r = t.ward("trust", "--yes", cwd=deep)
    t.equal(r.rc, 125, r)
