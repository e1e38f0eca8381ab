#!/usr/bin/python3
"""tools/gen_seccomp.py refuses a table that contradicts itself: the real one passes, and with one
row more it must not.

Usage: gen_seccomp.py TOOL TABLE CC... Prints each case that went wrong, and "N passed, N failed".
"""
import os
import subprocess
import sys
import tempfile

TOOL, TABLE, *CC = sys.argv[1:]
OVERLAP = 'overlap: split the RANGE'
# the row that is added, in front of the others of its kind or behind them, and what must be said
CASES = [
    (None, 0, None),
    ('VALUE(ioctl, FREE, 0x7fff0000, STRICT)', 0, None),
    ('CALL(new_call, NEVER, DENY, any,\n     "one reason "\n     "in two parts")\n'
     'NUMBER(new_call, 3000)', 0, None),
    ('VALUE(ioctl, INSIDE, 0x5403, NEVER)', 0, OVERLAP),
    ('VALUE(ioctl, INSIDE, 0x5403, NEVER)', 1, OVERLAP),
    ('VALUE(ioctl, FIRST, 0x5401, STRICT)', 0, OVERLAP),
    ('VALUE(ioctl, LAST, 0x5411, NEVER)', 1, OVERLAP),
    ('VALUE(ioctl, TIOCSTI, 0x5412, STRICT)', 1, OVERLAP),
    ('RANGE(prctl, "around a value", 34, 36, STRICT)', 0, OVERLAP),
    ('RANGE(prctl, "around all", 0, 100, NEVER)', 1, OVERLAP),
    ('RANGE(ioctl, "backwards", 9, 8, NEVER)', 0, 'from 0x9 to 0x8 is empty'),
    ('VALUE(ioctl, X, 9, SOMETIMES)', 0, 'no such set: SOMETIMES'),
    ('SOMETHING(ioctl)', 0, 'not a row: SOMETHING(ioctl)'),
    ('VALUE(ioctl, X, 9,', 1, 'the last row has no end'),
]


def generate(top, text):
    """(exit status, what was said) of the generator with that table."""
    table = os.path.join(top, 'syscalls.def')
    with open(table, 'w', encoding='utf-8') as f:
        f.write(text)
    done = subprocess.run([sys.executable, TOOL, 'numbers', table, os.path.join(top, 'out.h'), *CC],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main():
    with open(TABLE, encoding='utf-8') as f:
        real = f.read()
    at = (real.index('\nNUMBER(') + 1, len(real))
    bad = 0
    with tempfile.TemporaryDirectory() as top:
        for row, end, wanted in CASES:
            text = real[:at[end]] + (row or '') + '\n' + real[at[end]:]
            status, said = generate(top, text)
            fine = status == 0 if wanted is None else status != 0 and wanted in said
            if not fine:
                bad += 1
                print(f'{row}: expected {wanted or "no error"}, got {status}: {said}')
    print(f'{len(CASES) - bad} passed, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
