#!/usr/bin/env python3
"""Makes docs/security/processes.md from tables/procs.def.

gen_procs.py          writes it
gen_procs.py --check  writes nothing; exits 1 with the name of the file if it is stale
"""
import pathlib
import sys
import textwrap

import def_reader

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / 'tables/procs.def'
PAGE = ROOT / 'docs/security/processes.md'

HEAD = '''# Processes and their rights

Made from `tables/procs.def`; do not edit.

Each process of ward's own gives up what it does not need before it reads a byte that an attacker
may have written. `src/confine` does it from the rows of the table; `tests/unit/confine.c` enters
each row and tries what it allows and what it must not. For all of them:

- A process keeps the descriptors that it has open; the rows say what it can get beyond those.
- A filter answers a system call that it refuses with `EPERM`. A call of another architecture kills
  the process; the calls of x32 are refused.
- Landlock is in force where the kernel has it (Linux 5.13; ports 6.7; signals and abstract sockets
  6.12). Where a process *requires* it, it does not run without.
- A limit is soft and hard, and never above the one that the process had.

'''
STEPS = {
    'NOBODY': 'as root becomes nobody',
    'NO_CAPS': 'drops its capabilities',
    'NO_BOUNDING': 'empties the bounding set',
    'NO_DUMP': 'is not dumpable',
    'NO_NEW_PRIVS': 'gets no new privileges',
}
RIGHTS = {'READ': 'read', 'WRITE': 'write', 'EXEC': 'execute'}
FILTERS = {'ALLOW_LIST': 'allow-list', 'DENY_LIST': 'deny-list', 'NO_FILTER': '-'}
UNITS = {'ONE': '', 'MIB': ' MiB', 'GIB': ' GiB'}


def words(argument):
    return [] if argument in ('0', None) else [word.strip() for word in argument.split('|')]


class Table:
    """The rows, by process."""

    def __init__(self, rows):
        self.procs, self.apart, groups, self.facts = {}, [], {}, {}
        for macro, a, line in rows:
            if macro == 'PROC':
                self.procs[a[0]] = a[1:]
                groups[a[0]] = {a[0]}
            elif macro == 'PROC_UNCONFINED':
                self.apart.append(a)
            elif macro == 'GROUP':
                groups[a[0]] = set().union(*(groups[name] for name in words(a[1])))
            else:
                for name in words(a[0]):
                    if name not in groups:
                        raise def_reader.DefError(f'{TABLE}:{line}: {name} is no process')
                for proc in set().union(*(groups[name] for name in words(a[0]))):
                    self.facts.setdefault((proc, macro), []).append(a[1:])

    def of(self, proc, macro):
        return self.facts.get((proc, macro), [])


def call_texts(table, proc):
    texts = [f'`{a[0]}`' for a in table.of(proc, 'CALL')]
    texts += [f'`{a[0]}` (argument {a[1]}: {" or ".join(a[2:])})'
              for a in table.of(proc, 'CALL_IF')]
    texts += [f'`{a[0]}` (argument {a[1]} without {a[2]})' for a in table.of(proc, 'CALL_NOT')]
    return sorted(texts)


def files_text(table, proc, landlock):
    if 'FILES' not in landlock:
        return 'as its user'
    trees = {}
    rows = [(rights, f'`{path}`')
            for rights, path in table.of(proc, 'TREE')] + table.of(proc, 'OWN_TREE')
    for rights, what in rows:
        trees.setdefault(' and '.join(RIGHTS[word] for word in words(rights)), []).append(what)
    texts = [f'{rights}: {", ".join(paths)}' for rights, paths in trees.items()]
    return '; '.join(texts) or 'none'


def network_text(table, proc, landlock):
    texts = []
    if 'BIND' in landlock:
        texts.append('binds no TCP port')
    if 'CONNECT' in landlock:
        ports = [a[0] for a in table.of(proc, 'PORT') + table.of(proc, 'OWN_PORT')]
        texts.append('connects to ' + (f'TCP port {" and ".join(ports)} only'
                                       if ports else 'no TCP port'))
    if 'SCOPE' in landlock:
        texts.append('no abstract socket or signal outside of itself')
    return '; '.join(texts) or 'not restricted by Landlock'


def bullet(name, text):
    return textwrap.fill(f'- {name}: {text}', 100, subsequent_indent='  ', break_on_hyphens=False,
                         break_long_words=False) + '\n'


def section(table, proc):
    name, program, steps, landlock, filtered, text = table.procs[proc]
    landlock = words(landlock)
    out = [f'### {name}\n\n', textwrap.fill(f'`{program}`: {text}.', 100) + '\n\n']
    did = [STEPS[step] for step in words(steps)]
    kept = [f'`CAP_{a[0]}`' for a in table.of(proc, 'KEEP')]
    if kept:
        did = [f'{text} but {", ".join(kept)}' if text == STEPS['NO_CAPS'] else text
               for text in did]
    out.append(bullet('gives up', '; '.join(did) or 'nothing more'))
    limits = [f'{a[0]} {a[1]}{UNITS[a[2]]}' for a in table.of(proc, 'LIMIT')]
    if limits:
        out.append(bullet('limits', ', '.join(limits)))
    required = ' (required)' if 'MUST' in landlock else ''
    out.append(bullet(f'files{required}', files_text(table, proc, landlock)))
    if landlock != ['NO_LANDLOCK']:
        out.append(bullet('network', network_text(table, proc, landlock)))
    if filtered == 'ALLOW_LIST':
        out.append(bullet('system calls', 'only ' + ', '.join(call_texts(table, proc))))
    elif filtered == 'DENY_LIST':
        out.append(bullet('system calls',
                          'all but '
                          + ', '.join(sorted(f'`{a[0]}`' for a in table.of(proc, 'DENY')))))
    else:
        out.append(bullet('system calls', 'no filter of its own'))
    return ''.join(out) + '\n'


def page(table):
    out = [HEAD, '| process | program | filter | Landlock |\n| --- | --- | --- | --- |\n']
    for proc, (name, program, _, landlock, filtered, _) in table.procs.items():
        locks = [word.lower() for word in words(landlock) if word not in ('NO_LANDLOCK', 'MUST')]
        must = ', required' if 'MUST' in words(landlock) else ''
        out.append(f'| [{name}](#{name}) | `{program}` | {FILTERS[filtered]} | '
                   f'{", ".join(locks) or "-"}{must} |\n')
    out.append('\n## Row by row\n\n')
    out += [section(table, proc) for proc in table.procs]
    out.append('## Processes that src/confine does not lock up\n\n')
    for name, program, rights, why in table.apart:
        out.append(bullet(f'**{name}** (`{program}`)', f'{why}. Its rights are {rights}.'))
    return ''.join(out)


def main():
    text = page(Table(def_reader.read(TABLE)))
    if sys.argv[1:] == ['--check']:
        if not PAGE.exists() or PAGE.read_text(encoding='utf-8') != text:
            print(f'{PAGE.relative_to(ROOT)} is stale', file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
