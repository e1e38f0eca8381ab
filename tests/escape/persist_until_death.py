"""Plants a protected name again and again until the very end, from many processes, so that the
sweep might come too early.

layer: sweep
control: without a sandbox it is there afterwards
"""
import os


def attack(a):
    for _ in range(6):
        if os.fork() == 0:
            os.setsid()
            end = time.monotonic() + 3
            while time.monotonic() < end:
                put(".envrc", "evil\n")
                os.makedirs(".claude", exist_ok=True)
                put(".claude/settings.json", "evil\n")
            os._exit(0)
    time.sleep(0.1)


def escaped(s, r):
    if s.control:
        return os.path.exists(os.path.join(s.ws, ".envrc"))
    return any(os.path.lexists(os.path.join(s.ws, n)) for n in (".envrc", ".claude/settings.json"))
