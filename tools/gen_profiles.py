#!/usr/bin/env python3
"""Makes the table of built-in profiles: gen_profiles.py OUTPUT PROFILE.yaml...

The bytes of each file become one string; ward carries them, so that one installed file is enough.
"""
import pathlib
import sys


def literal(data):
    """C text for the bytes, one line of the file a line."""
    lines = []
    for line in data.splitlines(keepends=True):
        text = ''.join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f'\\{b:03o}' for b in line)
        lines.append(f'\t"{text}"')
    return '\n'.join(lines)


def main():
    rows = []
    for name in sorted(sys.argv[2:]):
        file = pathlib.Path(name)
        rows.append(f'{{ "{file.stem}",\n{literal(file.read_bytes())} }},')
    pathlib.Path(sys.argv[1]).write_text('/* Made by tools/gen_profiles.py. */\n' + '\n'.join(rows)
                                         + '\n', encoding='ascii')


if __name__ == '__main__':
    main()
