"""Connections to servers that are kept for the next request, and servers that end them without a word."""
import json
import os

from harness.world import policy, serve, trusted_world

PORT = 9445

# Says that the connection stays, and ends it: at once with the answer, or a moment later, when it lies in the pool or has the next request.
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
    """No request waits for a connection that has ended, and none that can be repeated is lost with it."""
    world = trusted_world(t)
    t.write(world.dir, {"silent.py": SERVER})
    serve(t, world, ["/usr/bin/python3", os.path.join(world.dir, "silent.py"), world.certificates], PORT)
    ws = t.workspace({"client.py": CLIENT})
    r = world.ward("run", "-p", policy(t, [{"host": "web.test", "ports": [PORT], "mode": "inspect"}]), "--", "/usr/bin/python3", "client.py", cwd=ws, timeout=60)
    t.equal(r.rc, 0, f"exit code: {r.err}")
    t.equal(json.loads(r.out), [], "requests that failed")
