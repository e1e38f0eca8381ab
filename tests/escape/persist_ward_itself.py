"""Where ward is installed in a tree that the sandbox may write, overwrites ward, its gateway, which
is only started when the network is first used, and ward-image, which the next `ward image` starts.

layer: protected names, by where ward's own programs are
control: without a sandbox the user's own files are overwritten
"""
import os
import shutil

PLANT = """
for file in inst/libexec/ward/ward-image inst/libexec/ward/ward-gateway inst/bin/ward; do
    cat evil > $file; cp --remove-destination evil $file; mv evil $file
done
mv inst aside && cp -r aside inst && cp evil inst/bin/ward
cp evil inst/bin/ward-gateway
cp evil inst/bin/ward-vm-tool
true
"""


def run(s):
    built = os.path.dirname(s.t.ward_path)
    installed = {"bin/ward": s.t.ward_path}
    for name, part in (("ward-gateway", "gateway"), ("ward-image", "image")):
        installed[f"libexec/ward/{name}"] = next(p for p in (f"{built}/../libexec/ward/{name}",
                                                             f"{built}/../{part}/{name}")
                                                 if os.path.exists(p))
    with s.t.root():
        for name, source in installed.items():
            os.makedirs(os.path.dirname(f"{s.ws}/inst/{name}"), exist_ok=True)
            shutil.copy(source, f"{s.ws}/inst/{name}")
    s.t.write(s.ws, {"evil": "#!/bin/sh\necho evil\n"})
    s.t.run("chown", "-R", s.t.person.pw_name + ":", s.ws, root=True, check=True)
    words = ["sh", "-c", PLANT]
    if s.control:
        s.t.run(*words, cwd=s.ws)
    else:
        for how in ([], ["--review"]):
            r = s.t.run(f"{s.ws}/inst/bin/ward", "run", *how, "--", *words, cwd=s.ws)
            s.t.equal(r.rc, 0, f"ward run: {r.err}")
        s.t.run(f"{s.ws}/inst/bin/ward", "apply", cwd=s.ws)
    with s.t.root():
        same = all(open(f"{s.ws}/inst/{name}", "rb").read() == open(source, "rb").read()
                   for name, source in installed.items())
    return not same or any(os.path.exists(f"{s.ws}/inst/bin/{name}")
                           for name in ("ward-gateway", "ward-vm-tool"))


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
