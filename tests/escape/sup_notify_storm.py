"""Makes refused system calls as fast as it can, so that the supervisor burns its processor and
forgets the deadline.

layer: supervisor
control: without a sandbox nothing slows the calls down
"""
import os

from harness import engines

OPTIONS = ["--timeout", "1"]
CONTROL_SHELL = 'exec timeout -s KILL 1 "$@"'


def scene(s):
    s.args = {}


def attack(a):
    import threading
    count = [0]

    def storm():
        buffer = ctypes.create_string_buffer(8)
        while True:
            LIBC.syscall(165, buffer, buffer, buffer, 0, 0)
            LIBC.syscall(101, 16, 99999, 0, 0)
            count[0] += 2
    for _ in range(2):
        threading.Thread(target=storm, daemon=True).start()
    started = time.monotonic()
    while True:
        time.sleep(0.1)
        put("count", f"{count[0]} {time.monotonic() - started}")


def escaped(s, r):
    count, seconds = (s.t.read(s.ws, "count") or "0 1").split()
    s.t.say(f"{count} calls in {seconds} s")
    if s.control:
        return int(count) > 5000
    # late, wrongly reported, or a supervisor that spends more than half a processor on it
    spent = os.times()
    s.t.say("processor time of all children so far: "
            f"{spent.children_user + spent.children_system:.2f} s")
    return r.rc != 124 or r.seconds > engines.time_limit(1) + 2 * engines.patience()
