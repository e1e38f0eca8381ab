#!/usr/bin/env python3
"""Makes the man page libward(3) from include/ward/ward.h: the header's own comments, every function
with its own.

gen_api.py          writes docs/man/libward.3
gen_api.py --check  writes nothing; exits 1 with the name of a file that is not what it would write
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / 'include/ward/ward.h'
PAGE = ROOT / 'docs/man/libward.3'

SYNOPSIS = r'''.SH SYNOPSIS
.nf
.B #include <ward/ward.h>
.PP
.B cc program.c $(pkg\-config \-\-cflags \-\-libs ward)
.fi'''

EXAMPLES = r'''.SH EXAMPLES
.nf
struct ward_spec *spec = ward_spec_new();
struct ward_box *box;
struct ward_error e;
const char *const argv[] = { "make", "test", NULL };
int code;

if (ward_spec_workspace(spec, ".", &e) < 0 ||
    ward_spec_command(spec, argv, &e) < 0 ||
    ward_start(spec, 0, &box, &e) < 0)
	errx(1, "%s: %s", e.what, e.why);
/* read ward_box_stream(box, 1, &e) to its end */
ward_wait(box, \-1, &code, &e);
ward_box_free(box);
ward_spec_free(spec);
.fi
.PP
More of them, and a module for Python, are installed in share/doc/ward/examples.
.SH SEE ALSO
.BR ward (1),
.BR ward.yaml (5)'''


def roff(text):
    return text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq')


def words(comment):
    """A comment's text as paragraphs."""
    lines = [re.sub(r'^\s*\*? ?', '', line) for line in comment.splitlines()]
    return [' '.join(p.split()) for p in '\n'.join(lines).split('\n\n') if p.strip()]


def version():
    return re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)


def page(text):
    """The man page of a header."""
    title, *about = words(re.match(r'/\*(.*?)\*/', text, re.S).group(1))
    name, brief = title.split(': ', 1)
    lines = ['.\\" Made by tools/gen_api.py; do not edit.',
             f'.TH {name.upper()} 3 "" "ward {version()}" "Library Functions"', '.nh',
             '.ad l', '.SH NAME', f'{name} \\- {roff(brief.split(". ")[0])}', SYNOPSIS,
             '.SH DESCRIPTION']
    for i, paragraph in enumerate(about):
        lines += ['.PP'] * (i > 0) + [roff(paragraph)]
    parts = re.finditer(r'/\* ---- (?P<section>.*?) ---- '
                        r'\*/|/\*(?P<comment>(?:(?!\*/).)*)\*/\n(?P<calls>(?:WARD_API [^;]*;\n)+)|'
                        r'(?P<type>(?:struct|enum) ward_\w+ \{.*?\n\};)', text, re.S)
    for part in parts:
        if part['section']:
            lines += [f'.SH {roff(part["section"]).upper()}']
        elif part['type']:
            code = [roff(line) for line in part['type'].expandtabs(8).splitlines()]
            lines += ['.PP', '.nf',
                      *['\\&' + line if line.startswith('.') else line for line in code], '.fi']
        else:
            calls = [' '.join(c.removeprefix('WARD_API ').split())
                     for c in re.findall(r'WARD_API [^;]*;', part['calls'])]
            lines += ['.TP', f'.B {roff(calls[0])}', *[f'.TQ\n.B {roff(c)}' for c in calls[1:]],
                      *[roff(p) for p in words(part['comment'])]]
    return '\n'.join(lines + [EXAMPLES]) + '\n'


def main():
    text = page(HEADER.read_text())
    stale = not PAGE.exists() or PAGE.read_text() != text
    if '--check' in sys.argv[1:]:
        if stale:
            print(PAGE.relative_to(ROOT))
        return 1 if stale else 0
    PAGE.write_text(text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
