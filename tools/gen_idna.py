#!/usr/bin/env python3
"""Writes the characters that ward takes in an internationalised host name as C: gen_idna.py OUT

Those that IDNA 2008 permits (RFC 5892: PVALID) and that need nothing done to them: no mapping
(lower case, compatibility), no normalisation whatever their neighbours are, no rule about their
context. A name of them has exactly one A-label.
"""
import sys
import unicodedata

PERMITTED = {0xdf, 0x3c2, 0x6fd, 0x6fe, 0xf0b, 0x3007}
CONTEXT = {0xb7, 0x375, 0x5f3, 0x5f4, 0x30fb, *range(0x660, 0x66a), *range(0x6f0, 0x6fa)}
FORBIDDEN = {0x640, 0x7fa, 0x302e, 0x302f, *range(0x3031, 0x3036), 0x303b}
# ignorable ones and blocks, old Hangul
IGNORED = {0x34f, 0x17b4, 0x17b5, 0x180b, 0x180c, 0x180d, 0x180f, *range(0x1100, 0x1200),
           *range(0xa960, 0xa980), *range(0xd7b0, 0xd800),
           *range(0x20d0, 0x2100), *range(0xfe00, 0xfe10), *range(0x1d100, 0x1d250),
           *range(0xe0000, 0xe1000)}
LETTERS = {'Ll', 'Lu', 'Lo', 'Nd', 'Lm', 'Mn', 'Mc'}


def composes():
    """Characters that may melt into the one in front of them."""
    found = set()
    for point in range(0x110000):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith('<'):
            found.add(int(parts[1], 16))
    return found


def stable(char):
    folded = unicodedata.normalize('NFKC', unicodedata.normalize('NFKC', char).casefold())
    return unicodedata.normalize('NFKC', folded) == char


def taken(point, melting):
    char = chr(point)
    if (point in CONTEXT or point in FORBIDDEN or point in IGNORED or point in melting
        or unicodedata.combining(char)):
        return False
    if unicodedata.category(char) not in LETTERS:
        return False
    return point in PERMITTED or stable(char)


def main():
    melting = composes()
    ranges = []
    for point in range(0x80, 0x110000):
        if not taken(point, melting):
            continue
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    with open(sys.argv[1], 'w', encoding='ascii') as out:
        out.write(f'/* Made by tools/gen_idna.py, Unicode {unicodedata.unidata_version}. */\n')
        out.write('static const struct { uint32_t first, last; } idna_taken[] = {\n')
        out.writelines(f'\t{{ {first:#x}, {last:#x} }},\n' for first, last in ranges)
        out.write('};\n')


main()
