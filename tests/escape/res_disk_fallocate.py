"""Fills the disk without writing: fallocate takes the blocks at once.

layer: limits
control: without a sandbox it gets them
"""
import os

OPTIONS = ["--disk", "16M"]


def attack(a):
    for number in range(4):
        fd = os.open(f"big{number}", os.O_CREAT | os.O_RDWR)
        attempt(os.posix_fallocate, fd, 0, 32 << 20)
    time.sleep(0.3)
    print("taken")


def escaped(s, r):
    return sum(e.stat().st_blocks * 512 for e in os.scandir(s.ws)) > 80 << 20
