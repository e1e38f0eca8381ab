"""Connections to servers that are kept for the next request, and servers that end them without a
word."""
import json
import os

from harness.world import policy, serve, trusted_world

PORT = 9445

# Says that the connection stays, and ends it: at once with the answer, or a moment later, when it
# lies in the pool or has the next request.
SERVER = r"""
import socket, ssl, sys, threading, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/server.pem", sys.argv[1] + "/server.key")
count = 0
def serve(raw, number):
    try:
        c = context.wrap_socket(raw, server_side=True)
        while b"\r\n\r\n" not in c.recv(4096):
            pass
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n")
        if number % 3:
            time.sleep(0.001 * (number % 3))
        c.close()
    except OSError:
        raw.close()
with socket.create_server(("0.0.0.0", 9445), backlog=64) as listener:
    while True:
        raw, _ = listener.accept()
        count += 1
        threading.Thread(target=serve, args=(raw, count), daemon=True).start()
"""

CLIENT = r"""
import http.client, json, ssl, threading
context = ssl.create_default_context()
failed = []
def ask_often(rounds):
    c = http.client.HTTPSConnection("web.test", 9445, timeout=15, context=context)
    for i in range(rounds):
        try:
            c.request("GET", "/")
            r = c.getresponse()
            if (r.status, r.read()) != (200, b"hello\n"):
                failed.append(r.status)
        except Exception as error:
            failed.append(repr(error))
            return
threads = [threading.Thread(target=ask_often, args=(40,)) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(json.dumps(failed))
"""


def test_server_ends_silently(t):
    """No request waits for a connection that has ended, and none that can be repeated is lost with
    it."""
    world = trusted_world(t)
    t.write(world.dir, {"silent.py": SERVER})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "silent.py"),
                     world.certificates], PORT)
    ws = t.workspace({"client.py": CLIENT})
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [PORT], "mode": "inspect"}]), "--",
                   "/usr/bin/python3", "client.py", cwd=ws, timeout=60)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    t.equal(json.loads(r.out), [], "requests that failed")


PROXIED = r"""
import socket, sys
head = b"CONNECT web.test:9445 HTTP/1.1\r\nHost: web.test:9445\r\n" + b"".join(
    b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(28)) + b"\r\n"
answers = []
for i in range(1300):
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    try:
        s.sendall(head)
        answers.append(s.recv(4096).split(b"\r\n")[0].decode())
    except OSError as error:
        answers.append(type(error).__name__)
    s.close()
print(sorted(set(answers)))
"""


def test_large_heads_for_the_proxy(t):
    """What a proxy's client said to get through is given back when its requests are looked into,
    however many there were."""
    world = trusted_world(t)
    t.write(world.dir, {"silent.py": SERVER})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "silent.py"),
                     world.certificates], PORT)
    r = world.ward("run", "-p",
                   policy(t, [{"host": "web.test", "ports": [PORT], "mode": "inspect"}]), "--",
                   "/usr/bin/python3", "client.py",
                   cwd=t.workspace({"client.py": PROXIED}), report=True, timeout=60)
    t.equal((r.rc, r.out.strip()), (0, "['HTTP/1.1 200 Connection established']"),
            f"answers ({r.err})")
    t.equal(r.report["denials"], [], "denials")
