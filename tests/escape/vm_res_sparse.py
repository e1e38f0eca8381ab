"""Leaves files that are far larger than what they hold: what comes back from the machine would fill
the host's disk, or take for ever.

layer: limits
control: without a sandbox they are there, and a copy that reads them writes all of it
"""
import os

SLOW = True
OPTIONS = ["--disk", "512M"]
SIZE = 8 << 30


def attack(a):
    for number in range(4):
        with open(f"sparse{number}", "wb") as f:
            f.truncate(8 << 30)
            f.write(b"x")


def escaped(s, r):
    taken = sum(e.stat().st_blocks * 512 for e in os.scandir(s.ws))
    if s.control:
        return sum(e.stat().st_size for e in os.scandir(s.ws)) >= 4 * SIZE
    s.t.say(f"{taken >> 20} MiB on disk after {r.seconds:.0f} s")
    return taken > 1 << 30
