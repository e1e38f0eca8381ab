"""Reads the rows of a tables/*.def file: NAME(argument, ...) with string, word and number
arguments."""
import re

TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|(?m:^#[^\n]*)|\s+'   # skipped: comments, directives, spaces
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r'|(?P<word>[A-Za-z_0-9]+(?:\s*\|\s*[A-Za-z_0-9]+)*)'
    r'|(?P<mark>[(),])', re.S)

ESCAPES = {'n': '\n', 't': '\t', '"': '"', '\\': '\\'}


class DefError(Exception):
    """The table is not written as a table."""


def tokens(text, path):
    at = 0
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            line = text.count('\n', 0, at) + 1
            raise DefError(f'{path}:{line}: cannot read {text[at:at + 20]!r}')
        if m.lastgroup:
            yield m.lastgroup, m.group(), text.count('\n', 0, at) + 1
        at = m.end()


def unquote(literal):
    return re.sub(r'\\(.)', lambda m: ESCAPES[m.group(1)], literal[1:-1])


def read_arguments(stream, path, line):
    """The arguments up to the closing parenthesis; strings that stand side by side are one; NULL is
    None."""
    arguments, current = [], []
    for kind, text, line in stream:
        if kind == 'string':
            current.append(('string', unquote(text)))
        elif kind == 'word':
            current.append(('word', None if text == 'NULL' else text))
        elif text == '(':
            raise DefError(f'{path}:{line}: a parenthesis inside a row')
        else:
            if not current or (len(current) > 1 and any(k != 'string' for k, _ in current)):
                raise DefError(f'{path}:{line}: an argument is missing or is two things')
            arguments.append(current[0][1] if len(current) == 1 else ''.join(v for _, v in current))
            current = []
            if text == ')':
                return arguments
    raise DefError(f'{path}:{line}: the row has no end')


def read(path):
    """[(macro, [arguments], line)] in the order of the file."""
    with open(path, encoding='utf-8') as f:
        stream = tokens(f.read(), path)
    rows = []
    for kind, text, line in stream:
        if kind != 'word' or next(stream, (None, None, 0))[1] != '(':
            raise DefError(f'{path}:{line}: expected NAME(')
        rows.append((text, read_arguments(stream, path, line), line))
    return rows
