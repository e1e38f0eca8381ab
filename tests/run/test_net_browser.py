"""A browser behind the gateway. Debian's Chromium looks at its own list of authorities and pretends
to encrypt its greeting (ECH GREASE); both are settled by a policy of the machine that every sandbox
has in /etc (tables/root.def, plan/certs.c)."""
import json
import os

from harness import by_turns, timeout
from harness.world import need, policy, trusted_world

NATIVE_ONLY = "the time is Chromium's; test_net_clients has the same ways through the gateway"

OPTIONS = ("--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
           "--disable-background-networking --disable-component-update --disable-extensions")


def dump(t, world, rules, url, *words):
    """What Chromium shows of a page, inside."""
    ws = t.workspace()
    r = world.ward("run", "-p", policy(t, rules), "--", "sh", "-c",
                   f"chromium {OPTIONS} {' '.join(words)} --timeout=100000 --dump-dom {url}",
                   cwd=ws, report=True, timeout=160)
    t.equal(r.rc, 0, f"exit code ({r.err[-2000:]})")
    return r


@by_turns
@timeout(180)
def test_chromium_splice(t):
    """On a rule that only looks at the name in the greeting: Chromium sends no greeting that could
    hide another, and gets its page. The real certificate is what it sees, so the test's own
    authority is waved through."""
    need(t, "chromium")
    world = trusted_world(t)
    r = dump(t, world, ["web.test"], "https://web.test/", "--ignore-certificate-errors")
    t.contains(r.out, "hello", f"the page ({r.report['denials']}, {r.err[-1500:]})")
    t.check(not [d for d in r.report["denials"] if "web.test" in d["what"]],
            f"the refusals: {r.report['denials']}")


@by_turns
@timeout(180)
def test_chromium_inspect(t):
    """On a rule whose TLS is ended by the gateway: Chromium trusts the sandbox's authority, without
    any option."""
    need(t, "chromium")
    world = trusted_world(t)
    r = dump(t, world, [{"host": "web.test", "mode": "inspect"}], "https://web.test/")
    t.contains(r.out, "hello", f"the page ({r.report['denials']}, {r.err[-1500:]})")
    t.check(not [d for d in r.report["denials"] if "web.test" in d["what"]],
            f"the refusals: {r.report['denials']}")
