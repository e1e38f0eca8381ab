"""Agents by name: ward agent, ward claude and the like. The programs here are scripts that stand
for agents; the real ones, on a terminal, are in test_agent_programs.py."""
import json
import os
import socket

from harness.agents import BUILT_IN, own_profile, program
from harness.world import WEB, trusted_world

KEY = "sk-ant-REAL-KEY-0123456789"
SCRIPT = """#!/bin/sh
echo "args:$#" "$@"
echo "key:$ANTHROPIC_API_KEY" "home:$HOME"
cat .env 2>&1
exit 0
"""


def agents(t, *names, text=SCRIPT):
    """A directory with programs of these names, and the environment that finds them."""
    top = t.fresh_dir("agents")
    for name in names:
        program(t, f"{top}/bin/{name}", text)
    return {"PATH": f"{top}/bin:/usr/local/bin:/usr/bin:/bin"}


def args(r):
    """The arguments that the script was given, as it printed them."""
    return [line for line in r.out.splitlines() if line.startswith("args:")][0]


def test_ls(t):
    env = agents(t, "claude")
    own_profile(t, "mine", "# Mine.\nversion: 1\nfilesystem: {programs: [my-agent]}\n")
    listed = json.loads(t.ward("agent", "ls", "--json", env=env).out)["agents"]
    rows = {a["name"]: a for a in listed}
    t.equal(sorted(rows), sorted([n for n in BUILT_IN if n != "generic"] + ["mine"]), "names")
    t.equal((rows["claude"]["program"], rows["claude"]["found"]),
            ("claude", env["PATH"].split(":")[0] + "/claude"))
    t.equal((rows["goose"]["found"], rows["mine"]["program"]), (None, "my-agent"))
    t.contains(rows["codex"]["install"], "npm install -g @openai/codex")
    text = t.ward("agent", "ls", env=env).out
    t.contains(text, "not installed; get it with npm install -g @openai/codex")
    t.equal(t.ward("agent", env=env).out, text, "without a word")
    t.equal(json.loads(t.ward("agent", "--json", "ls", env=env).out)["agents"], listed)


def test_what_is_missing(t):
    """127 and the way to get it; a profile without a program, and one that is not there."""
    ws, env = t.workspace(), agents(t)
    for words in (["claude"], ["agent", "claude"], ["agent", "--memory", "1Gi", "claude", "-v"]):
        r = t.ward(*words, cwd=ws, env=env)
        t.equal((r.rc, r.out), (127, ""), f"{words}")
        t.contains(r.err, "npm install -g @anthropic-ai/claude-code")
    r = t.ward("agent", "aider", cwd=ws, env=env)
    t.equal((r.rc, "pipx install aider-chat" in r.err), (127, True))
    own_profile(t, "mine", "version: 1\nfilesystem: {programs: [my-agent]}\n")
    t.equal(t.ward("agent", "mine", cwd=ws, env=env).rc, 127)
    r = t.ward("agent", "generic", cwd=ws, env=env)
    t.equal((r.rc, "ward run --profile generic" in r.err), (125, True))
    r = t.ward("agent", "claud", cwd=ws, env=env)
    t.equal((r.rc, "did you mean claude?" in r.err), (125, True))
    r = t.ward("mine", cwd=ws, env=env)
    t.equal(r.rc, 2, "a profile of your own is no verb")
    # a policy may name another root: the sandbox is asked, and then the way is said
    t.write(ws, {"ward.yaml": "version: 1\n"})
    r = t.ward("claude", cwd=ws, env=env)
    t.equal((r.rc, "npm install -g" in r.err), (127, True))


def test_arguments(t):
    """Everything behind the name is the agent's, unless options of ward end with a --."""
    ws, env = t.workspace(), agents(t, "claude", "my-agent")
    own_profile(t, "mine", "version: 1\nfilesystem: {programs: [my-agent]}\n")
    for words, wanted in (
            (["claude"], "args:0"),
            (["claude", "-p", "hi there", "--help"], "args:3 -p hi there --help"),
            (["claude", "--continue"], "args:1 --continue"),
            (["claude", "mcp", "add", "x", "--", "npx", "-y"], "args:6 mcp add x -- npx -y"),
            (["claude", "--", "-p", "--"], "args:2 -p --"),
            (["claude", "--pids", "500", "--", "--resume"], "args:1 --resume"),
            (["agent", "claude", "--pids", "500", "exec", "--json"], "args:2 exec --json"),
            (["agent", "claude", "--", "--pids", "x"], "args:2 --pids x"),
            (["agent", "--pids", "500", "claude", "--", "a"], "args:1 a"),
            (["agent", "mine", "a", "b"], "args:2 a b")):
        r = t.ward(*words, cwd=ws, env=env)
        t.equal((r.rc, args(r)), (0, wanted), f"{words}: {r.err}")
    r = t.ward("claude", "--no-such-option", "--", "x", cwd=ws, env=env)
    t.equal((r.rc, "unknown option --no-such-option" in r.err), (125, True))
    r = t.ward("agent", "claude", "--profile", "python", cwd=ws, env=env)
    t.equal((r.rc, "has the profile claude already" in r.err), (125, True))
    for words in (["agent", "--help"], ["agent", "claude", "--help"], ["help", "claude"]):
        t.contains(t.ward(*words, env=env).out, "usage: ward agent", f"{words}")
    t.equal(t.ward("agent", "set", env=env).rc, 2)


