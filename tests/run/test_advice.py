"""Advice never widens more than what was refused: every printed remedy is applied as it stands;
what was refused works then, its neighbours do not, and what worked before still does."""
import json
import os
import shlex

from harness import by_turns, native_only, timeout
from harness.world import HERE, PRIVATE, TRY, WEB, World, need, policy, serve, trusted_world

# [host, head, body in hex] each: prints the status, or what broke
CLIENT = r"""
import http.client, json, socket, ssl
context = ssl.create_default_context()
for host, head, body in json.load(open("requests.json")):
    try:
        s = context.wrap_socket(socket.create_connection((host, 443), 20), server_hostname=host)
        s.settimeout(20)
        s.sendall(head.encode() + bytes.fromhex(body))
        r = http.client.HTTPResponse(s)
        r.begin()
        r.read()
        print(r.status, flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


def ask(method, path, host="web.test", body=None, **fields):
    data = json.dumps(body).encode() if body is not None else b""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    lines += ["Content-Type: application/json"] if body is not None else []
    return [host, "\r\n".join(lines) + "\r\n\r\n", data.hex()]


def send(t, world, path, requests):
    """The statuses of requests under the policy at path, and the report."""
    ws = t.workspace({"client.py": CLIENT, "requests.json": json.dumps(requests)})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", cwd=ws, report=True,
                   timeout=60)
    t.equal(r.rc, 0, r.err)
    return r.out.split(), r.report, ws


def offered(t, ws):
    """The ready commands that ward explain has for the last run in ws."""
    r = t.ward("explain", "--json", cwd=ws)
    t.equal(r.rc, 0, r.err)
    return [d["command"] for d in json.loads(r.out)["denials"]]


def take(t, ws, command):
    """Runs a command that was offered, as a shell would."""
    words = shlex.split(command)
    t.equal(words[:3], ["ward", "policy", "add"], command)
    r = t.ward(*words[1:], "--yes", cwd=ws)
    t.equal(r.rc, 0, command + r.err)


def query(text):
    return {"query": text}


def call(method, **more):
    return {"jsonrpc": "2.0", "id": 1, "method": method, **more}


def tool(name):
    return call("tools/call", params={"name": name, "arguments": {}})


PASSED = {"200", "501"}	# the server's own words
OPEN = {"host": "web.test", "methods": ["GET"], "paths": ["/open/*"]}
GET_OPEN = ask("GET", "/open/z")
# name: rules, what is refused, its neighbours, what works before and after
REQUESTS = {
    "method": ([OPEN], ask("POST", "/open/x"), [ask("POST", "/open/y"), ask("PUT", "/open/x"),
                                                ask("POST", "/other"), ask("DELETE", "/open/x")],
               [GET_OPEN]),
    "method without paths": ([{"host": "web.test", "methods": ["GET"]}], ask("POST", "/a"),
                             [ask("POST", "/b"), ask("POST", "/a/b"), ask("PUT", "/a")],
                             [ask("GET", "/b")]),
    "path": ([OPEN], ask("GET", "/secret/a"), [ask("GET", "/secret/b"), ask("GET", "/secret/a/b"),
                                               ask("GET", "/secret"), ask("POST", "/secret/a"),
                                               ask("GET", "/secret/a%2Fb")], [GET_OPEN]),
    "path with dots": ([OPEN], ask("GET", "/secret/./x/../a"),
                       [ask("GET", "/secret/x"), ask("GET", "/secret/x/a")],
                       [ask("GET", "/open/../open/q")]),
    "path without methods": ([{"host": "web.test", "paths": ["/open/*"]}], ask("PUT", "/secret/a"),
                             [ask("DELETE", "/secret/a"), ask("PUT", "/secret/b")],
                             [ask("DELETE", "/open/a")]),
    "star": ([OPEN], ask("GET", "/repos/*"), [ask("GET", "/repos/x"), ask("GET", "/repos/"),
                                              ask("GET", "/repos/*/x"), ask("GET", "/repos/%2A")],
             [GET_OPEN]),
    "two stars": ([OPEN], ask("GET", "/*/x*"),
                  [ask("GET", "/a/x"), ask("GET", "/*/xy"), ask("GET", "/open*/x*")], [GET_OPEN]),
    "shell and yaml": ([OPEN], ask("GET", "/a'$(id)&b:,!x"),
                       [ask("GET", "/a'$(id)&b:,!y"), ask("GET", "/a")], [GET_OPEN]),
    "headers and query": ([{**OPEN, "headers": ["X-Team: red"], "query": ["page"]}],
                          ask("POST", "/open/x?page=1", x_team="red"),
                          [ask("POST", "/open/x?page=1"),
                           ask("POST", "/open/x?page=1", x_team="blue"),
                           ask("POST", "/open/x?all=1", x_team="red"),
                           ask("POST", "/open/y", x_team="red")],
                          [ask("GET", "/open/x?page=2", x_team="red")]),
    "size": ([{**OPEN, "request_limit": 40}], ask("POST", "/open/x", body={"a": 1}),
             [ask("POST", "/open/x", body={"a": "x" * 100}), ask("POST", "/open/y", body={"a": 1})],
             [GET_OPEN]),
    "type": ([{**OPEN, "content_types": ["application/json"]}], ask("POST", "/open/x", body=1),
             [["web.test",
               ask("POST", "/open/x", body=1)[1].replace("application/json", "text/xml"), "31"]],
             [GET_OPEN]),
    "suffix": ([{"host": "*.web.test", "methods": ["GET"]},
                {"host": "*.web.test", "methods": ["PUT"], "paths": ["/p"]}],
               ask("POST", "/x", host="www.web.test"),
               [ask("POST", "/x", host="api.web.test"), ask("POST", "/y", host="www.web.test"),
                ask("PUT", "/x", host="www.web.test")],
               [ask("GET", "/y", host="www.web.test"), ask("PUT", "/p", host="www.web.test")]),
    "graphql": ([{"host": "web.test", "paths": ["/g", "/h"], "graphql": ["query:viewer"]}],
                ask("POST", "/g", body=query("{ viewer { a } repos { b } }")),
                [ask("POST", "/g", body=query("{ deleteAll }")),
                 ask("POST", "/g", body=query("mutation { repos }")),
                 ask("POST", "/h", body=query("{ repos { b } }"))],
                [ask("POST", "/h", body=query("{ viewer { a } }"))]),
    "json_rpc": ([{"host": "web.test", "json_rpc": ["initialize", "tools/call:read_*"]}],
                 ask("POST", "/mcp", body=tool("*")),
                 [ask("POST", "/mcp", body=tool("x")), ask("POST", "/mcp", body=tool("**")),
                  ask("POST", "/mcp", body=call("shutdown")),
                  ask("POST", "/other", body=tool("*"))],
                 [ask("POST", "/other", body=tool("read_x"))]),
}


@by_turns
@native_only("the same advice, request after request; the parsers have unit tests")
@timeout(240)
def test_requests(t):
    world = trusted_world(t, names={"api.web.test": [WEB]})
    for name, (rules, refused, neighbours, working) in REQUESTS.items():
        path = policy(t, rules)
        got, report, ws = send(t, world, path, [refused, *working])
        t.check(got[0] == "403" and set(got[1:]) <= PASSED, f"{name}: {got}")
        remedy = report["denials"][0]["remedy"]
        t.check(remedy.startswith("network.egress_allowlist: [{"), f"{name}: {remedy}")
        commands = offered(t, ws)
        t.equal(len(commands), 1, name)
        take(t, ws, commands[0])
        got, report, _ = send(t, world, path, [refused, *working, *neighbours])
        t.check(set(got[:1 + len(working)]) <= PASSED, f"{name}: {got}, with {remedy}")
        for neighbour, status in zip(neighbours, got[1 + len(working):]):
            t.check(status in ("403", "413"),
                    f"{name}: {neighbour[1].splitlines()[0]}: {status}, with {remedy}")


def test_requests_without_a_line(t):
    """What a rule cannot name by its letters, or what would open more, has words and no command."""
    world = trusted_world(t)
    long = "/" + "x" * 400
    for request in (ask("GET", "/a%2Fb"), ask("GET", long), ask("delete", "/open/x"),
                    ask("GET", "/open/x", x_original_url="/secret")):
        _, report, ws = send(t, world, policy(t, [OPEN]), [request])
        t.equal([c for c in offered(t, ws) if c], [], request[1].splitlines()[0][:80])
        t.check(not report["denials"] or not report["denials"][0]["remedy"].startswith("network."),
                report["denials"])
    # a rule's headers are not told inside
    ws = t.workspace({"client.py": CLIENT.replace("r.read()", "print(r.read().decode())"),
                      "requests.json": json.dumps([ask("POST", "/open/x", x_team="red")])})
    r = world.ward("run", "-p", policy(t, [{**OPEN, "headers": ["X-Team: UNMISTAKABLE"]}]), "--",
                   "/usr/bin/python3", "client.py", cwd=ws, timeout=60)
    t.contains(r.out, "refused by ward")
    t.check("UNMISTAKABLE" not in r.out, r.out)


def tries(t, world, path, lines):
    ws = t.workspace({"try.py": TRY})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "try.py", *lines, cwd=ws,
                   timeout=60)
    t.equal(r.rc, 0, r.err)
    return [line.split(" -> ")[1] for line in r.out.splitlines() if " -> " in line], ws


SUFFIX = {"host": "*.test", "ports": [5432]}
# name: rules, what is refused, its neighbours, what works before and after
CONNECTIONS = {
    "another port": (["db.test:5432"], "db.test 22", ["db.test 7", "other.test 22"],
                     ["db.test 5432"]),
    "an address": (["db.test:5432"], f"{WEB} 5432",
                   [f"{WEB} 22", "198.51.100.10 5432", "web.test 5432"], ["db.test 5432"]),
    "a private address": (["db.test:5432"], f"{PRIVATE} 5432",
                          [f"{PRIVATE} 22", "10.99.0.6 5432", "private.test 5432"],
                          ["db.test 5432"]),
    "a private name": ([SUFFIX], "private.test 5432", ["inner.test 5432", "private.test 22",
                                                       f"{PRIVATE} 5432"], ["db.test 5432"]),
    "a port with conditions": ([{"host": "db.test", "ports": [5432], "mode": "tcp",
                                 "connection_limit": 3}], "db.test 22", ["db.test 7"],
                               ["db.test 5432"]),
}


@timeout(120)
def test_connections(t):
    world = World(t, names={"inner.test": [PRIVATE]})
    for name, (rules, refused, neighbours, working) in CONNECTIONS.items():
        path = policy(t, rules)
        got, ws = tries(t, world, path, [refused, *working])
        t.check(not got[0].startswith("got") and all(g.startswith("got") for g in got[1:]),
                f"{name}: {got}")
        commands = [c for c in offered(t, ws) if c]
        t.equal(len(commands), 1, name)
        take(t, ws, commands[0])
        got, _ = tries(t, world, path, [refused, *working, *neighbours])
        t.check(all(g.startswith("got") for g in got[:1 + len(working)]),
                f"{name}: {got}, with {commands}")
        for neighbour, what in zip(neighbours, got[1 + len(working):]):
            t.check(not what.startswith("got"), f"{name}: {neighbour}: {what}, with {commands}")


def test_connections_without_a_line(t):
    """A service that hands out credentials is not offered, and a second rule that would not count
    neither."""
    world = World(t)
    for rules, line, words in ((["db.test:5432"], "169.254.169.254 80", "credentials"),
                               (["metadata.test:5432"], "metadata.test 5432", "credentials"),
                               (["private.test:5432"], "private.test 5432", "private: true"),
                               (["loop.test:5432"], "loop.test 5432", "host_services")):
        got, ws = tries(t, world, policy(t, rules), [line])
        t.check(not got[0].startswith("got"), got)
        denials = json.loads(t.ward("explain", "--json", cwd=ws).out)["denials"]
        t.equal([d["command"] for d in denials], [None] * len(denials), line)
        t.check(any(words in (d["advice"] or "") for d in denials), f"{line}: {denials}")


PUSHES = r"""
export GIT_TERMINAL_PROMPT=0 HOME=$PWD
git config --global user.email a@b.c; git config --global user.name a
git config --global http.sslVerify true
url=https://web.test:9447
git clone -q $url/team/open.git w || exit 3
cd w; git commit -q --allow-empty -m one
say() { name=$1; shift; "$@" >/dev/null 2>&1 && echo "$name yes" || echo "$name no"; }
say agent git push -q origin HEAD:refs/heads/agent/$RANDOM
say REFUSED git push -q origin HEAD:refs/heads/feature
say branch git push -q origin HEAD:refs/heads/feature2
say below git push -q origin HEAD:refs/heads/feature/x
say delete git push -q origin :refs/heads/feature
git commit -q --amend --allow-empty -m two
say force git push -q -f origin HEAD:refs/heads/feature
say tag git push -q origin HEAD:refs/tags/feature
say repository git push -q $url/team/free.git HEAD:refs/heads/feature
say other git clone -q $url/team/free.git ../other
"""


@timeout(120)
def test_pushes(t):
    """A ref that may not be pushed: the rule names this ref of this repository, and gives no
    force."""
    git, = need(t, "git")
    world = trusted_world(t)
    repo = t.git_repo({"README": "over HTTPS\n"})
    for name in ("team/open.git", "team/free.git"):
        os.makedirs(os.path.dirname(os.path.join(world.dir, name)), exist_ok=True)
        t.run(git, "clone", "-q", "--bare", repo, os.path.join(world.dir, name), check=True)
    serve(t, world, ["/usr/bin/python3", os.path.join(HERE, "git_server.py"), world.certificates,
                     "9447", world.dir], 9447)
    rule = {"host": "web.test", "ports": [9447], "git": ["fetch", "push"],
            "repositories": ["/team/o*"], "refs": ["refs/heads/agent/*"]}
    path = policy(t, [rule])
    first = PUSHES.split("say branch")[0]
    for script, wanted in ((first, {"agent": "yes", "REFUSED": "no"}),
                           (PUSHES, {"agent": "yes", "REFUSED": "yes", "branch": "no",
                                     "below": "no", "delete": "no", "force": "no", "tag": "no",
                                     "repository": "no", "other": "no"})):
        ws = t.workspace()
        r = world.ward("run", "-p", path, "--", "/bin/bash", "-c", script, cwd=ws, report=True,
                       timeout=100)
        t.equal(dict(line.split() for line in r.out.splitlines()), wanted, r.err)
        if script == first:
            commands = [c for c in offered(t, ws) if c and "egress_allowlist" in c]
            t.equal(len(commands), 1, str(r.report["denials"]))
            take(t, ws, commands[0])


def test_planted_names(t):
    """What is taken out of the protected names is this file of this directory."""
    plant = ("mkdir -p sub/deep; for f in .envrc sub/.envrc sub/deep/.envrc .bashrc; do echo x > "
             "$f; done")
    for wanted in (".envrc", "sub/.envrc"):
        ws = t.workspace({"ward.yaml": "version: 1\n"})
        t.equal(t.ward("run", "--", "/bin/sh", "-c", plant, cwd=ws).rc, 0)
        denials = json.loads(t.ward("explain", "--json", cwd=ws).out)["denials"]
        take(t, ws, next(d["command"] for d in denials if d["what"].endswith("/" + wanted)
                         and d["what"].endswith(os.path.join(ws, wanted))
                         or d["what"] == f"leaving {wanted}"))
        t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
        t.equal(t.ward("run", "--", "/bin/sh", "-c", plant, cwd=ws).rc, 0)
        left = [f for f in (".envrc", "sub/.envrc", "sub/deep/.envrc", ".bashrc")
                if os.path.exists(os.path.join(ws, f))]
        t.equal(left, [wanted])


SECRETS = (".ssh/id_ed25519", ".ssh/config", ".aws/credentials", ".config/gh/hosts.yml", ".npmrc",
           ".docker/config.json", ".kube/config", ".gnupg/x", ".netrc", ".pypirc",
           ".m2/settings.xml", ".gradle/gradle.properties", ".cargo/credentials.toml",
           ".mozilla/firefox/p/logins.json", ".config/google-chrome/Default/Cookies",
           ".git-credentials",
           ".claude/.credentials.json", ".codex/auth.json", ".config/gcloud/x", ".bash_history",
           ".local/share/keyrings/login.keyring", ".terraform.d/credentials.tfrc.json",
           ".config/rclone/rclone.conf", ".password-store/a.gpg", ".vault-token", "work/.env",
           "work/server.key")
BROAD = (".cargo", ".m2", ".gradle", ".config", ".local/share", ".ssh", ".aws", "work", ".",
         ".docker", ".kube")


def home_with(t, *more):
    home = t.fresh_dir("home")
    t.write(home, {name: "SECRET\n" for name in SECRETS})
    t.write(home, {"data/x.csv": "1,2\n", "data/y.csv": "3,4\n",
                   **{name: "#!/bin/sh\necho TOOL RAN\n" for name in more}})
    for name in more:
        os.chmod(os.path.join(home, name), 0o755)
    return home


@timeout(120)
def test_no_credentials_are_offered(t):
    """A sandbox that looks for files of the home gets the harmless one offered, and nothing that
    holds a secret, by no way."""
    home = home_with(t)
    os.symlink(".ssh/id_ed25519", os.path.join(home, "innocent.txt"))
    os.symlink("../.aws", os.path.join(home, "data/link"))
    ws = t.workspace()
    names = [*SECRETS, *BROAD, "innocent.txt", "data/link", "data/link/credentials",
             "data/../.ssh/config", "data/x.csv"]
    script = "".join(f"cat {shlex.quote(os.path.join(home, name))}; ls "
                     f"{shlex.quote(os.path.join(home, name))}; " for name in names) + "exit 1"
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c", script, cwd=ws, env={"HOME": home})
    t.equal(r.rc, 1, r.err)
    shown = t.ward("explain", "--json", cwd=ws, env={"HOME": home})
    commands = [d["command"] for d in json.loads(shown.out)["denials"] if d["command"]
                and home in d["command"]]
    t.equal([shlex.split(c)[3:] for c in commands],
            [["filesystem.host_mounts", os.path.join(home, "data/x.csv")]])
    for line in r.err.splitlines():
        if "ward policy add" in line and home in line:
            t.contains(line.split("ward policy add")[1], "data/x.csv")
    take(t, ws, commands[0])
    r = t.ward("run", "-p", os.path.join(ws, "ward.yaml"), "--", "/bin/sh", "-c",
               f"cat {home}/data/x.csv; cat {home}/data/y.csv {home}/.netrc {home}/.ssh/config",
               cwd=ws, env={"HOME": home})
    t.equal(r.out, "1,2\n")


def test_a_program_beside_credentials(t):
    """A program in ~/.cargo/bin: its toolchain is shown, or named, not what lies around it; in
    ~/.local/bin only the program itself is named."""
    home = home_with(t, ".cargo/bin/mytool", ".local/bin/other", ".aws/bin/third")
    ws = t.workspace()
    env = {"HOME": home, "PATH": f"{home}/.cargo/bin:/usr/bin:/bin"}
    t.equal(t.ward("run", "--", "mytool", cwd=ws, env=env).out, "TOOL RAN\n")
    r = t.ward("run", "--set", "toolchains=none", "--", "mytool", cwd=ws, env=env)
    t.equal(r.rc, 127, r.err)
    t.contains(r.err, "--set toolchains=rust")
    t.check("--ro" not in r.err, r.err)
    r = t.ward("run", "--set", "toolchains=rust", "--", "/bin/sh", "-c",
               f"mytool; cat {home}/.cargo/credentials.toml {home}/.netrc", cwd=ws, env=env)
    t.equal(r.out, "TOOL RAN\n", r.err)
    for directory, name in ((".local/bin", "other"), (".aws/bin", "third")):
        env = {"HOME": home, "PATH": f"{home}/{directory}:/usr/bin:/bin"}
        r = t.ward("run", "--", name, cwd=ws, env=env)
        t.equal(r.rc, 127, r.err)
        t.check("--ro " not in r.err, r.err)


def test_policy_add_asks_twice_about_credentials(t):
    """By whatever name: the thing, what holds it, a link to it."""
    home = home_with(t)
    ws = t.workspace({"ward.yaml": "version: 1\n"})
    os.symlink(".cargo", os.path.join(home, "rust"))
    os.symlink(".ssh/config", os.path.join(home, "notes.txt"))
    for name in ("~/.cargo", "~/.m2", "~/.gradle", "~/.config", "~", home, os.path.dirname(home),
                 f"{home}/rust", f"{home}/notes.txt", f"{home}/data/../.cargo", "~/.claude", "/",
                 "/root", "/home"):
        r = t.ward("policy", "add", "filesystem.host_mounts", name, "--yes", cwd=ws,
                   env={"HOME": home})
        t.equal(r.rc, 125, name + r.out)
        t.contains(r.err, "--secrets", name)
    t.equal(t.read(ws, "ward.yaml"), "version: 1\n")
    for name in (f"{home}/data", "~/data/x.csv"):
        t.equal(t.ward("policy", "add", "filesystem.host_mounts", name, "--yes", cwd=ws,
                       env={"HOME": home}).rc, 0, name)
