"""Outlives its deadline: ignores every signal, stops pid 1 and all other processes, and waits.

layer: limits
control: `timeout` without a sandbox sends SIGTERM and gives up
"""
from harness import engines

# so that it begins, on a busy machine too
OPTIONS = ["--timeout", "3" if engines.asked() == "gvisor" else "0.5"]


def scene(s):
    s.seconds = 3 * (1 if s.control else engines.patience())
    s.args = {"seconds": s.seconds}


def attack(a):
    for sig in range(1, 32):
        try:
            signal.signal(sig, signal.SIG_IGN)
        except OSError:
            pass
    if inside():
        for pid in [1, *processes()]:
            if pid != os.getpid():
                attempt(os.kill, pid, signal.SIGSTOP)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            time.sleep(a["seconds"])
            os._exit(0)
    time.sleep(a["seconds"])


CONTROL_SHELL = 'exec timeout 2 "$@"'	# by then it ignores it


def escaped(s, r):
    late = r.seconds > s.seconds - 0.5
    return late if s.control else r.rc != 124 or late
