"""Sends SIGKILL to every process that it may signal, kill(-1).

layer: pid namespace
control: in a throw-away pid namespace that holds a victim
"""
CONTROL = "unshare -Urpf --mount-proc"
CONTROL_SHELL = ('sleep 60 & v=$!; setsid "$@"; sleep 0.05; kill -0 $v 2>/dev/null || echo '
                 'victim dead')


def scene(s):
    s.pid = s.victim()["pid"]


def attack(a):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        attempt(os.kill, -1, sig)
    time.sleep(0.05)


def escaped(s, r):
    return "victim dead" in r.out or not s.alive(s.pid)
