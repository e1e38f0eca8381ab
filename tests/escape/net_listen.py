"""Listens inside on every address, so that the host or its network would connect to the attacker.

layer: net namespace
control: without a sandbox the host connects
"""
import os
import socket


def attack(a):
    listener = socket.socket()
    listener.bind(("0.0.0.0", 0))
    listener.listen(4)
    listener.settimeout(1.0)
    put("port.new", str(listener.getsockname()[1]))
    os.rename("port.new", "port")
    try:
        peer, _ = listener.accept()
        peer.send(b"evil")
        print("served")
    except OSError as error:
        print(error)


def run(s):
    if s.control:
        process = s.t.popen(s.program(), cwd=s.ws)
    else:
        process = s.t.ward_start("run", "-w", s.ws, "--", *s.program(), cwd=s.ws)
    port = os.path.join(s.ws, "port")
    s.t.wait_until(lambda: os.path.exists(port), 10, "the attack did not listen")
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", int(s.t.read(port))), timeout=1) as c:
            got = c.recv(10)
    except OSError as error:
        s.t.say(f"from outside: {error}")
    r = s.t.finish_ward(process)
    return got == b"evil" or "served" in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
