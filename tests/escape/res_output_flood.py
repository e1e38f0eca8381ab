"""Floods the caller with output on both streams.

layer: limits
control: without a sandbox all of it arrives
"""
OPTIONS = ["--set", "resources.output_limit=1M"]


def attack(a):
    block = b"x" * 65536
    for _ in range(160):
        os.write(1, block)
        os.write(2, block)


def escaped(s, r):
    return len(r.out_bytes) + len(r.err_bytes) > 4 << 20
