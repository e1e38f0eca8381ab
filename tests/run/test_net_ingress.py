"""Ports of the sandbox on the host's loopback: a dev server inside is reached from outside, and
nothing else is."""
import socket
import subprocess

from harness import by_turns, users
from harness.world import World, policy

SERVER = r"""
import socket, sys, threading
def serve(family, address, port):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, port))
    s.listen(128)
    while True:
        c, peer = s.accept()
        threading.Thread(target=answer, args=(c, peer), daemon=True).start()
def answer(c, peer):
    while data := c.recv(65536):
        c.sendall(data)
    c.sendall(peer[0].encode())
    c.close()
for family, address, port in ((socket.AF_INET, "127.0.0.1", 7100), (socket.AF_INET6, "::1", 7101),
                              (socket.AF_INET, "0.0.0.0", 7102),
                              (socket.AF_INET, "127.0.0.1", 7200)):
    threading.Thread(target=serve, args=(family, address, port), daemon=True).start()
import time
time.sleep(0.3)
print("up", flush=True)
sys.stdin.readline()
"""
CLIENT = r"""
import socket, sys, threading
def talk(host, port, data=b"hello"):
    try:
        s = socket.create_connection((host, port), 10)
        threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)),
                         daemon=True).start()
        got = b""
        while part := s.recv(65536):
            got += part
        return got or b"nothing"
    except (ConnectionResetError, BrokenPipeError):
        return b"nothing"	# which of the two threads is told of it is open
    except OSError as error:
        return type(error).__name__.encode()
for host, port in (("127.0.0.1", 7100), ("127.0.0.1", 7101), ("127.0.0.1", 7102), ("::1", 7100),
                   ("127.0.0.1", 7103),
                   ("127.0.0.1", 7200), ("192.0.2.1", 7100)):
    print(host, port, talk(host, port).decode())
big = bytes(range(256)) * 20000
print("big", talk("127.0.0.1", 7100, big) == big + b"127.0.0.1")
results = []
many = [threading.Thread(target=lambda: results.append(talk("127.0.0.1", 7102)))
        for _ in range(100)]
for t in many: t.start()
for t in many: t.join()
print("many", results.count(b"hello127.0.0.1"))
"""


def test_published(t):
    """From the host's loopback only, to published ports only, whichever loopback the server inside
    uses."""
    world = World(t)
    ws = t.workspace({"server.py": SERVER})
    argv = [*world.wrap(ws), *users.setpriv(t.person), t.ward_path, "run", "-p",
            policy(t, [], mode="none", ingress=[7100, 7101, 7102, 7103]), "--", "/usr/bin/python3",
            "server.py"]
    process = t.popen(argv, root=True, stdin=subprocess.PIPE)
    t.equal(process.stdout.readline(), b"up\n", "first line")
    r = world.run("/usr/bin/python3", "-c", CLIENT, cwd=ws, timeout=60)
    t.equal(r.out.splitlines(), ["127.0.0.1 7100 hello127.0.0.1", "127.0.0.1 7101 hello::1",
                                 "127.0.0.1 7102 hello127.0.0.1",
                                 "::1 7100 hello127.0.0.1", "127.0.0.1 7103 nothing",
                                 "127.0.0.1 7200 ConnectionRefusedError",
                                 "192.0.2.1 7100 ConnectionRefusedError", "big True",
                                 "many 100"], "answers")
    process.stdin.write(b"\n")
    process.stdin.close()
    process.stdin = None
    t.equal(t.finish(process, ["ward run"]).rc, 0, "exit code")
    t.contains(world.run("/usr/bin/python3", "-c", CLIENT, cwd=ws, timeout=60).out,
               "127.0.0.1 7100 ConnectionRefusedError",
               "after the end")


def test_port_in_use(t):
    """A port that the host uses is refused before anything starts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ws = t.workspace()
        r = t.ward("run", "--set", f"network.ingress=[{port}]", "--", "/bin/echo", "started",
                   cwd=ws)
    t.equal((r.rc, r.out), (125, ""), "exit code and output")
    t.contains(r.err, f"cannot publish port {port}", "message")


@by_turns
def test_no_way_out(t):
    """Published ports give the inside no way out."""
    world = World(t)
    ws = t.workspace()
    script = "import socket\nfor h, p in (('192.0.2.10', 80), ('web.test', 80), ('127.0.0.1', 2), ('127.0.0.53', 1)):\n" \
             " try: s = socket.create_connection((h, p), 5); s.settimeout(5); s.sendall(b'x'); print(h, p, s.recv(9))\n" \
             " except OSError as e: print(h, p, type(e).__name__)"
    r = world.ward("run", "-p", policy(t, [], mode="none", ingress=[7100]), "--",
                   "/usr/bin/python3", "-c", script, cwd=ws,
                   report=True)
    got = [line.split(" ", 2) for line in r.out.splitlines()]
    t.equal([g[2] for g in got[:2]], ["ConnectionRefusedError", "gaierror"], "outside")
    t.check(all(g[2] in ("b''", "ConnectionResetError", "BrokenPipeError", "TimeoutError")
                for g in got[2:]), f"the gateway's own: {got}")
    t.equal([line for line in world.log() if line.startswith("tcp")], [], "servers reached")
