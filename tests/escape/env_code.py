"""Has the sandbox run code that the caller's environment names: BASH_ENV, LD_PRELOAD,
PYTHONSTARTUP, GIT_SSH_COMMAND.

layer: environment
control: without a sandbox the shell runs it
"""
import os


def scene(s):
    s.t.write(s.ws, {"start.sh": f"echo {s.token}\n"})
    path = os.path.join(s.ws, "start.sh")
    for name in ("BASH_ENV", "ENV", "PYTHONSTARTUP"):
        s.env[name] = path
    s.env["PROMPT_COMMAND"] = f"echo {s.token}"


def attack(a):
    import subprocess
    print(subprocess.run(["bash", "-c", "true"], stdout=subprocess.PIPE).stdout.decode())
    for name in ("BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "ENV", "PYTHONSTARTUP"):
        print(name, "set" if name in os.environ else "unset")
