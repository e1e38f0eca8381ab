"""From one sandbox: swaps protected paths for links to a secret while fifty other sandboxes start
in the same workspace.

layer: supervisor
control: a copy that follows names, made again and again, catches the link
"""
import os
import subprocess
import time

from harness import engines

TIMEOUT = 120


def swap(a):
    os.makedirs("victim/.vscode", exist_ok=True)
    put("victim/.vscode/tasks.json", "{}\n")
    put("victim/.envrc", "old\n")
    put("ready", "")
    end = time.monotonic() + 60
    number = 0
    while time.monotonic() < end and not os.path.exists("stop"):
        number += 1
        for name in ("victim/.vscode", "victim/.envrc"):
            try:
                os.rename(name, "was")
                os.symlink(a["dir"] if name.endswith("vscode") else a["file"], name)
                time.sleep(0.0005)
                os.unlink(name)
                os.rename("was", name)
            except OSError:
                attempt(os.rename, "was", name)
        try:
            os.rename("victim", "victim2")
            os.symlink(a["dir"], "victim")
            os.unlink("victim")
            os.rename("victim2", "victim")
        except OSError:
            pass
        time.sleep(0.0005)


def attack(a):
    for name in ("victim/.vscode/secret.txt", "victim/.envrc", "victim/secret.txt"):
        try:
            print(slurp(name))
        except OSError:
            pass
    for name in ("victim/.vscode/planted", "victim/planted"):
        try:
            put(name, "evil")
        except OSError:
            pass


def run(s):
    path = s.secret()
    # the companion's own start must not protect what it is to swap: the names appear after it has
    # started
    s.companion(swap, dir=s.outside, file=path)
    caught, refused = False, 0
    if s.control:
        for _ in range(300):
            done = subprocess.run(["cat", "victim/.vscode/secret.txt", "victim/.envrc"], cwd=s.ws,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            caught = caught or s.token in done.stdout.decode()
            if caught:
                break
    else:
        for _ in range(engines.rounds(50)):
            r = s.t.ward("run", "-w", s.ws, "--", *s.program(), cwd=s.ws, timeout=s.timeout)
            caught = caught or s.token in r.out or s.token in r.err
            refused += r.rc == 125
            if len(s.t.log) > 120:
                del s.t.log[40:100]
    s.t.say(f"{refused} starts refused")
    s.t.write(s.ws, {"stop": ""})
    time.sleep(0.1)
    return caught or os.path.exists(os.path.join(s.outside, "planted"))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
