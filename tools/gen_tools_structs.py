#!/usr/bin/python3
"""Makes tools_structs.h: one struct per OBJECT of tables/tools.def, parts before their wholes."""
import sys

import def_reader


def main(table, out):
    objects, keys = [], {}
    for macro, arguments, _ in def_reader.read(table):
        if macro == 'OBJECT':
            objects.append(arguments[0])
            keys[arguments[0]] = []
        elif macro == 'KEY':
            keys[arguments[0]].append(arguments)
    done, lines = [], ['/* Made by tools/gen_tools_structs.py; do not edit. */']

    def put(name):
        if name in done:
            return
        for key in keys[name]:
            if key[3] == 'PART':
                put(key[4])
        done.append(name)
        lines.append(f'struct tool_{name} {{')
        lines.append('\tstruct tool_head head;')
        for key in keys[name]:
            kind = f'struct tool_{key[4]}' if key[3] == 'PART' else f'TOOLS_C_{key[3]}'
            lines.append(f'\t{kind} {key[2]};')
        lines.append('};')

    for name in objects:
        put(name)
    with open(out, 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
