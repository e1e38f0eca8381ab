"""Polls a hidden file while somebody outside replaces it by rename, as every editor does; the new
one must be hidden too.

layer: protect
control: without a sandbox the new content is read
"""
import os
import threading
import time


def scene(s):
    s.t.write(s.ws, {".aiignore": "/.env\n", ".env": "old\n"})

    def replace():
        s.wait_begun(os.path.join(s.ws, "started"))
        time.sleep(0.1)
        s.t.write(s.ws, {"..env.new": s.token})
        os.rename(os.path.join(s.ws, "..env.new"), os.path.join(s.ws, ".env"))
        s.t.write(s.ws, {"replaced": ""})
    threading.Thread(target=replace, daemon=True).start()


def attack(a):
    put("started", "")
    end = time.monotonic() + 5
    while not os.path.exists("replaced") and time.monotonic() < end:
        time.sleep(0.005)
    # the moment in which the host's rename has happened and the cover is not back is known and
    # stated; what must not be is that the file stays readable
    time.sleep(0.7)
    print("now:", slurp(".env"))
