"""Makes a hard link to a file that .aiignore names, and reads it under the new name.

layer: mount namespace
control: the same user without a sandbox does it
"""


def scene(s):
    s.t.write(s.ws, {".aiignore": "/secret.key\n", "secret.key": s.token})


def attack(a):
    attempt(os.link, "secret.key", "other")
    attempt(lambda: print(slurp("other")))

    def by_descriptor():
        fd = os.open("secret.key", os.O_PATH)
        syscall("linkat", -100, f"/proc/self/fd/{fd}", -100, "again", 0x400)
        print(slurp("again"))
    attempt(by_descriptor)
