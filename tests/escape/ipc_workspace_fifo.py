"""Writes into a named pipe that lies in the workspace, or in a directory that is given read-only,
and that a program of the host's takes its orders from; takes from another what is meant for that
program.

layer: mount namespace
control: the same user without a sandbox is heard, and hears
"""
import os


def scene(s):
    s.given = s.t.fresh_dir("given")
    pipes = [os.path.join(s.ws, "run/orders"), os.path.join(s.given, "orders")]
    answers = [os.path.join(s.ws, "run/answers"), os.path.join(s.given, "answers")]
    os.mkdir(os.path.join(s.ws, "run"))
    s.log = os.path.join(s.outside, "orders.log")
    s.held = []	# both ends are open outside, so that nobody waits
    for path in pipes + answers:
        os.mkfifo(path)
        os.chmod(path, 0o666)
        s.held.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    for fd in s.held[2:]:
        os.write(fd, s.token.encode() + b"\n")
    s.options += ["--ro", s.given]
    s.args = {"pipes": pipes, "answers": answers}


def attack(a):
    def tell(path):
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        os.write(fd, b"ORDER OF THE ATTACK\n")

    def ask(path):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        print(os.read(fd, 100).decode())
    for path in a["pipes"]:
        attempt(tell, path)
    for path in a["answers"]:
        attempt(ask, path)
    attempt(os.rename, "run", "run2")
    attempt(tell, "run2/orders")


def escaped(s, r):
    heard = b""
    for fd in s.held[:2]:
        try:
            heard += os.read(fd, 4096)
        except BlockingIOError:
            pass
    for fd in s.held:
        os.close(fd)
    return s.token in r.out or b"ORDER" in heard
