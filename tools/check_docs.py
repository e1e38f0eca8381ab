#!/usr/bin/python3
"""Checks that the documents name what exists.

Reads every Markdown file of the tree and, in the text outside of fenced blocks:
- a file in inline code (`run/box.c`, `tables/policy.def`, `serve_*.c`) must exist: below the top
  directory, src/, tests/, the document's own directory, or, named without a directory, anywhere;
- a test function in inline code (`test_limits.py::test_cpu`, `test_cpu`) must exist in its file;
- a relative link must lead to a file, and its #anchor to a heading of that file;
- a type or function in inline code (`struct want`, `decide_name()`) must be in a C file;
- a promise or gap (an item of SECURITY.md or docs/security/*.md) names its test, and a gap its
  mitigation, or says that there is none;
- a line is at most 100 columns wide, unless it is a row of a table or one long link.
Every directory of src has a line in ARCHITECTURE.md, in the order of check_layers.py, and a
README.md that says "May include:" what check_layers.py allows. Comments of C sources in src may
only name files that exist.
Inline code with a space is a command: only its words that begin with a directory of the tree count.
Prints each problem as file:line, and "N passed, N failed" over the files read.

    check_docs.py [--top DIR] [--write]

With --write it first mends the "May include:" paragraphs.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True
import check_layers  # noqa: E402

FILE = re.compile(r'^[A-Za-z0-9_.*?\[\]/-]*[A-Za-z0-9_*?\]]\.(?:c|h|\[ch\]|def|py|S|cpp|sh|md)$'
                  r'|^[\w/]+/meson\.build$')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
NAMED = re.compile(r'(?<![\w./*<"-])([a-z][\w/]*\.(?:c|h|def|py))\b(?!["\w(])')
SPAN = re.compile(r'(`+)(.+?)\1', re.S)
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
TEST = re.compile(r'^(?:([\w/]+\.(?:py|c))::)?(test_\w+)$')
TYPE = re.compile(r'^(?:struct|enum) (\w+)$')
FUNCTION = re.compile(r'^(\w+)\(\)$')
ITEM = re.compile(r'^(?:- |\d+\. )\*\*.*?(?=\n- |\n\d+\. |\n\n|\Z)', re.M | re.S)
WIDTH = 100

# Documents that a program writes: their tables decide how wide they are.
WRITTEN_BY_PROGRAMS = {'docs/bench-*.md', 'docs/engines*.md', 'docs/events.md'}
# Names in documents and comments that are files of users, of the C library or of other programs.
FOREIGN = {'setup.py', 'conftest.py', 'main.py', 'agent.py', 'elf.h', 'seccomp.h', 'libm.h',
           'linux/landlock.h', 'linux/seccomp.h', 'coredump.c'}


def list_files(top):
    """The files of the tree as git knows them; without git, all that is no build directory's."""
    command = ['git', '-c', 'safe.directory=*', '-C', top, 'ls-files', '-co', '--exclude-standard',
               '-z']
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [name for name in listed.stdout.split('\0') if name]
    paths = (path.relative_to(top) for path in top.rglob('*') if path.is_file())
    return [str(p) for p in paths if not p.parts[0].startswith(('build', '.'))]


class Tree:
    def __init__(self, top):
        self.top = top
        self.files = {name for name in list_files(top) if (top / name).is_file()}
        self.names = collections.defaultdict(list)
        for name in self.files:
            self.names[name.rsplit('/', 1)[-1]].append(name)
        self.first = {name.split('/')[0] for name in self.files if '/' in name}
        self.tests = collections.defaultdict(set)
        for name in self.files:
            if name.startswith('tests/') and name.endswith(('.py', '.c')):
                found = re.findall(r'^(?:def|static void) (test_\w+)', self.text(name), re.M)
                self.tests[name.rsplit('/', 1)[-1]].update(found)
        self.words = set()
        for name in self.files:
            if name.endswith(('.c', '.h', '.cpp')) and not name.startswith('fuzz/corpus'):
                self.words.update(re.findall(r'[A-Za-z_]\w+', self.text(name)))
        self.all_tests = set().union(*self.tests.values())

    def text(self, name):
        return (self.top / name).read_text(errors='replace')

    def has(self, name, beside=''):
        """Whether the file exists; a pattern must match one."""
        name = name.removeprefix('./')
        if '/' not in name:
            return any(fnmatch.fnmatchcase(n, name) for n in self.names)
        places = [name, 'src/' + name, 'tests/' + name, 'src/engine/' + name]
        if beside:
            places.append(f'{beside}/{name}')
        return any(p in self.files or any(fnmatch.fnmatchcase(f, p) for f in self.files)
                   for p in places)

    def has_source(self, name, beside):
        """The same for a comment of src, where a bare name is no test's."""
        if '/' in name:
            return self.has(name, beside)
        elsewhere = ('tests/', 'fuzz/', 'bench/')
        return any(not path.startswith(elsewhere) for path in self.names.get(name, ()))

    def has_test(self, file, function):
        if not file:
            return function in self.all_tests or f'{function}.py' in self.names
        return function in self.tests.get(file.rsplit('/', 1)[-1], ())


