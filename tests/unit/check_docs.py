#!/usr/bin/python3
"""tools/check_docs.py can fail: a small tree that passes, and one change at a time that must not.

Usage: check_docs.py TOOL. Prints each case that went wrong, and "N passed, N failed".
"""
import pathlib
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]
TREE = {
    'docs/page.md': '# A page\n\nSee `base/err.h`, `tests/run/test_one.py`, `test_first` and\n'
                    '[the head](../README.md#the-head). `struct ward_err`, `fail()`, `err.*`.\n',
    'README.md': '# The head\n\n`make test` and `python3 agent.py` are commands.\n\n'
                 '```\nno/such/file.c\n```\n',
    'src/base/README.md': '# base\n\nMay include: nothing else of src.\n',
    'src/base/err.h': '/* Errors, see err.c. */\nstruct ward_err;\nint fail(void);\n',
    'src/base/err.c': '#include "base/err.h"\n',
    'tests/run/test_one.py': 'def test_first(t):\n    pass\n',
}
# what is changed, and what must be said then
CASES = [
    ({}, None),
    ({'docs/page.md': 'See `base/gone.h`.\n'}, 'no file "base/gone.h"'),
    ({'docs/page.md': 'See `gone.c`.\n'}, 'no file "gone.c"'),
    ({'docs/page.md': 'See `gone_*.py`.\n'}, 'no file "gone_*.py"'),
    ({'docs/page.md': 'See `tests/run/test_gone.py`.\n'}, 'no file "tests/run/test_gone.py"'),
    ({'docs/page.md': 'See `test_second`.\n'}, 'no test "test_second"'),
    ({'docs/page.md': 'See `test_one.py::test_second`.\n'}, 'no test "test_one.py::test_second"'),
    ({'docs/page.md': 'See `struct gone`.\n'}, 'nothing is called "struct gone"'),
    ({'docs/page.md': 'See `gone()`.\n'}, 'nothing is called "gone()"'),
    ({'docs/page.md': 'See [it](gone.md).\n'}, 'no such file'),
    ({'docs/page.md': 'See [it](../README.md#gone).\n'}, 'no such heading'),
    ({'docs/page.md': 'Run `cat src/base/gone.c`.\n'}, 'no file "src/base/gone.c"'),
    ({'SECURITY.md': '1. **One.** *Test:* `test_first`.\n2. **Two.** None.\n'}, 'names no test'),
    ({'docs/security/x.md': '## Gaps\n\n- **One.** *Test:* none.\n'}, 'names no mitigation'),
    ({'docs/page.md': 'word ' * 21 + '\n'}, '105 columns'),
    ({'src/base/err.c': '/* see gone.c */\n'}, 'the comment names "gone.c"'),
    ({'src/base/err.c': '/* see test_one.py */\n'}, 'the comment names "test_one.py"'),
    ({'src/base/README.md': '# base\n'}, 'must say "May include: nothing else of src."'),
    ({'ARCHITECTURE.md': '## Directories\n\n| `src/base` | errors |\n'}, None),
    ({'ARCHITECTURE.md': '## Directories\n'}, 'no line for src/base'),
    ({'src/base/README.md': None}, 'src/base: no README.md'),
    ({'src/new/file.c': '\n', 'src/new/README.md': '# new\n'}, '"new" is not in the table'),
]


def try_case(change, wanted):
    with tempfile.TemporaryDirectory() as top:
        for name, text in {**TREE, **change}.items():
            path = pathlib.Path(top, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                path.write_text(text)
        r = subprocess.run([sys.executable, TOOL, '--top', top], capture_output=True, text=True,
                           check=False)
        if wanted is None:
            return r.returncode == 0, r.stdout + r.stderr
        return r.returncode == 1 and wanted in r.stdout, r.stdout + r.stderr


def main():
    bad = 0
    for change, wanted in CASES:
        fine, said = try_case(change, wanted)
        if not fine:
            bad += 1
            print(f'{change}: wanted {wanted!r}, got:\n{said}')
    print(f'{len(CASES) - bad} passed, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
