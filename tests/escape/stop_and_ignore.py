"""Outlives its deadline: ignores every signal, stops pid 1 and all other processes, and waits.

layer: limits
control: `timeout` without a sandbox sends SIGTERM and gives up
"""
OPTIONS = ["--timeout", "0.5"]


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
            time.sleep(3)
            os._exit(0)
    time.sleep(3)


CONTROL_SHELL = 'exec timeout 0.5 "$@"'


def escaped(s, r):
    return r.seconds > 2.5 if s.control else r.rc != 124 or r.seconds > 2.5
