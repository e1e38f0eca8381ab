"""Plants so many protected names that the sweep might give up.

layer: sweep
control: without a sandbox they are there afterwards
"""
import subprocess


def attack(a):
    for number in range(400):
        os.mkdir(f"d{number}")
        put(f"d{number}/.envrc", "evil\n")


def escaped(s, r):
    found = subprocess.run(["find", s.ws, "-name", ".envrc"], stdout=subprocess.PIPE)
    left = found.stdout.count(b"\n")
    s.t.say(f"left: {left}")
    return left > 0
