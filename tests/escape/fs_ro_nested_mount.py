"""Writes below a read-only host directory into another file system that is mounted inside it (a
remount leaves nested mounts writable).

layer: mount namespace
control: the same user without a sandbox writes there
"""
import os

NEEDS = ["root"]


def scene(s):
    sub = os.path.join(s.outside, "sub")
    os.mkdir(sub)
    s.options += ["--ro", s.outside]
    s.args = {"sub": sub}
    owner = f"uid={s.t.person.pw_uid},gid={s.t.person.pw_gid},mode=755"
    s.wrap = ["unshare", "-m", "sh", "-c",
              f'mount -t tmpfs -o {owner} none {sub} && echo clean > {sub}/f && '
              f'chown {s.t.person.pw_uid} {sub}/f && "$@"; rc=$?; echo "f: $(cat {sub}/f)"; '
              'exit $rc', "sh"]


def attack(a):
    attempt(put, a["sub"] + "/f", "evil")
    attempt(put, a["sub"] + "/new", "evil")


def escaped(s, r):
    return "f: clean" not in r.out