def test_what_a_run_has(t):
    """The kept home, the report, the exit code, a limit, a detached sandbox: all of ward run's."""
    ws, env = t.workspace(), agents(t, "claude", text="#!/bin/sh\nls -A ~; touch ~/x; exit $1\n")
    path = f"{t.directory}/report.json"
    r = t.ward("agent", "claude", "--report", path, "--", "7", cwd=ws, env=env)
    report = json.loads(t.read(path))
    t.equal((r.rc, report["exit"]["code"]), (7, 7), r.err)
    t.check("x" not in r.out.split(), "the home was not new")
    t.check("x" in t.ward("claude", "0", cwd=ws, env=env).out.split(), "the home was not kept")
    t.check(os.path.isdir(os.path.join(t.state_dir, "homes", "claude", "home")), "the kept home")
    slow = agents(t, "claude", text="#!/bin/sh\nexec sleep 60\n")
    t.equal(t.ward("claude", "--timeout", "0.3", "--", cwd=ws, env=slow).rc, 124)
    r = t.ward("claude", "-d", "--name", "box", "--", cwd=ws, env=slow)
    t.equal(r.rc, 0, r.err)
    t.defer(lambda: t.ward("rm", "-f", "box"))
    shown = t.ward("net", "show", "box").out
    t.contains(shown, "api.anthropic.com")
    t.equal(t.ward("stop", "--timeout", "1", "box").rc, 0)


def test_a_program_below_the_home(t):
    """nvm's layout: the package and node are in view, read-only, and nothing else of the home."""
    node = f"{t.home}/.nvm/versions/node/v22"
    package = f"{node}/lib/node_modules/@anthropic-ai/claude-code"
    program(t, f"{package}/cli.js", "#!/usr/bin/env node\n")
    program(t, f"{node}/bin/node", f"""#!/bin/sh
find {t.home} -type f | sort
touch {package}/x 2>&1
""")
    t.write(t.home, {".npmrc": "token\n", ".nvm/alias/default": "22\n", ".claude.json": "mine\n",
                     f"{node}/lib/node_modules/other/index.js": "x\n"})
    os.symlink("../lib/node_modules/@anthropic-ai/claude-code/cli.js", f"{node}/bin/claude")
    env = {"PATH": f"{node}/bin:/usr/local/bin:/usr/bin:/bin"}
    r = t.ward("claude", "--set", "toolchains=none", "--", cwd=t.workspace(), env=env)
    t.equal(r.out.splitlines()[:-1], [f"{node}/bin/node", f"{package}/cli.js"], r.err)
    t.contains(r.out, "Read-only file system")


def test_env_files_are_hidden(t):
    files = {".env": "TOKEN=abc\n", "a/.env.local": "TOKEN=abc\n", ".env.example": "TOKEN=\n"}
    env = agents(t, "claude", text="#!/bin/sh\ncat .env a/.env.local .env.example 2>&1\n")
    for policy in (None, "version: 1\nfilesystem: {hide: ['*.key']}\n"):
        ws = t.workspace({**files, **({"ward.yaml": policy} if policy else {})})
        r = t.ward("claude", cwd=ws, env=env)
        t.equal((r.out.count("Permission denied"), "TOKEN=abc" in r.out, "TOKEN=\n" in r.out),
                (2, False, True), f"{policy}: {r.out} {r.err}")
    r = t.ward("claude", "--set", "filesystem.hide=[]", "--", cwd=t.workspace(files), env=env)
    t.equal(r.out.count("TOKEN=abc"), 2, "asked for")