def without_blocks(text):
    """The text with fenced blocks emptied, so that line numbers stay."""
    out, fence = [], None
    for line in text.split('\n'):
        mark = line.lstrip()[:3]
        if fence is None and mark in ('```', '~~~'):
            fence = mark
            out.append('')
        elif fence is not None:
            fence = None if mark == fence else fence
            out.append('')
        else:
            out.append(line)
    return '\n'.join(out)


def anchors(text):
    found = set()
    for line in without_blocks(text).split('\n'):
        if line.startswith('#'):
            title = re.sub(r'[^\w\- ]', '', line.lstrip('#').strip().lower())
            found.add(title.replace(' ', '-'))
    return found


def code_problem(tree, code, beside):
    """What is wrong with one span of inline code, or None."""
    code = ' '.join(code.split())
    if 'NAME' in code:
        return None     # stands for any name
    known = TYPE.match(code) or FUNCTION.match(code)
    if known:
        return None if known.group(1) in tree.words | FOREIGN else f'nothing is called "{code}"'
    words = code.split(' ')
    for word in words:
        word = word.rstrip(',;:')
        test = TEST.match(word)
        if test and len(words) == 1:
            return None if tree.has_test(*test.groups()) else f'no test "{word}"'
        if '::' in word or not FILE.match(word) or word in FOREIGN:
            continue
        if len(words) > 1 and word.split('/')[0] not in tree.first:
            continue
        if word.startswith(('/', '.')) and not word.startswith('./'):
            continue        # a path of the machine or of a user's project
        if not tree.has(word, beside):
            return f'no file "{word}"'
    return None


def link_problem(tree, target, name):
    if re.match(r'^[a-z]+:', target):
        return None
    path, _, anchor = target.partition('#')
    file = pathlib.PurePosixPath(name)
    if path:
        full = (tree.top / file.parent / path).resolve()
        if not full.exists():
            return f'link to "{target}": no such file'
        file = full.relative_to(tree.top) if full.is_relative_to(tree.top) else None
    is_page = file and str(file).endswith('.md')
    if anchor and is_page and anchor not in anchors(tree.text(str(file))):
        return f'link to "{target}": no such heading'
    return None


def wide(name, text):
    if any(fnmatch.fnmatchcase(name, p) for p in WRITTEN_BY_PROGRAMS):
        return
    for number, line in enumerate(text.split('\n'), 1):
        if len(line) > WIDTH and not line.lstrip().startswith('|') and ' ' in line.strip():
            yield f'{name}:{number}: {len(line)} columns'


def untested(name, text):
    """Promises and gaps without a test or a mitigation; "see [" leads to the page that has them."""
    if not fnmatch.fnmatchcase(name, 'docs/security/*.md') and name != 'SECURITY.md':
        return
    text = text.partition('\n## The gaps that matter')[0]     # they lead to the topic pages
    for item in ITEM.finditer(text) if '*Test:*' in text else ():
        if '*Test:*' not in item.group() and 'see [' not in ' '.join(item.group().split()):
            number = text.count('\n', 0, item.start()) + 1
            yield f'{name}:{number}: names no test, nor that there is none'
    for part in re.finditer(r'^## Gaps.*?(?=\n## |\Z)', text, re.M | re.S):
        for item in ITEM.finditer(text, part.start(), part.end()):
            if not re.search(r'\*Mitigation:\*|see\s+\[', item.group()):
                number = text.count('\n', 0, item.start()) + 1
                yield f'{name}:{number}: names no mitigation, nor that there is none'


