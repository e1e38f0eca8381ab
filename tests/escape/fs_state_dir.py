"""Reads and changes ward's own records (trust, quarantine, runs) from inside.

layer: mount namespace
control: the same user without a sandbox changes them
"""


def scene(s):
    s.t.write(s.t.state_dir, {"trust/x": s.token})
    s.args = {"dirs": [s.t.state_dir, s.t.runtime_dir]}


def attack(a):
    for directory in a["dirs"] + (["/var/lib/ward", "/run/ward"] if inside() else []):
        for top, _, files in os.walk(directory):
            for name in files:
                attempt(lambda: print(slurp(os.path.join(top, name))))
                attempt(put, os.path.join(top, name), "evil")


def escaped(s, r):
    return s.token in r.out or s.t.read(s.t.state_dir, "trust/x") != s.token
