#!/usr/bin/env python3
"""Makes docs/events.md from tables/events.def.

gen_events.py          writes it
gen_events.py --check  writes nothing; exits 1 with the name of the file if it is stale
"""
import pathlib
import sys

import def_reader
from wrap_markdown import wrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs/events.md'

HEAD = '''# Events

Made from `tables/events.def`; do not edit.

Everything that ward decides, and everything that happens to a sandbox from outside, is one event:
one JSON object on one line. Keys come in one order, a key that does not apply is left out, and
there is one spelling of each event only. What a sandbox chose (names, paths, arguments) is escaped:
control characters and characters that turn or hide text are `\\u` escapes, bytes that are not UTF-8
become U+FFFD, and what is too long is cut and marked.

| key | what |
| --- | --- |
| `seq` | number of the line in its journal, from 1; nothing is left out: what could not be written is a `journal.gap` |
| `time` | UTC, microseconds, by the host's clock |
| `run` | the run that it belongs to |
| `kind` | see below |
| `action` | `log` (it happened), `allow`, `deny`, `ask`, `approve` |
| the fields | see below |
| `hash` | SHA-256 of the hash of the line before (32 bytes; zeros for the first) and of this line up to here, without the comma: the chain |

'''


LEVELS = '''## Levels

| `audit.level` | what ward records | cost |
| --- | --- | --- |
| `basic` (default) | begin and end, limits, denied system calls, protected and quarantined files, names, connections with bytes, credentials, requests from outside | start of a run: 1.00 to 1.04 of one with `audit.journal: none` |
| `exec` | also every program start, with arguments, parent and directory, as observed | fork and exec of `true` in a loop: 1.08 to 1.24 of `basic` |
| `writes` | also files that are made, changed and removed, and by whom | 3 % of a build |
| `full` | also files that are read, and hosts that changed files may be from | slows every open |

Connections are reported as they open and close; repeated lookups of a name within a second are one
event. Denied system calls are reported one by one up to 100 of each, programs up to 3,000 per
second; the rest is one event with a `count`. The writer handles more than 100,000 events per
second, from one or from 50 sandboxes; `ward audit verify` reads more than 500,000 per second
(`bench/audit.py`).

'''


def page(rows):
    out = [HEAD, LEVELS, '## Kinds\n\n| kind | what | severity | when denied | OCSF class, '
           'activity |\n| --- | --- | --- | --- | --- |\n']
    for macro, a, line in rows:
        if macro == 'KIND':
            _, name, plain, denied, number, activity, text = a
            out.append(f'| `{name}` | {text} | {plain.lower()} | {denied.lower()} | {number}, '
                       f'{activity} |\n')
        elif macro != 'FIELD':
            raise def_reader.DefError(f'tables/events.def:{line}: {macro} is no row of this table')
    out.append('\n## Fields\n\n| field | type | what |\n| --- | --- | --- |\n')
    for macro, a, _ in rows:
        if macro == 'FIELD':
            out.append(f'| `{a[1]}` | {a[2].lower()} | {a[3]} |\n')
    return wrap(''.join(out))


def main():
    text = page(def_reader.read(ROOT / 'tables/events.def'))
    if sys.argv[1:] == ['--check']:
        if not PAGE.exists() or PAGE.read_text(encoding='utf-8') != text:
            print(f'{PAGE.relative_to(ROOT)} is stale', file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
