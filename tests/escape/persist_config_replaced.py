"""Writes a protected file after somebody outside has replaced it by rename, which takes its
read-only mount away.

layer: protect
control: without a sandbox it is written
"""
import os
import threading
import time

from harness import engines

NEEDS = ["git"]


def scene(s):
    s.ws = s.cwd = s.t.git_repo()
    s.t.write(s.ws, {".envrc": "old\n"})
    s.old = s.t.read(s.ws, ".git/config")
    s.config = s.old + "# touched by the operator\n"

    def replace():
        s.wait_begun(os.path.join(s.ws, "started"))
        time.sleep(0.1)
        s.t.write(s.ws, {".git/config.new": s.config, ".envrc.new": "new\n"})
        os.rename(os.path.join(s.ws, ".git/config.new"), os.path.join(s.ws, ".git/config"))
        os.rename(os.path.join(s.ws, ".envrc.new"), os.path.join(s.ws, ".envrc"))
        s.t.write(s.ws, {"replaced": ""})
    threading.Thread(target=replace, daemon=True).start()


def attack(a):
    put("started", "")
    end = time.monotonic() + 5
    while not os.path.exists("replaced") and time.monotonic() < end:
        time.sleep(0.005)
    time.sleep(0.7)
    for name in (".git/config", ".envrc"):
        attempt(put, name, "evil\n", "a")
        put("new", "evil\n")
        attempt(os.replace, "new", name)


def escaped(s, r):
    # behind a wall that needs process.nesting the old ones are put back, and the operator's are in
    # the quarantine
    put_back = not s.control and engines.asked() == "gvisor"
    want = (s.old, "old\n") if put_back else (s.config, "new\n")
    if put_back:
        s.t.check(any(q.startswith(".envrc: replaced") for q in r.report["quarantine"]),
                  f"it is told: {r.report['quarantine']}")
    return (s.t.read(s.ws, ".git/config"), s.t.read(s.ws, ".envrc")) != want
