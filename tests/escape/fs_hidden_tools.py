"""Has other programs read a file that .aiignore names: tar, cp, cat, git, grep.

layer: mount namespace
control: the same user without a sandbox does it
"""
NEEDS = ["git"]


def scene(s):
    s.t.write(s.ws, {".aiignore": "/.env\n", ".env": s.token, "a.txt": "x\n"})


def attack(a):
    import subprocess
    for command in ("tar cf - . | tr -d '\\000'", "cp .env copy; cat copy", "cat < .env",
                    "grep -r TOKEN .",
                    "git init -q /tmp/g && git --git-dir /tmp/g/.git --work-tree . add -A && "
                    "git --git-dir /tmp/g/.git show :.env", "sh .env", "ln -s .env l; cat l"):
        done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        print(done.stdout.decode(errors="replace"))
