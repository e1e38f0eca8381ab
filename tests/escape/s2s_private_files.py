"""From one sandbox: reads what another of the same user keeps in /tmp, /dev/shm, /home/agent, /run
and in System V memory.

layer: mount namespace
control: two plain processes of the same user
"""
import os


def keep(a):
    for directory in a["dirs"]:
        attempt(put, f"{directory}/{a['name']}", a["token"])
    put("ready", "")
    time.sleep(20)


def scene(s):
    name = "ward-test-" + s.token[:12]
    dirs = ["/tmp", "/dev/shm"] if s.control else ["/tmp", "/dev/shm", "/home/agent", "/run",
                                                   "/var/tmp"]
    s.companion(keep, dirs=dirs, name=name, token=s.token)
    if s.control:
        for directory in dirs:
            s.t.defer(os.unlink, f"{directory}/{name}")
    s.args = {"dirs": dirs, "name": name}


def attack(a):
    for directory in a["dirs"]:
        attempt(lambda: print(slurp(f"{directory}/{a['name']}")))
