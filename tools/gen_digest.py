#!/usr/bin/python3
"""gen_digest.py NAME INPUT OUTPUT: a header in which NAME is the digest of a file: what was made of another version of it is not believed."""
import hashlib
import sys

name, source, header = sys.argv[1:]
with open(source, "rb") as f:
    digest = hashlib.sha256(f.read()).hexdigest()
with open(header, "w", encoding="ascii") as f:
    f.write(f'#define {name} "{digest}"\n')
