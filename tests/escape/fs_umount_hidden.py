"""Unmounts what covers a hidden file, and reads the file.

layer: no capabilities
control: in a throw-away user and mount namespace that covers the file the same way
"""
OPTIONS = ["--set", 'filesystem.hide=[".env"]']
CONTROL = "unshare -Urm"
CONTROL_SHELL = 'mount --bind /dev/null .env && exec "$@"'


def scene(s):
    s.t.write(s.ws, {".env": s.token})


def attack(a):
    for flags in (0, 2, 8):
        attempt(syscall, "umount2", ".env", flags)
    attempt(syscall, "umount2", os.getcwd(), 2)
    print(slurp(".env"))
