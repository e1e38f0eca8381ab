"""The real agents, started by name on a terminal: each comes to its login screen and ends cleanly,
and nothing of the caller's home is read. WARD_TEST_AGENTS names an npm prefix with them (make
test-programs installs them). There is no internet here: what an agent must reach before it shows
its login is a server of the test's own world.
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
HOME_FILES = (".claude.json", ".claude/.credentials.json", ".claude/settings.json",
              ".codex/auth.json", ".codex/config.toml", ".gemini/oauth_creds.json",
              ".gemini/settings.json", ".ssh/id_ed25519", ".netrc", ".npmrc")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def open_screen(t, name, *hosts):
    """A terminal in a world that has these hosts; the agent in PATH, a home full of canaries."""
    if not AGENTS:
        t.skip("WARD_TEST_AGENTS names no directory with the agents")
    if not os.path.exists(os.path.join(AGENTS, "bin", name)):
        t.skip(f"there is no {name} in {AGENTS}")
    t.write(t.home, {path: CANARY + "\n" for path in HOME_FILES})
    world = trusted_world(t, names={host: [WEB] for host in hosts}, certified=hosts)
    env = {"PATH": f"{AGENTS}/bin:/usr/local/bin:/usr/bin:/bin"}
    return world, WorldScreen(t, world, cols=100, rows=40, env=env)


def start(s, name, *options):
    """Starts the agent by its name; the report tells how it ends. With --hints the journal also has
    what was looked for in vain."""
    s.report = os.path.join(s.t.fresh_dir("report"), "report.json")
    s.ward(name, "--report", s.report, "--hints", "--set", "audit.level=full", *options, "--")


def walk(s, steps, seconds=200):
    """Answers what the agent asks until its login is shown: (text, keys), the last with None."""
    deadline = time.monotonic() + seconds
    last = steps[-1][0]
    pressed = {}	# on a busy machine a screen stays for seconds after its key
    while True:
        shown = s.text()
        if last in shown:
            return shown
        for text, keys in steps[:-1]:
            if text in shown:
                if time.monotonic() > pressed.get(text, 0) + 15:
                    pressed[text] = time.monotonic()
                    s.keys(*keys)
                break
        if time.monotonic() > deadline:
            s.t.fail(f"no {last!r} within {seconds} s; shown:\n{shown}")
        time.sleep(0.3)


def end(t, s, world, name, *keys):
    """Presses the keys until the agent has ended; it ended by itself, and the journal names nothing
    of the real home."""
    t.wait_until(lambda: s.keys(*keys) or time.sleep(1) or os.path.exists(s.report), 90,
                 f"{name} does not end")
    s.prompt()
    report = json.loads(t.read(s.report))
    ended = report["exit"]
    t.check(ended["code"] in (0, 1, 130) and not ended.get("signal"), f"exit of {name}: {ended}")
    shown = s.text()
    t.check(CANARY not in shown, f"a file of the real home is on the screen:\n{shown}")
    journal = world.ward("audit", "show", "--json", cwd=s.ws, timeout=60)
    t.equal(journal.rc, 0, journal.err)
    events = [json.loads(line) for line in journal.out.splitlines() if line]
    t.check(len(events) > 3, f"the journal has only {len(events)} events")
    # file.missing: looked for and not there, because the real home is not
    named = [e for e in events if t.home + "/" in json.dumps(e) and e["kind"] != "file.missing"]
    t.equal(named, [], "events about the real home")
    with t.root():
        home = os.path.join(t.state_dir, "homes", name)
        kept = [os.path.join(d, f) for d, _, files in os.walk(home) for f in files]
        kept = [path for path in kept if os.path.isfile(path) and not os.path.islink(path)]
        held = [p for p in kept if CANARY.encode() in open(p, "rb").read()]
    t.check(kept, f"the kept home of {name} is empty")
    t.equal(held, [], "copies of the real home's files")
    for path in HOME_FILES:
        t.equal(t.read(t.home, path), CANARY + "\n", path)


@slow
@timeout(600)
def test_claude(t):
    """It insists on reaching its API before it shows anything: a server of the world's answers."""
    world, s = open_screen(t, "claude", "api.anthropic.com", "platform.claude.com", "claude.ai")
    with s:
        start(s, "claude", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        walk(s, [("in dollars (Enter: no limit)", ["Enter"]), ("Choose the text style", ["Enter"]),
                 ("Select login method", None)])
        end(t, s, world, "claude", "C-c", "C-c")
        s.fresh()
        start(s, "claude", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        shown = walk(s, [("Choose the text style", ["Enter"]), ("Select login method", None)])
        t.check("in dollars" not in shown, "asked for the limit again")
        end(t, s, world, "claude", "C-c", "C-c")


@slow
@timeout(600)
def test_codex(t):
    """Its login by browser ends at a port of the caller's loopback."""
    world, s = open_screen(t, "codex", "api.openai.com", "auth.openai.com", "chatgpt.com")
    with s:
        start(s, "codex")
        walk(s, [("in dollars (Enter: no limit)", ["Enter"]),
                 ("Ask Codex to do anything", ["Enter"]), ("Sign in with ChatGPT", None)])
        s.keys("Enter")
        s.wait("redirect_uri=http", "address to log in at", 60)
        got = world.run("curl", "-sS", "--retry", "20", "--retry-all-errors", "--retry-delay", "1",
                        "-o", "/dev/null", "-w", "%{http_code}",
                        "http://localhost:1455/no-such-page", cwd=s.ws, timeout=60)
        t.equal(got.out, "404", f"codex's login server, from outside: {got.err}")
        s.keys("Escape")
        s.wait("Sign in with ChatGPT", "list of ways to log in", 30)
        end(t, s, world, "codex", "C-c")


@slow
@timeout(600)
def test_gemini(t):
    world, s = open_screen(t, "gemini", "oauth2.googleapis.com", "accounts.google.com",
                           "cloudcode-pa.googleapis.com")
    with s:
        start(s, "gemini", "--env", f"NODE_EXTRA_CA_CERTS={BUNDLE}")
        walk(s, [("Do you trust the files", ["Enter"]),
                 ("How would you like to authenticate", None)])
        end(t, s, world, "gemini", "C-c", "C-c")