def test_a_key_is_a_grant(t):
    """Inside is a placeholder; the server of the agent's service gets the key, no other does."""
    certified = ("api.anthropic.com", "claude.ai")
    world = trusted_world(t, names={n: [WEB] for n in certified}, certified=certified)
    script = """#!/bin/sh
env | grep -c REAL-KEY
for url in api.anthropic.com/v1/models claude.ai/x; do
    curl -sS -o /dev/null -w '%{http_code} ' -H "x-api-key: $ANTHROPIC_API_KEY" https://$url
done
"""
    env = {**agents(t, "claude", text=script), "ANTHROPIC_API_KEY": KEY,
           "GEMINI_API_KEY": "other-key-REAL-KEY"}
    ws = t.workspace()
    r = world.ward("claude", cwd=ws, env=env, timeout=60)
    t.equal(r.out.split()[:2], ["0", "200"], r.err)
    t.contains(r.err, "may use ANTHROPIC_API_KEY for api.anthropic.com", "said, without a terminal")
    keys = [line for line in world.log() if line.startswith("key api.anthropic.com")]
    t.equal(keys, [f"key api.anthropic.com {KEY}"], "what the service got")
    elsewhere = [line for line in world.log() if KEY in line and "claude.ai" in line]
    t.equal(elsewhere, [], "the key went elsewhere")
    # a no that was given once counts
    t.equal(world.ward("agent", "set", "claude", "key=no", cwd=ws, env=env).rc, 0)
    r = world.ward("claude", cwd=ws, env=env, timeout=60)
    t.equal((r.out.split()[0], "may use" in r.err), ("0", False))
    used = [line for line in world.log() if KEY in line]
    t.equal(len(used), 1, "the key was used against the answer")


def test_a_key_without_a_use(t):
    """A policy that turns the network off, a key that is none: the agent starts all the same."""
    env = agents(t, "claude")
    ws = t.workspace({"ward.yaml": "version: 1\nnetwork: {mode: none}\n"})
    t.ward("agent", "set", "claude", "spend=5", env=env)
    r = t.ward("agent", "claude", "-v", "x", cwd=ws, env={**env, "ANTHROPIC_API_KEY": KEY})
    t.equal((r.rc, args(r)), (0, "args:1 x"), r.err)
    t.contains(r.err, "no key is put into requests")
    t.check("key:\n" in r.out or "key: home" in r.out, f"a key is inside: {r.out}")
    r = t.ward("claude", cwd=t.workspace(), env={**env, "ANTHROPIC_API_KEY": "short"})
    t.equal((r.rc, "may use" in r.err, "short" in r.out), (0, False, False))


def asked(t, ws, env, *typed):
    """A start on a terminal where these lines are typed."""
    return t.ward_tty("claude", cwd=ws, env=env, input="".join(f"{x}\n" for x in typed).encode(),
                      after=b"]" if len(typed) > 1 else b"limit)", timeout=60)


def test_questions_are_asked_once(t):
    ws, env = t.workspace(), {**agents(t, "claude"), "ANTHROPIC_API_KEY": KEY, "TERM": "xterm"}
    r = t.ward("claude", cwd=ws, env=env, input="")
    t.check("may cost" not in r.out + r.err, "asked without a terminal")
    r = asked(t, ws, env, "y", "lots", "2.50")
    t.contains(r.out, "ANTHROPIC_API_KEY is set. Let claude use it?")
    t.equal(r.out.count("The most that one run of claude may cost"), 2, "questions about the limit")
    t.contains(r.out, "args:0")
    t.check(KEY not in r.out, "the key is inside")
    r = t.ward_tty("claude", cwd=ws, env=env, timeout=60)
    t.check("may cost" not in r.out and "is set" not in r.out, f"asked again: {r.out}")
    kept = [t.read(t.state_dir, f"agents/claude/{w}") for w in ("spend", "key.ANTHROPIC_API_KEY")]
    t.equal(kept, ["2.50\n", "yes\n"])
    t.equal(t.ward("agent", "set", "claude", "key=ask", "spend=ask", env=env).rc, 0)
    r = asked(t, ws, env, "n", "")
    t.contains(r.out, "args:0")
    t.contains(r.out, "key: home", "a no")
    t.equal(t.read(t.state_dir, "agents/claude/spend"), "none\n")
    r = t.ward("agent", "set", "claude", "spend=-1", env=env)
    t.equal((r.rc, "expected an amount" in r.err), (2, True))
    t.equal(t.ward("agent", "set", "gemini", "spend=5", env=env).rc, 2, "cannot be counted")


def rules(t, ws, env, *options):
    """The rules and the limit of a detached run."""
    r = t.ward("agent", "claude", "-d", "--name", "b", *options, cwd=ws, env=env)
    if r.rc != 0:
        return r.err
    shown = t.ward("net", "show", "--json", "b").out
    t.ward("rm", "-f", "b")
    return shown


