#!/usr/bin/env python3
"""Makes the JSON schema and the man page of tools.yaml from tables/tools.def.

gen_tools.py          writes docs/tools.schema.json and docs/man/tools.yaml.5
gen_tools.py --check  writes nothing; exits 1 with the name of each file that is stale
"""
import collections
import json
import re
import sys

import def_reader
import gen_policy as policy

ROOT = policy.ROOT
Key = collections.namedtuple('Key', 'object name member type values default help')
NAME = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$'


def read():
    objects, keys = {}, collections.defaultdict(list)
    for macro, arguments, _ in def_reader.read(ROOT / 'tables/tools.def'):
        if macro == 'OBJECT':
            objects[arguments[0]] = arguments[1]
        elif macro == 'KEY':
            keys[arguments[0]].append(Key(*arguments))
    return objects, keys


# --- JSON schema

def value_schema(key):
    shape = '' if key.values == 'long' else key.values
    reference = {'$ref': f'#/$defs/{key.values}'}
    if key.type == 'TEXT':
        return policy.string_schema(shape)
    if key.type == 'STRINGS':
        return policy.list_schema(policy.string_schema(shape))
    if key.type == 'ENUM':
        return policy.enum_schema(key.values)
    if key.type in ('BOOL', 'SAID'):
        return {'type': 'boolean'}
    if key.type in ('UINT', 'SIZE', 'CPUS', 'SECONDS'):
        return policy.number_schema(key.type, key.values)
    if key.type == 'RULES':
        return policy.list_schema({'anyOf': [{'type': 'string', 'minLength': 1},
                                             {'$ref': '#/$defs/rule'}]})
    if key.type == 'JSON':
        return {'type': ['object', 'boolean']}
    if key.type == 'SCALAR':
        return {'type': ['string', 'number', 'boolean']}
    if key.type == 'PAIRS':
        return {'type': 'object', 'additionalProperties': {'type': 'string'}}
    if key.type == 'MAP':
        return {'type': 'object', 'propertyNames': {'pattern': NAME}, 'maxProperties': 256,
                'additionalProperties': reference}
    return policy.list_schema(reference) if key.type == 'LIST' else reference


def object_schema(keys):
    properties = {k.name: {**value_schema(k), 'description': k.help} for k in keys}
    schema = {'type': 'object', 'properties': properties, 'additionalProperties': False}
    required = [k.name for k in keys if k.default == 'REQUIRED']
    return {**schema, 'required': required} if required else schema


def json_schema(keys):
    rules = policy.Table(ROOT / 'tables/policy.def').items['rule']
    definitions = {name: object_schema(rows) for name, rows in keys.items() if name != 'file'}
    schema = {'$schema': 'https://json-schema.org/draft/2020-12/schema', 'title': 'tools.yaml',
              'description': 'The tools that agents may call, what each may touch and what it is. '
                             'Made by tools/gen_tools.py; do not edit.',
              **object_schema(keys['file']),
              '$defs': {**definitions, 'rule': policy.object_schema(rules)}}
    return json.dumps(schema, indent=2) + '\n'


# --- man page

TYPE_TEXT = {'TEXT': 'text', 'BOOL': 'true or false', 'SAID': 'true or false',
             'STRINGS': 'list of text', 'RULES': 'list of host[:port] or rules',
             'JSON': 'JSON Schema', 'SCALAR': 'text, number, true or false',
             'PAIRS': 'map of text', 'UINT': 'whole number', 'SIZE': 'size', 'CPUS': 'processors',
             'SECONDS': 'time'}


def type_text(key):
    if key.type == 'ENUM':
        words = key.values.split('|')
        return ', '.join(words[:-1]) + ' or ' + words[-1]
    if key.type == 'MAP':
        return f'map of names to {key.values}'
    if key.type in ('LIST', 'PART'):
        return f'list of {key.values}' if key.type == 'LIST' else key.values
    ranged = key.type in ('UINT', 'SIZE', 'CPUS', 'SECONDS')
    return TYPE_TEXT[key.type] + (policy.range_text(key.values) if ranged else '')


INTRO = """\
.SH DESCRIPTION
One document says which tools agents may call: how each runs, what it may touch (its scope, which
becomes the walls of its sandbox), and what it is (its nature, which
.BR ward\\-check (1)
judges). It is YAML, or JSON if it begins with {; what
.BR ward.yaml (5)
says about values, anchors and errors holds here, too.
.PP
The arguments of a call are checked by type and replace {name} in the entries of run: each entry
becomes one argument of the program, whatever the value holds, and an entry whose parameter was not
given is left out. There is no shell. A value that begins with \\- is refused where the program
could take it for an option: put "\\-\\-" before it, or \\-\\-name= in front of it.
.SH SCHEMAS
input and output are JSON Schema 2020\\-12 without unevaluatedItems, unevaluatedProperties,
$dynamicRef, $vocabulary, and references out of the document: a schema with one of these is refused,
as are unknown keywords. format and content* describe and are not enforced. Patterns are read by
PCRE2; numbers are compared exactly, with up to 34 digits. A value has at most 1 MiB, 32 levels and
256 keys in a map, and no NUL."""

EXAMPLE = """\
.SH EXAMPLES
.nf
version: 1
tools:
  search:
    description: Finds lines with a word in the notes.
    run: [grep, \\-rn, "\\-\\-regexp={word}", \\-\\-, "{path}"]
    parameters:
      word: {type: string, max_length: 200}
      path: {type: path, default: notes}
    scope: {read: [notes]}
    nature: {private_data: true, untrusted_content: false,
             communicates_outside: false, destructive: false}
.fi"""


def man_page(objects, keys):
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)
    lines = ['.\\" Made by tools/gen_tools.py; do not edit.',
             f'.TH TOOLS.YAML 5 "" "ward {version}" "File Formats"', '.nh', '.ad l', '.SH NAME',
             'tools.yaml \\- annotated tools', INTRO, '.SH KEYS']
    for name, text in objects.items():
        lines += [f'.SS {name}', policy.sentence(text)]
        for key in keys[name]:
            lines += ['.TP', f'\\fB{policy.roff(key.name)}\\fR: '
                             f'\\fI{policy.roff(type_text(key))}\\fR', policy.sentence(key.help)]
            if key.default == 'REQUIRED':
                lines.append('Required.')
            elif key.default != 'OPTIONAL':
                lines.append(f'Default: \\fB{policy.roff(key.default)}\\fR.')
    lines += [EXAMPLE, '.SH SEE ALSO', '.BR ward\\-tool (1),', '.BR ward\\-check (1),',
              '.BR ward.yaml (5)']
    return '\n'.join(lines) + '\n'


def main():
    check = sys.argv[1:] == ['--check']
    objects, keys = read()
    stale = 0
    for path, text in (('docs/tools.schema.json', json_schema(keys)),
                       ('docs/man/tools.yaml.5', man_page(objects, keys))):
        file = ROOT / path
        if file.exists() and file.read_text(encoding='utf-8') == text:
            continue
        stale += 1
        if check:
            print(f'{path}: stale', file=sys.stderr)
        else:
            file.write_text(text, encoding='utf-8')
            print(f'wrote {path}')
    return 1 if check and stale else 0


if __name__ == '__main__':
    sys.exit(main())
