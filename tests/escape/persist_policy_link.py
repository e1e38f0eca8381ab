"""Removes the links under which the project has its policy and its list of hidden names, so that
the next run hides nothing.

layer: protected names; links are put back by the sweep
control: without a sandbox they stay removed, and the next run reads what was hidden
"""
import os


def run(s):
    found = False
    for detached in (False, True):
        ws = s.t.workspace({"conf/ignore": "secret.txt\n",
                            "conf/ward.yaml": "version: 1\nfilesystem:\n  hide: [other.txt]\n",
                            "secret.txt": s.token, "other.txt": s.token})
        for name, target in ((".aiignore", "conf/ignore"), ("ward.yaml", "conf/ward.yaml")):
            s.t.run("ln", "-s", target, f"{ws}/{name}", check=True)
        words = ["sh", "-c", "rm -f .aiignore ward.yaml; mkdir .aiignore"]
        if s.control:
            s.t.run(*words, cwd=ws, check=True)
            s.t.run("rmdir", ".aiignore", cwd=ws, check=True)
        elif detached:
            from harness.boxes import box
            b = box(s.t, "--", *words, cwd=ws)
            s.t.equal(s.t.ward("wait", b).rc, 0, "ward wait")
        else:
            s.t.equal(s.t.ward("run", "--", *words, cwd=ws).rc, 0, "the run")
        r = s.t.ward("run", "--", "sh", "-c", "cat secret.txt; cat other.txt", cwd=ws)
        s.t.check(r.rc != 125, f"the next run was refused: {r.err}")
        found |= s.token in r.out
        s.t.check(s.control or os.readlink(ws + "/.aiignore") == "conf/ignore",
                  "the link is not as it was")
    return found


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
