"""Replaces a link of the workspace that leads to ward's state directory by a directory of its own,
in which a policy is already trusted.

layer: protected names, by where ward's state is
control: without a sandbox the next run trusts the policy
"""
import hashlib
import os

ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = ("a state directory that the attack makes has no kernel for machines: the next run "
               "starts none")
POLICY = "version: 1\nfilesystem:\n  host_mounts: [%s]\n"


def run(s):
    s.secret()
    top, victim = s.t.fresh_dir("links"), s.t.workspace()
    s.t.write(top, {"real": None, "project/other": "x"})
    s.t.run("ln", "-s", "../real", top + "/project/state", check=True)
    s.t.run("chown", "-hR", s.t.person.pw_name + ":", top, root=True, check=True)
    s.t.write(victim, {"ward.yaml": POLICY % s.outside})
    trusted = hashlib.sha256((POLICY % s.outside).encode()).hexdigest()
    words = ["sh", "-c", "rm -rf state; mkdir -p state/ward/trusted; chmod 700 state/ward; echo > "
             f"state/ward/trusted/{trusted}"]
    env = {"WARD_STATE_DIR": top + "/project/state/ward"}
    read = ["run", "--", "cat", s.outside + "/secret.txt"]
    s.t.equal(s.t.ward(*read, cwd=victim, env=env).rc, 125, "before: a policy that nobody trusts")
    if s.control:
        s.t.run(*words, cwd=top + "/project", check=True)
    else:
        s.t.equal(s.t.ward("run", "--", *words, cwd=top + "/project", env=env).rc, 0, "the run")
    s.t.check(os.path.isdir(top + "/real"), "the real one is gone")
    return s.token in s.t.ward(*read, cwd=victim, env=env).out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
