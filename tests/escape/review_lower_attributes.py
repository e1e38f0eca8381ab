"""Prepares attributes in the workspace in a direct run, so that the overlay of a later run under
review shows what is hidden there.

layer: review
control: the same user without a sandbox reads it
"""
import os


def attack(a):
    if a["round"] == 1:
        os.mkdir("visible")
        put("visible/f", "f\n")
        put("empty", "")
        for name, value in (("redirect", b"/secret"), ("opaque", b"x"), ("metacopy", b""),
                            ("origin", b"")):
            attempt(os.setxattr, "visible", "user.overlay." + name, value)
            attempt(os.setxattr, "empty", "user.overlay." + name, b"/secret/key"
                    if name == "redirect" else value)
        return
    for top in (".", "visible"):
        attempt(lambda t=top: print(os.listdir(t)))
    for path in ("visible/key", "empty", "secret/key"):
        attempt(lambda p=path: print(slurp(p)))


def run(s):
    s.t.write(s.ws, {"secret/key": s.token})
    seen = ""
    for number, options in ((1, []), (2, ["--review"])):
        s.args = {"round": number}
        s.options = [*options, "--set", "filesystem.hide=['secret/']"]
        seen += s.run().out
    s.t.ward("discard", cwd=s.ws)
    return s.token in seen


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
