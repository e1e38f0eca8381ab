"""Waits until the operator renames the project's directory while the run goes on, and plants files
that the sweep would take away.

layer: sweep
control: without a sandbox they stay
"""
import os
import time


def scene(s):
    s.t.write(s.ws, {"README": "mine\n"})
    s.moved = s.ws + "-moved"
    ready = os.path.join(s.ws, "ready")

    def rename():
        s.wait_begun(ready)
        os.rename(s.ws, s.moved)
        time.sleep(60)
    s.t.background(rename)


def attack(a):
    put("ready", "")
    time.sleep(0.5)
    put(".envrc", "evil\n")
    time.sleep(0.2)


def escaped(s, r):
    if not os.path.isdir(s.moved):
        s.t.fail("nobody outside saw that the attack had begun, so nothing was shown")
    done = s.t.read(os.path.join(s.moved, ".envrc")) == "evil\n"
    os.rename(s.moved, s.ws)
    return done
