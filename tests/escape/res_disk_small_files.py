"""Fills the disk with many small files in the workspace.

layer: limits
control: without a sandbox it writes them all
"""
import os

OPTIONS = ["--disk", "16M"]


def attack(a):
    chunk = b"x" * 65536
    for number in range(1600):
        with open(f"f{number}", "wb", 0) as f:
            f.write(chunk)
        if number % 16 == 0:
            time.sleep(0.002)
    print("written")


def escaped(s, r):
    return sum(e.stat().st_blocks * 512 for e in os.scandir(s.ws)) > 80 << 20