def check_document(tree, name):
    text = without_blocks(tree.text(name))
    beside = str(pathlib.PurePosixPath(name).parent)
    problems = [*wide(name, text), *untested(name, text)]
    for pattern, find in ((SPAN, lambda m: code_problem(tree, m.group(2), beside)),
                          (LINK, lambda m: link_problem(tree, m.group(1), name))):
        for match in pattern.finditer(text):
            problem = find(match)
            if problem:
                number = text.count('\n', 0, match.start()) + 1
                problems.append(f'{name}:{number}: {problem}')
    return problems


def check_comments(tree, name):
    text = tree.text(name)
    beside = str(pathlib.PurePosixPath(name).parent)
    problems = []
    for comment in COMMENT.finditer(text):
        for match in NAMED.finditer(comment.group()):
            file = match.group(1)
            if file not in FOREIGN and not tree.has_source(file, beside):
                number = text.count('\n', 0, comment.start() + match.start()) + 1
                problems.append(f'{name}:{number}: the comment names "{file}", no such file')
    return problems


def may_include(room):
    """What check_layers.py says about a directory, in words."""
    order, may = check_layers.ORDER, check_layers.MAY[room]
    if not may:
        text = 'nothing else of src'
    elif room in order and may == check_layers.before(room):
        text = f'the directories before it, base to {order[order.index(room) - 1]}'
    elif set(order) <= may:
        text = '; '.join(['every directory of a run, base to run', *sorted(may - set(order))])
    else:
        text = ', '.join(sorted(may))
    for header, rooms in check_layers.SHARED.items():
        if room in rooms:
            text += f'; `{header}`'
    return text


def check_room(tree, room):
    name = f'src/{room}/README.md'
    if name not in tree.files:
        return [f'src/{room}: no README.md']
    if room not in check_layers.MAY:
        return [f'{name}: "{room}" is not in the table of tools/check_layers.py']
    wanted = f'May include: {may_include(room)}.'
    if wanted not in ' '.join(tree.text(name).split()):
        return [f'{name}: must say "{wanted}"']
    return []


def check_map(tree, rooms):
    """ARCHITECTURE.md has a line for every directory, those of a run in the order of the rule."""
    text = tree.text('ARCHITECTURE.md')
    start = max(text.find('\n## Directories'), 0)
    places = {room: text.find(f'`src/{room}`', start) for room in rooms}
    problems = [f'ARCHITECTURE.md: no line for src/{room}' for room in rooms if places[room] < 0]
    found = [places[room] for room in check_layers.ORDER if room in places]
    if not problems and found != sorted(found):
        problems.append('ARCHITECTURE.md: the directories are not in the order of check_layers.py')
    return problems


def mend_rooms(tree):
    for room in check_layers.MAY:
        file = tree.top / 'src' / room / 'README.md'
        if file.is_file():
            said = textwrap.fill(f'May include: {may_include(room)}.', WIDTH,
                                 break_long_words=False, break_on_hyphens=False)
            paragraphs = file.read_text().rstrip('\n').split('\n\n')
            file.write_text('\n\n'.join(said if p.startswith('May include:') else p
                                        for p in paragraphs) + '\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--top', type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument('--write', action='store_true')
    arguments = parser.parse_args()
    tree = Tree(arguments.top.resolve())
    if arguments.write:
        mend_rooms(tree)
    reports = {}
    for name in sorted(tree.files):
        if name.endswith('.md'):
            reports[name] = check_document(tree, name)
        elif name.startswith('src/') and name.endswith(('.c', '.h')):
            reports[name] = check_comments(tree, name)
    rooms = sorted({n.split('/')[1] for n in tree.files if re.match(r'src/[^/]+/', n)})
    for room in rooms:
        reports[f'src/{room}'] = check_room(tree, room)
    if 'ARCHITECTURE.md' in tree.files:
        reports['the map of src'] = check_map(tree, rooms)
    bad = 0
    for problems in reports.values():
        bad += bool(problems)
        for problem in problems:
            print(problem)
    print(f'{len(reports) - bad} passed, {bad} failed')
    return 1 if bad or not reports else 0


if __name__ == '__main__':
    sys.exit(main())
