"""Replaces the report file, which lies in the workspace, by a link to a file of the operator's,
which ward then overwrites.

layer: supervisor
control: a shell that writes its report at the end overwrites the file
"""
import os


def test_run(s):
    victim = s.secret("precious")
    report = os.path.join(s.ws, "out/report.json")
    os.mkdir(os.path.join(s.ws, "out"))
    s.args = {"report": report, "victim": victim}
    if s.control:
        s.t.run("sh", "-c", f'"$@"; echo "{{}}" > {report}', "sh", *s.program(), cwd=s.ws)
    else:
        r = s.t.ward("run", "-w", s.ws, "--report", report, "--", *s.program(), cwd=s.ws)
        s.t.check("[attack began]" in r.err, "the attack never ran")
    return s.t.read(victim) != s.token + "\n" or os.listdir(s.outside) != ["precious"]


def attack(a):
    attempt(os.unlink, a["report"])
    attempt(os.symlink, a["victim"], a["report"])
    attempt(os.rename, "out", "old")
    attempt(os.symlink, os.path.dirname(a["victim"]), "out")


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], test_run)
