"""Reads what is hidden under review: over the layers, by renaming and replacing what lies above it,
with a changed .aiignore in a continued run.

layer: review
control: the same user without a sandbox reads it
"""
import json
import os


def attack(a):
    import shutil
    for path in (".env", "conf/deep/key", "listed", "second", "/.ward/lower/.env",
                 "/.ward/layer/lower/.env"):
        attempt(lambda p=path: print(slurp(p)))
    attempt(os.rename, "conf", "conf2")
    attempt(lambda: print(slurp("conf2/deep/key")))
    attempt(shutil.rmtree, "conf/deep")
    attempt(os.link, "listed", "third")
    attempt(lambda: print(slurp("third")))
    for name in (".aiignore", "conf/.aiignore"):
        attempt(os.unlink, name)
        attempt(put, name, "!*\n")
    attempt(put, "ward.yaml", "filesystem: {hide: []}\n")


def run(s):
    s.t.write(s.ws, {".env": s.token, "conf/deep/key": s.token, "conf/.aiignore": "key\n",
                     "listed": s.token, ".aiignore": "/listed\n"})
    os.link(os.path.join(s.ws, ".env"), os.path.join(s.ws, "second"))
    s.options = ["--review", "--set", "filesystem.hide=['.env']"]
    r = s.run()
    seen = r.out
    if not s.control:
        run_id = json.loads(s.t.ward("diff", "--list", "--json",
                                     cwd=s.ws).out)["reviews"][-1]["run"]
        s.options = ["--continue", run_id, "--set", "filesystem.hide=['.env']"]
        seen += s.run().out
        for words in ((), ("--patch",), ("--json",), ("--stat",)):
            seen += s.t.ward("diff", *words, cwd=s.ws).out
        s.t.ward("discard", cwd=s.ws)
    return s.token in seen


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
