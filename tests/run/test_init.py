"""ward init: what it finds, asks and writes, and that a hostile project steers none of it."""
import json
import os
import stat

from harness.screen import Screen

HIDDEN = '  hide: [".env", ".env.*.local", "*.key", "*.pem"]\n'
PROJECTS = {
    "Python": ("requirements.txt", False, "pip, uv"),
    "Node": ("package.json", False, "npm, yarn, pnpm"),
    "Rust": ("Cargo.toml", True, "cargo"),
    "Go": ("go.mod", True, "go"),
    "C": ("meson.build", True, "ccache"),
    "Java": ("pom.xml", True, ""),
    "Ruby": ("Gemfile", True, ""),
    "": (None, False, ""),
}


def settings(text):
    """The lines that say something."""
    return [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]


def test_it_says_only_what_differs(t):
    for kind, (marker, compiles, caches) in PROJECTS.items():
        ws = t.workspace({marker: ""} if marker else {})
        r = t.ward("init", cwd=ws)
        t.equal(r.rc, 0, "exit code")
        t.contains(r.out, f"{kind} project".strip(), "answer")
        text = t.read(ws, "ward.yaml")
        t.check(len(text.splitlines()) <= 15, f"more than 15 lines: {text}")
        wanted = ["version: 1", "filesystem:", HIDDEN.rstrip("\n")]
        wanted += [f"  caches: [{caches}]"] if caches else []
        wanted += ["process:", "  syscalls: build"] if compiles else []
        t.equal(settings(text), wanted, kind)
        t.equal(stat.S_IMODE(os.stat(os.path.join(ws, "ward.yaml")).st_mode), 0o644, "mode")
        checked = t.ward("check", cwd=ws)
        t.equal(checked.rc, 0, "exit code of check")
        t.check("refused at start" not in checked.out, checked.out)
        r = t.ward("run", "--", "/bin/true", cwd=ws)
        t.equal(r.rc, 0, f"exit code of the run: {r.err}")


def test_a_profile_keeps_its_network(t):
    """Neither form of the file takes away what a profile gives."""
    for options in ((), ("--yes",), ("--full",)):
        ws = t.workspace({"package.json": "{}"})
        t.equal(t.ward("init", *options, cwd=ws).rc, 0)
        plan = json.loads(t.ward("plan", "--json", "--profile", "claude", cwd=ws).out)
        t.contains(json.dumps(plan["network"]), "api.anthropic.com", f"after init {options}")
        r = t.ward("run", "--profile", "claude", "--", "true", cwd=ws, report=True)
        t.equal((r.rc, "network" in r.report), (0, True), f"run after init {options}")


def test_the_questions(t):
    """Three questions; the agent's own hosts stay in the list that the answer makes."""
    with Screen(t, files={"package.json": "{}", "Dockerfile": ""}) as s:
        s.ward("init")
        s.see("1. Which agent works here?")
        s.line("nonsense")
        s.see("there is no profile nonsense")
        s.line("claude")
        s.see("2. Which hosts")
        s.see("y: registry.npmjs.org")
        s.line("y")
        s.see("3. Hold its changes back")
        s.line("maybe")
        s.line("y")
        s.see("next: ward claude")
        s.see("a Dockerfile is not built")
        text = t.read(s.ws, "ward.yaml")
        t.check(len(text.splitlines()) <= 15, f"more than 15 lines: {text}")
        hosts = ["api.anthropic.com", "platform.claude.com", "claude.ai", "registry.npmjs.org",
                 "registry.yarnpkg.com"]
        t.contains(text, "\n  mode: review\n")
        t.contains(text, f"\n  egress_allowlist: [{', '.join(hosts)}]\n")
        plan = json.loads(t.ward("plan", "--json", cwd=s.ws).out)
        named = [r["rule"].split(":")[0] for r in plan["network"]]
        t.equal(named, hosts, "hosts, without ward trust")


