#!/usr/bin/python3
"""The rules of form that a program can check: check_style.py [--update | --format] [FILE...]

  format    C is as clang-format 14 writes it (Debian 12's; others break lines elsewhere); skipped
            by name where that is not installed
  columns   no line of C, .def, .py, .sh and .md is wider than 100 columns, a tab counting 8; a row
            of a table of Markdown cannot be wrapped, and is excepted
  length    a function of C has at most 60 lines between its braces; excepted are tests, and a
            function with the comment "long: REASON" before or behind its opening brace

Files that were wider when the rule came have a row "COUNT PATH" in tools/style.known: as many wide
lines as then, and no more. --update lowers the counts to what is there now and never raises one.
--format writes the C files that have changed against the main branch in their right form.
Ends with "N passed, N failed".
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KNOWN = ROOT / 'tools/style.known'
COLUMNS, LINES = 100, 60
FORMATTER = 14	# the major version of clang-format whose form is kept
C = ('.c', '.h')
WRAPPED = C + ('.def', '.py', '.sh', '.md')
# made by generators, from sources that are wrapped, or copied from elsewhere
EXCEPT = re.compile(r'docs/(events|bench-[\w-]+|engines)\.md$|fuzz/corpus/')
OPEN_LONG = re.compile(r'/\* long: \S')


def listed(words):
    """The files of the tree, or those that were named: paths beneath ROOT."""
    if words:
        return [os.path.relpath(w, ROOT) for w in words]
    done = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return [p for p in done.stdout.split('\0') if p and (ROOT / p).is_file()]
    tops = ('src', 'tests', 'tables', 'tools', 'include', 'bench', 'fuzz', 'docs', 'examples')
    return [str(p.relative_to(ROOT)) for top in tops for p in sorted((ROOT / top).rglob('*'))
            if p.is_file()]


def is_wrapped(path):
    """Whether the rule of columns is for it; scripts without a suffix are few."""
    return path.endswith(WRAPPED)


def wide_lines(text, path=''):
    """The numbers of the lines that are too wide."""
    return [i for i, line in enumerate(text.split('\n'), 1) if len(line.expandtabs(8)) > COLUMNS
            and not (path.endswith('.md') and line.startswith('| '))]


def long_functions(text):
    """(line, lines between the braces) of each function that is too long and does not say why."""
    lines, start = text.split('\n'), None
    for i, line in enumerate(lines):
        if line == '{':
            start = i
        elif line.startswith('}') and start is not None:
            near = lines[max(0, start - 1)] + lines[start + 1]
            if i - start - 1 > LINES and not OPEN_LONG.search(near):
                yield start, i - start - 1
            start = None


def known():
    """{path: wide lines that it may have}"""
    if not KNOWN.exists():
        return {}
    lines = (line for line in KNOWN.read_text().splitlines() if line and not line.startswith('#'))
    return {path: int(count) for count, path in (line.split(None, 1) for line in lines)}


def formatter():
    """The clang-format of the version whose form is kept; None: it is not here."""
    for name in (f'clang-format-{FORMATTER}', 'clang-format'):
        if not shutil.which(name):
            continue
        done = subprocess.run([name, '--version'], capture_output=True, text=True)
        version = re.search(r'version (\d+)', done.stdout)
        if version and int(version[1]) == FORMATTER:
            return name
    return None


def unformatted(program, paths):
    """Those that clang-format would write otherwise."""
    done = subprocess.run(['xargs', '-0', '-r', '-P', str(os.cpu_count()), '-n', '40',
                           program, '--dry-run'],
                          input='\0'.join(paths), cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r'^([^:\n]+):\d+:\d+: warning: code should be', done.stderr, re.M)
    return sorted(set(found))


def changed():
    """C files that differ from the commit in which this branch left the main one, or from HEAD."""
    def git(*words):
        done = subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.split('\n')
    bases = (git('merge-base', 'HEAD', n)[0] for n in ('origin/HEAD', 'origin/main', 'main'))
    base = next(filter(None, bases), 'HEAD')
    names = {*git('diff', '--name-only', base), *git('ls-files', '--others', '--exclude-standard')}
    return sorted(p for p in names if p.endswith(C) and (ROOT / p).is_file())


def update(wide, old):
    """Writes tools/style.known. A new row is made only where there is no table yet."""
    rows = {p: min(n, old.get(p, n if not old else 0)) for p, n in wide.items()}
    head = '# Wide lines from before the rule: COUNT PATH. check_style.py --update lowers it.\n'
    KNOWN.write_text(head + ''.join(f'{n} {p}\n' for p, n in sorted(rows.items()) if n))


def main():
    words, program = sys.argv[1:], formatter()
    missing = f'no clang-format of version {FORMATTER} (tools/deps.sh install format)'
    if words[:1] == ['--format']:
        files = changed()
        if files and not program:
            sys.exit(f'check_style.py: {missing}')
        if files:
            subprocess.run([program, '-i', *files], cwd=ROOT, check=True)
        print('\n'.join(files) or 'no C file has changed')
        return 0
    paths = [p for p in listed([w for w in words if w != '--update']) if not EXCEPT.search(p)]
    wrong, wide, allowed = [], {}, known()
    for path in filter(is_wrapped, paths):
        text = (ROOT / path).read_text(encoding='utf-8', errors='replace')
        lines = wide_lines(text, path)
        wide[path] = len(lines)
        if len(lines) > allowed.get(path, 0):
            excuse = f', {allowed[path]} of them known' if path in allowed else ''
            wrong.append(f'{path}:{lines[-1]}: wider than {COLUMNS} columns'
                         f' ({len(lines)} such lines{excuse})')
        if path.endswith('.c') and not path.startswith('tests/'):
            wrong += [f'{path}:{at}: a function of {n} lines, at most {LINES}: split it, or say'
                      ' /* long: REASON */' for at, n in long_functions(text)]
    if '--update' in words:
        update(wide, allowed)
        return 0
    c_files = [p for p in paths if p.endswith(C)]
    if program:
        wrong += [f'{p}: not as .clang-format writes it: make format'
                  for p in unformatted(program, c_files)]
    else:
        print(f'skipped: the form of C: {missing}')
    print(''.join(f'{line}\n' for line in wrong), end='')
    bad = len({line.split(':')[0] for line in wrong})
    print(f'{len(paths) - bad} passed, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
