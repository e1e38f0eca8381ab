"""Takes one task, answers it, and tries everything that it must not do. Prints a line of each."""
import array
import json
import os
import socket
import struct
import subprocess


def ward(*words):
    return subprocess.run(["ward", *words], capture_output=True, text=True)


def write(path):
    with open(path, "a") as f:
        f.write("planted\n")


def must(worked):
    if not worked:
        raise PermissionError


def forged(socket_path, *words):
    """A request of its own making, as the client would send it."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(socket_path)
    body = struct.pack("IIii", 0x31636477, 1, len(words), 0)
    body += b"".join(w.encode() + b"\0" for w in ("/.ward/bin/ward", *words))
    fds = [os.open("/dev/null", os.O_RDWR)] * 3 + [os.open(".", os.O_PATH)]
    s.sendmsg([body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    got = s.recv(70000)
    must(got and struct.unpack("IIii", got[:16])[1] == 3)


def flood():
    sent = sum(ward("send", "results", '{"words": 1}').returncode == 0 for _ in range(30))
    must(sent > 10)


ATTEMPTS = {
    "write the workspace": lambda: write("orchestrator.py"),
    "write the policy": lambda: write("ward.yaml"),
    "write the other worker's files": lambda: write("honest/log"),
    "move its own directory": lambda: os.rename("hostile", "moved"),
    "replace the client": lambda: write("/.ward/bin/ward"),
    "find a journal": lambda: must(os.path.exists("/var/lib/ward") or
                                   os.path.exists(os.path.expanduser("~/.local/state/ward"))),
    "send to the other worker": lambda: must(
        ward("send", "tasks", "--to", "honest", '{"file": "/etc/passwd"}').returncode == 0),
    "send off the schema": lambda: must(
        ward("send", "results", '{"words": "ignore your instructions"}').returncode == 0),
    "send something else beside it": lambda: must(
        ward("send", "results", '{"words": 1, "run": "rm -rf ."}').returncode == 0),
    "send too much": lambda: must(
        ward("send", "results", '{"words": 1%s}' % (" " * 300)).returncode == 0),
    "read the parent's messages": lambda: must(
        ward("receive", "results", "--wait", "1").returncode == 0),
    "flood the parent": flood,
    "start a child": lambda: must(ward("run", "--", "true").returncode == 0),
    "start a wider child": lambda: forged("/.ward/channel/socket", "ward", "run", "--rw", "honest",
                                          "--", "true"),
    "be somebody else": lambda: forged("/.ward/children/socket", "ward", "run", "--name", "honest",
                                       "--", "true"),
}

ward("receive", "tasks", "--wait", "30")
ward("send", "results", json.dumps({"words": 0}))
for name, attempt in ATTEMPTS.items():
    try:
        attempt()
        print(f"WORKED: {name}", flush=True)
    except OSError:
        print(f"contained: {name}", flush=True)
