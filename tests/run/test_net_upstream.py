"""A proxy that the gateway itself has to use: everything allowed goes through it, nothing else is
asked of it."""
from harness.world import METADATA, OTHER, World, attempts, denial

RULES = ["db.test:5432", "db.test:22", f"{OTHER}:7", "10.99.0.0/16:5432", "nowhere.test:5432",
         "web.test:80"]
NAMES = {"proxy.test": [OTHER]}


def lines(world, *kinds):
    return [line for line in world.log() if line.split(" ")[0] in kinds]


def test_through_proxies(t):
    for url in ("http://agent:s3%3Acret@proxy.test:3128", f"socks5://agent:s3%3Acret@{OTHER}:1080",
                f"socks5h://agent:s3%3Acret@proxy.test"):
        world = World(t, names=NAMES)
        got, report = attempts(t, world, "db.test 5432", "db.test 22", f"{OTHER} 7",
                               "evil.test 443", "10.99.0.5 5432", f"{METADATA} 80",
                               rules=RULES, upstream_proxy=url)
        t.equal(got["db.test 5432"], "got hello", f"a name through {url}")
        t.contains(got["db.test 22"], "SSH-2.0-first",
                   "a server that speaks first, in one piece with the proxy's answer")
        t.equal(got[f"{OTHER} 7"], "got hello", "an address")
        t.equal(got["evil.test 443"], "EAI_NONAME", "a name that is not allowed")
        t.check("got" not in got["10.99.0.5 5432"] and "got" not in got[f"{METADATA} 80"],
                f"forbidden addresses: {got}")
        t.equal(sorted(lines(world, "proxy")),
                sorted(["proxy db.test 5432", "proxy db.test 22", f"proxy {OTHER} 7"]),
                "what the proxy was asked")
        names = {line.split(" ")[1] for line in lines(world, "dns")}
        t.check(names <= {"proxy.test"}, f"names that were looked up without the proxy: {names}")
        denial(t, report, "connection to 10.99.0.5:5432")


def test_proxy_refuses(t):
    """A wrong password, a proxy that is not there, a target it cannot reach: no way around it, and
    the report says why."""
    for url in ("http://agent:wrong@proxy.test:3128", "http://proxy.test:3128",
                "socks5://agent:wrong@proxy.test", "socks5://proxy.test",
                "http://proxy.test:7", "http://proxy.test:9999", "http://nobody.test:1",
                "http://agent:s3%3Acret@proxy.test:3128"):
        world = World(t, names=NAMES)
        target = "nowhere.test 5432" if "s3" in url else "db.test 5432"
        got, report = attempts(t, world, target, rules=RULES, upstream_proxy=url)
        t.check("got" not in got[target], f"{url}: {got}")
        t.contains(denial(t, report, "connection to " + target.replace(" ", ":"))["why"],
                   "upstream proxy", "why")
        t.check(not any(line.endswith(" 5432") and line.startswith("tcp") for line in world.log()),
                f"a way around it: {world.log()}")


def test_bad_urls(t):
    for url in ("proxy.test:3128", "ftp://proxy.test", "http://proxy.test/path",
                "http://us er@proxy.test", "http://a:s3cr3t@"):
        r = t.ward("run", "--set", "network.mode=restricted", "--set",
                   f"network.upstream_proxy={url!r}", "--", "/bin/true", cwd=t.workspace())
        t.equal(r.rc, 125, url)
        t.contains(r.err, "network.upstream_proxy", "message")
        t.check("s3cr3t" not in r.err, "the password is in the message")
