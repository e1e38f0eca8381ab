#!/usr/bin/python3
"""gen_digest.py NAME INPUT... OUTPUT: a header in which NAME is the digest of files: what was made
of another version of them is not believed."""
import hashlib
import sys

name, *sources, header = sys.argv[1:]
digest = hashlib.sha256()
for source in sources:
    with open(source, "rb") as f:
        digest.update(hashlib.sha256(f.read()).digest())
with open(header, "w", encoding="ascii") as f:
    f.write(f'#define {name} "{digest.hexdigest()}"\n')
