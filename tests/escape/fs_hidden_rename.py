"""Moves a file that .aiignore names, or its parent, or its parent's parent, and reads it under the
new name.

layer: mount namespace
control: the same user without a sandbox does it
"""


def scene(s):
    s.t.write(s.ws, {".aiignore": "conf/deep/secret.key\n", "conf/deep/secret.key": s.token})


def attack(a):
    for source, target, name in (("conf/deep/secret.key", "moved", "moved"),
                                 ("conf/deep", "deep2", "deep2/secret.key"),
                                 ("conf", "conf2", "conf2/deep/secret.key")):
        if attempt(os.rename, source, target) is None:
            attempt(lambda: print(slurp(name)))

    def exchange():
        os.mkdir("decoy")
        syscall(316, -100, "conf", -100, "decoy", 2)
        print(slurp("decoy/deep/secret.key"))
    attempt(exchange)
