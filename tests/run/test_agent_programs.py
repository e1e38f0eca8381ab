"""The real agents, started by name on a terminal: each comes to its login screen and ends cleanly, and nothing of the caller's home is
read. WARD_TEST_AGENTS names an npm prefix with them (make test-programs installs them). There is no internet here: what an
agent must reach before it shows its login is a server of the test's own world.
"""
import json
import os
import time

from harness import slow, timeout
from harness.agents import WorldScreen
from harness.world import WEB, trusted_world

NATIVE_ONLY = "the time is that of the agents; ward's part is that of every run"

AGENTS = os.environ.get("WARD_TEST_AGENTS", "")
CANARY = "CANARY-OF-THE-REAL-HOME"
HOME_FILES = (".claude.json", ".claude/.credentials.json", ".claude/settings.json", ".codex/auth.json", ".codex/config.toml",
              ".gemini/oauth_creds.json", ".gemini/settings.json", ".ssh/id_ed25519", ".netrc", ".npmrc")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def open_screen(t, name, *hosts):
    """A terminal at home in a world that has these hosts, with the agent in PATH and a home full of canaries."""
    if not AGENTS:
        t.skip("WARD_TEST_AGENTS names no directory with the agents")
    if not os.path.exists(os.path.join(AGENTS, "bin", name)):
        t.skip(f"there is no {name} in {AGENTS}")
    t.write(t.home, {path: CANARY + "\n" for path in HOME_FILES})
    world = trusted_world(t, names={host: [WEB] for host in hosts}, certified=hosts)
    env = {"PATH": f"{AGENTS}/bin:/usr/local/bin:/usr/bin:/bin"}
    return world, WorldScreen(t, world, cols=100, rows=40, env=env)


def start(s, name, *options):
    """Starts the agent by its name; the report tells how it ends."""
    s.report = os.path.join(s.t.fresh_dir("report"), "report.json")
    s.ward(name, "--report", s.report, "--set", "audit.level=full", *options, "--")


def walk(s, steps, seconds=90):
    """Answers what the agent asks until its login is shown: steps are (text, keys), the last with keys None."""
    deadline = time.monotonic() + seconds
    last = steps[-1][0]
    while True:
        shown = s.text()
        if last in shown:
            return shown
        for text, keys in steps[:-1]:
            if text in shown:
                s.keys(*keys)
                time.sleep(1)
                break
        if time.monotonic() > deadline:
            s.t.fail(f"no {last!r} within {seconds} s; shown:\n{shown}")
        time.sleep(0.3)


def end(t, s, world, name, *keys):
    """Presses the keys until the agent has ended; it ended by itself, and the journal names nothing of the real home."""
    t.wait_until(lambda: [s.keys(k) for k in keys] and time.sleep(1) or os.path.exists(s.report), 60, f"{name} does not end")
    s.prompt()
    report = json.loads(t.read(s.report))
    t.check(report["exit"]["code"] in (0, 1, 130) and not report["exit"].get("signal"), f"exit of {name}: {report['exit']}")
    shown = s.text()
    t.check(CANARY not in shown, f"a file of the real home is on the screen:\n{shown}")
    journal = world.ward("audit", "show", "--json", cwd=s.ws, timeout=60)
    t.equal(journal.rc, 0, journal.err)
    events = [json.loads(line) for line in journal.out.splitlines() if line]
    t.check(len(events) > 3, f"the journal has only {len(events)} events")
    named = [e for e in events if t.home + "/" in json.dumps(e)]
    t.equal(named, [], "events about the real home")
    with t.root():
        kept = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(t.state_dir, "homes", name)) for f in files]
        held = [p for p in kept if CANARY.encode() in open(p, "rb").read()]
    t.check(kept, f"the kept home of {name} is empty")
    t.equal(held, [], "copies of the real home's files")
    for path in HOME_FILES:
        t.equal(t.read(t.home, path), CANARY + "\n", path)


@slow
@timeout(300)
def test_claude(t):
    """It insists on reaching its API before it shows anything: a server of the world's answers."""
    world, s = open_screen(t, "claude", "api.anthropic.com", "platform.claude.com", "claude.ai")
    with s:
        start(s, "claude", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        walk(s, [("in dollars (Enter: no limit)", ["Enter"]), ("Choose the text style", ["Enter"]),
                 ("Select login method", None)])
        end(t, s, world, "claude", "C-c")
        start(s, "claude", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        shown = walk(s, [("Choose the text style", ["Enter"]), ("Select login method", None)])
        t.check("in dollars" not in shown, "asked for the limit again")
        end(t, s, world, "claude", "C-c")


@slow
@timeout(300)
def test_codex(t):
    """Its login by browser ends at a port of the caller's loopback."""
    world, s = open_screen(t, "codex", "api.openai.com", "auth.openai.com", "chatgpt.com")
    with s:
        start(s, "codex")
        walk(s, [("in dollars (Enter: no limit)", ["Enter"]), ("Ask Codex to do anything", ["Enter"]), ("Sign in with ChatGPT", None)])
        s.keys("Enter")
        s.wait("localhost", "address to log in at", 60)
        got = world.run("curl", "-sS", "--retry", "20", "--retry-all-errors", "--retry-delay", "1", "-o", "/dev/null", "-w", "%{http_code}",
                        "http://localhost:1455/no-such-page", cwd=s.ws, timeout=60)
        t.equal(got.out, "404", f"codex's login server, from outside: {got.err}")
        end(t, s, world, "codex", "Escape", "C-c")


@slow
@timeout(300)
def test_gemini(t):
    world, s = open_screen(t, "gemini", "oauth2.googleapis.com", "accounts.google.com", "cloudcode-pa.googleapis.com")
    with s:
        start(s, "gemini", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        walk(s, [("Do you trust the files", ["Enter"]), ("Waiting for authentication", ["Escape"]), ("How would you like to authenticate", None)])
        end(t, s, world, "gemini", "C-c")
