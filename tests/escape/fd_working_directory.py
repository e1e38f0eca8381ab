"""Starts in a directory outside the workspace (`ward run -w WS` called elsewhere) and reads what
lies there.

layer: mount namespace
control: without a sandbox the working directory is simply there
"""


def scene(s):
    s.secret()
    s.cwd = s.outside


def attack(a):
    print("in", os.getcwd())
    for name in ("secret.txt", "/proc/self/cwd/secret.txt", "/proc/1/cwd/secret.txt"):
        attempt(lambda: print(slurp(name)))
    for pid in processes():
        try:
            print(slurp(f"/proc/{pid}/cwd/secret.txt"))
        except OSError:
            pass
