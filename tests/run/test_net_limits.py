"""What a sandbox may spend on the network: connections, connections a second, bytes, bandwidth; of
a rule and of the whole."""
from harness.world import World, policy

SCRIPT = r"""
import socket, time
def open_one(host="db.test", port=5432):
    s = socket.create_connection((host, port), 20)
    s.sendall(b"x")
    if s.recv(1) != b"x":
        raise ConnectionError("ended")
    return s
def may_open(host="db.test", port=5432):
    try:
        open_one(host, port).close()
        return True
    except OSError:
        return False
def fetch(n, host="db.test", port=5432):
    "How many of n bytes come, and how it ends."
    got = 0
    try:
        s = socket.create_connection((host, port), 20)
        s.sendall(b"SIZE %d" % n)
        while data := s.recv(65536):
            got += len(data)
        return got, "end"
    except OSError as error:
        return got, type(error).__name__
def send(n):
    "How many of n bytes are echoed."
    got = 0
    try:
        s = socket.create_connection(("db.test", 5432), 20)
        s.sendall(b"y")
        got = len(s.recv(1))
        block = b"z" * 1000
        while got < n:
            s.sendall(block)
            want = len(block)
            while want:
                data = s.recv(want)
                if not data:
                    return got, "end"
                got += len(data)
                want -= len(data)
        return got, "end"
    except OSError as error:
        return got, type(error).__name__
"""


def inside(t, world, script, rules, **network):
    ws = t.workspace({"script.py": SCRIPT + script})
    r = world.ward("run", "-p", policy(t, rules, **network), "--", "/usr/bin/python3", "script.py",
                   cwd=ws, report=True, timeout=60)
    t.equal(r.rc, 0, "exit code")
    # numbers and words that the script printed
    return [eval(line, {}) for line in r.out.splitlines()], r.report


def limited(**limits):
    return [{"host": "db.test", "ports": [5432, 7], "mode": "tcp", **limits}, "web.test:5432"]


def refusals(report):
    return {d["why"] for d in report["denials"]}


def test_bytes_received(t):
    """All of what the limit allows comes, nothing more; a transfer of just that much ends well."""
    world = World(t)
    got, report = inside(t, world, "print(fetch(60000)); print(fetch(40000)); print(fetch(1)); "
                         "print(fetch(5000000, 'web.test'))",
                         limited(receive_limit=100000))
    t.equal(got[:2], [(60000, "end"), (40000, "end")], "within the limit")
    t.check(got[2][0] == 0 and got[2][1] != "end", f"behind the limit: {got[2]}")
    t.equal(got[3], (5000000, "end"), "another rule")
    t.check(any("received bytes is used up" in why for why in refusals(report)),
            f"the refusals: {report['denials']}")
    got, report = inside(t, world, "print(fetch(9000000))", limited(), receive_limit="1Mi")
    t.check(got[0][0] <= 1 << 20 and got[0][1] != "end", f"the whole's limit: {got[0]}")
    t.check(any("network.receive_limit" in d["remedy"] for d in report["denials"]), "the remedy")


def test_bytes_sent(t):
    world = World(t)
    got, report = inside(t, world, "print(send(50001)); print(send(80000)); print(may_open())",
                         limited(send_limit=100000))
    t.equal(got[0], (50001, "end"), "within the limit")
    t.check(got[1][0] <= 49999 and got[1][1] != "end", f"behind the limit: {got[1]}")
    t.equal(got[2], False, "a connection that could send nothing")
    t.check(any("sent bytes is used up" in why for why in refusals(report)),
            f"the refusals: {report['denials']}")


def test_connections(t):
    """As many as allowed at a time; one that ends makes room."""
    world = World(t)
    got, report = inside(t, world, r"""
a, b = open_one(), open_one()
print(may_open())
print(may_open(port=7))
print(may_open("web.test"))
a.close()
end = time.monotonic() + 20
while not may_open() and time.monotonic() < end:
    time.sleep(0.05)
print(time.monotonic() < end)
""", limited(connection_limit=2))
    t.equal(got, [False, False, True, True], "third, other port, other rule, room again")
    t.check(any("open connections" in why for why in refusals(report)),
            f"the refusals: {report['denials']}")
    got, _ = inside(t, world, "a = open_one('web.test'); print(may_open())", limited(),
                    connection_limit=1)
    t.equal(got, [False], "the whole's limit")


def test_connections_a_second(t):
    world = World(t)
    got, report = inside(t, world, r"""
began = time.monotonic()
opened = sum(may_open() for _ in range(40))
print((opened, time.monotonic() - began))
time.sleep(1.1)
print(may_open())
""", limited(connection_rate=5))
    opened, seconds = got[0]
    t.check(5 <= opened <= 5 + 5 * (seconds + 1), f"{opened} connections in {seconds:.2f} s")
    t.equal(got[1], True, "a second later")
    if opened < 40:
        t.check(any("connections per second" in why for why in refusals(report)),
                f"the refusals: {report['denials']}")


def test_bandwidth(t):
    """Slower, but whole; both directions of all connections share it, and nobody starves."""
    world = World(t)
    got, report = inside(t, world, r"""
import threading
results = []
threads = [threading.Thread(target=lambda: results.append(fetch(600000))) for _ in range(4)]
began = time.monotonic()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(time.monotonic() - began)
for r in results: print(r)
""", limited(bandwidth_limit="1Mi"))
    t.equal(got[1:], [(600000, "end")] * 4, "what came")
    t.check(got[0] >= (2400000 - (1 << 17)) / (1 << 20) * 0.95,
            f"2.4 MB in {got[0]:.2f} s at 1 MiB/s")
    t.equal(report["denials"], [], "denials")