def test_the_limit_holds_whoever_names_the_host(t):
    """A spend limit counts the requests to the service, also where a policy file has its own list;
    a list that goes around it is refused."""
    env = agents(t, "claude", text="#!/bin/sh\nexec sleep 60\n")
    t.check('"left"' not in rules(t, t.workspace(), env), "counted without a limit")
    t.equal(t.ward("agent", "set", "claude", "spend=2.50", env=env).rc, 0)
    own = "version: 1\nnetwork: {mode: restricted, egress_allowlist: [%s]}\n"
    for policy in (None, own % "api.anthropic.com, registry.npmjs.org"):
        ws = t.workspace({"p.yaml": policy} if policy else {})
        shown = rules(t, ws, env, *(["-p", "p.yaml"] if policy else []))
        t.contains(shown, '"left":"2.50"', f"{policy}")
    for policy in (own % "'*.anthropic.com'", own % "{host: api.anthropic.com, mode: splice}",
                   "version: 1\nnetwork: {mode: open}\n"):
        shown = rules(t, t.workspace({"p.yaml": policy}), env, "-p", "p.yaml")
        t.contains(shown, "requests are not counted", f"{policy}")
    ws = t.workspace({"p.yaml": own % "registry.npmjs.org"})
    t.contains(rules(t, ws, env, "-p", "p.yaml"), "registry.npmjs.org", "nothing to count")


def test_the_limit_stops_requests(t):
    """A request that may cost more than the limit is refused, with either list of hosts."""
    certified = ("api.anthropic.com",)
    world = trusted_world(t, names={n: [WEB] for n in certified}, certified=certified)
    script = """#!/bin/sh
curl -sS -o /dev/null -w '%{http_code}' -H 'content-type: application/json' \\
    https://api.anthropic.com/v1/messages \\
    -d '{"model": "claude-opus-9", "max_tokens": 1000, "messages": []}'
"""
    env = agents(t, "claude", text=script)
    own = "version: 1\nnetwork: {mode: restricted, egress_allowlist: [api.anthropic.com]}\n"
    ws = t.workspace({"p.yaml": own})
    for spend, wanted in (("0.001", "402"), ("5", "200")):
        t.equal(t.ward("agent", "set", "claude", f"spend={spend}", env=env).rc, 0)
        for options in ((), ("-p", "p.yaml")):
            r = world.ward("agent", "claude", *options, cwd=ws, env=env, timeout=60)
            t.equal(r.out, wanted, f"{spend} {options}: {r.err}")


def test_defaults_are_below_the_file(t):
    """--default: the policy file goes over it, an option over both."""
    ws = t.workspace({"ward.yaml": "version: 1\nresources: {pids_limit: 100}\n"})

    def pids(*options):
        r = t.ward("plan", "--json", *options, cwd=ws)
        return json.loads(r.out)["limits"]["pids"]["value"] if r.rc == 0 else r.err
    t.equal(pids("--default", "resources.pids_limit=2000"), 100)
    t.equal(pids("--default", "resources.pids_limit=2000", "--pids", "50"), 50)
    os.unlink(f"{ws}/ward.yaml")
    t.equal(pids("--default", "resources.pids_limit=2000"), 2000)
    t.contains(pids("--default", "resources.nonsense=1"), "resources.nonsense")
    t.contains(pids("--default", "x"), "expected FIELD=VALUE")


def test_the_login_port(t):
    """codex's callback is published; where another run has the port, this one goes on without."""
    listen = ("from http.server import HTTPServer, SimpleHTTPRequestHandler as H\n"
              "HTTPServer(('127.0.0.1', 1455), H).handle_request()\n")
    env = agents(t, "codex", text="#!/bin/sh\necho started\n")
    world = trusted_world(t)	# a loopback of its own
    ws = t.workspace({"marker": "from inside\n", "listen.py": listen})
    served = agents(t, "codex", text="#!/bin/sh\nexec /usr/bin/python3 listen.py\n")
    r = world.ward("agent", "codex", "-d", "--name", "login", cwd=ws, env=served)
    t.equal(r.rc, 0, r.err)
    t.defer(lambda: t.ward("rm", "-f", "login"))
    second = world.ward("agent", "codex", "-v", cwd=ws, env=env)
    t.equal((second.rc, "started" in second.out), (0, True), second.err)
    t.contains(second.err, "port 1455 of the profile was in use on this host")
    got = world.run("curl", "-sS", "--retry", "20", "--retry-all-errors", "--retry-delay", "1",
                    "http://localhost:1455/marker", cwd=ws, timeout=60)
    t.equal(got.out, "from inside\n", got.err)


def test_a_port_that_an_option_asks_for_is_no_wish(t):
    """Only a profile's port may be missing: an option's is an error."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        r = t.ward("run", "--set", f"network.ingress=[{port}]", "--", "true", cwd=t.workspace())
        t.equal((r.rc, "cannot publish port" in r.err), (125, True))
