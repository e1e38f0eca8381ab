#!/usr/bin/env python3
"""Writes the names of every ENUM row's values as C: gen_policy_words.py tables/policy.def OUT"""
import sys

import def_reader


def main():
    table, out = sys.argv[1:]
    lines = ['/* Made from tables/policy.def by tools/gen_policy_words.py. */',
             'static const char enum_words[POLICY_FIELDS][6][16] = {']
    for macro, arguments, _ in def_reader.read(table):
        if macro == 'FIELD' and arguments[2] == 'ENUM':
            words = ', '.join(f'"{word}"' for word in arguments[3].split('|'))
            lines.append(f'\t[POLICY_F_{arguments[1]}] = {{ {words} }},')
    lines.append('};')
    with open(out, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


main()
