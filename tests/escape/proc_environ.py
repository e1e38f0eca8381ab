"""Reads the caller's secrets from the environment and command line of pid 1 and of every other
process.

layer: pid namespace
control: the same user without a sandbox reads them of the shell that started it
"""


def scene(s):
    s.env["DEPLOY_KEY"] = s.token
    s.t.popen(["sleep", "60"], env={"DEPLOY_KEY": s.token})


def attack(a):
    for pid in processes():
        if pid == os.getpid():
            continue
        for name in ("environ", "cmdline"):
            try:
                print(pid, name, slurp(f"/proc/{pid}/{name}"))
            except OSError as error:
                print(pid, name, error)
    print(dict(os.environ) if os.getppid() == 1 else "")


def escaped(s, r):
    return s.token in r.out
