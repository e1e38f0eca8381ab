#!/usr/bin/python3
"""Wraps Markdown at 100 columns: wrap() for generators, `wrap_markdown.py FILE...` for files.

Paragraphs and list entries are wrapped. Headings, tables, fenced blocks and lines that begin with
white space (outside of lists) or HTML stay as they are: a row of a table cannot be broken.
"""
import pathlib
import re
import sys
import textwrap

COLUMNS = 100


def _fill(lines):
    text = " ".join(lines)
    indent = "  " if re.match(r"[-*] ", text) else ""
    return textwrap.wrap(text, COLUMNS, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def wrap(text):
    """The same document, at most 100 columns wide where that is possible."""
    out, open_lines, fenced = [], [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        if open_lines and not fenced and re.match("[-*] ", open_lines[0]) and line.startswith("  "):
            line = line.lstrip()	# an entry of a list goes on
        fixed = fenced or fence or not line or line[0] in "#|<! \t"
        if open_lines and (fixed or re.match(r"[-*] ", line)):
            out += _fill(open_lines)
            open_lines = []
        if fixed:
            out.append(line)
        else:
            open_lines.append(line)
        fenced ^= fence
    return "\n".join(out + (_fill(open_lines) if open_lines else [])) + "\n"


if __name__ == "__main__":
    for path in map(pathlib.Path, sys.argv[1:]):
        path.write_text(wrap(path.read_text()))
