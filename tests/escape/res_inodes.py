"""Makes files without end, in the workspace and in the private directories.

layer: limits
control: without a sandbox it makes them all
"""
import os

OPTIONS = ["--set", "resources.inode_limit=500"]


def scene(s):
    s.args = {"dirs": [s.ws] if s.control else ["/tmp", "/dev/shm", "/home/agent", s.ws]}


def attack(a):
    made = 0
    for directory in a["dirs"]:
        try:
            for number in range(1600):
                open(f"{directory}/n{number}", "w").close()
                made += 1
                if number % 200 == 0:
                    time.sleep(0.01)
        except OSError as error:
            print(directory, made, error)
        put("count", str(made))


def escaped(s, r):
    left = sum(1 for n in os.listdir(s.ws) if n.startswith("n"))
    return left > 1200 or int(s.t.read(s.ws, "count") or 0) > 3000
