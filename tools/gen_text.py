#!/usr/bin/python3
"""Text files as arrays of a C header: gen_text.py OUTPUT FILE... FILE a.b is text_a_b[], with a NUL
behind its end."""
import pathlib
import re
import sys

out = ['/* Made by tools/gen_text.py. */']
for name in sys.argv[2:]:
    path = pathlib.Path(name)
    array = re.sub(r'\W', '_', path.name)
    data = path.read_bytes() + b'\0'
    rows = (', '.join(map(str, data[i:i + 20])) for i in range(0, len(data), 20))
    out.append(f'static const char text_{array}[] = {{\n' + ',\n'.join(rows) + '\n};')
pathlib.Path(sys.argv[1]).write_text('\n'.join(out) + '\n')