def test_other_answers(t):
    with Screen(t) as s:
        s.ward("init")
        s.see("1. Which agent")
        s.line("none")
        s.see("2. Which hosts")
        s.line("not/a/host")
        s.see("ward: ")
        s.line("db.example.com:5432, *.example.org")
        s.see("3. Hold")
        s.keys("Enter")
        s.see("next: ward run")
        t.contains(t.read(s.ws, "ward.yaml"),
                   '\n  egress_allowlist: ["db.example.com:5432", "*.example.org"]\n')
        t.equal(t.ward("plan", cwd=s.ws).rc, 0, "accepted")
        s.line("rm ward.yaml")
        s.ward("init")
        s.see("1. Which agent")
        s.keys("C-d")
        s.see("was not answered")
        t.check(not os.path.exists(os.path.join(s.ws, "ward.yaml")), "a file was written")
        s.ward("init", "--yes")
        # the words of the first time are still on the screen
        t.wait_until(lambda: os.path.exists(os.path.join(s.ws, "ward.yaml")), 20)
        t.check("network" not in t.read(s.ws, "ward.yaml"), "--yes opens the network")


def test_a_hostile_project(t):
    """Markers that are links, pipes or directories count for nothing and keep nobody waiting."""
    outside = t.fresh_dir("outside")
    t.write(outside, {"package.json": "{}"})
    ws = t.workspace()
    os.symlink(os.path.join(outside, "package.json"), os.path.join(ws, "package.json"))
    os.mkfifo(os.path.join(ws, "pyproject.toml"))
    os.mkdir(os.path.join(ws, "Cargo.toml"))
    t.write(ws, {"Gemfile": "\x1b[31m\n: [}\n", "ward.yaml.new": "x"})
    r = t.ward("init", cwd=ws)
    t.equal((r.rc, "Ruby project" in r.out), (0, True), r.out)
    t.equal(settings(t.read(ws, "ward.yaml"))[3:], ["process:", "  syscalls: build"])


def test_full(t):
    """The reference: what suits the project is set, the rest is there as comments."""
    ws = t.workspace({"go.mod": ""})
    t.equal(t.ward("init", "--full", cwd=ws).rc, 0)
    text = t.read(ws, "ward.yaml")
    for line in ("\n  syscalls: build\n", HIDDEN, "\n  caches: [go]\n", "\n#  mode: none\n"):
        t.contains(text, line, "policy")
    t.equal(t.ward("run", "--", "/bin/true", cwd=ws).rc, 0)


def test_full_comments_are_valid(t):
    """Every line that is commented out is right when it is not."""
    workspace = t.workspace()
    t.equal(t.ward("init", "--full", cwd=workspace).rc, 0, "exit code")
    lines = []
    for line in t.read(workspace, "ward.yaml").splitlines():
        at = line.find("#")
        commented = at >= 0 and line[at + 1:at + 2] != " " or line.startswith("#  ")
        lines.append(line.replace("#", "", 1) if commented else line)
    t.write(workspace, {"all.yaml": "\n".join(lines) + "\n"})
    t.say("\n".join(lines))
    r = t.ward("check", "all.yaml", cwd=workspace)
    t.equal(r.rc, 0, f"exit code: {r.out}")
    t.check("widens" not in r.out, "a default widens")


def test_it_keeps_what_is_there(t):
    workspace = t.workspace({"ward.yaml": "mine\n"})
    r = t.ward("init", cwd=workspace)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "--force", "remedy")
    t.equal(t.read(workspace, "ward.yaml"), "mine\n", "file")
    t.equal(t.ward("init", "--force", cwd=workspace).rc, 0, "exit code")
    t.contains(t.read(workspace, "ward.yaml"), "version: 1", "file")


def test_it_follows_no_link(t):
    outside = t.fresh_dir()
    workspace = t.workspace()
    os.symlink(os.path.join(outside, "target"), os.path.join(workspace, "ward.yaml"))
    t.equal(t.ward("init", cwd=workspace).rc, 125, "exit code")
    t.equal(t.ward("init", "--force", cwd=workspace).rc, 0, "exit code")
    t.check(not os.path.exists(os.path.join(outside, "target")), "the link was followed")
    t.check(not os.path.islink(os.path.join(workspace, "ward.yaml")), "the link is still there")
