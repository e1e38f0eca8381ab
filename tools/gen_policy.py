#!/usr/bin/env python3
"""Makes the JSON schema and the man page of ward.yaml from tables/policy.def.

gen_policy.py          writes docs/ward.schema.json and docs/man/ward.yaml.5
gen_policy.py --check  writes nothing; exits 1 with the name of each file that is stale
"""
import collections
import json
import pathlib
import re
import sys

import def_reader

ROOT = pathlib.Path(__file__).resolve().parent.parent
Field = collections.namedtuple('Field', 'path member type values default narrow later help')
Item = collections.namedtuple('Item', 'object name type values default help')
OBJECT_OF = {'MOUNTS': 'mount', 'RULES': 'rule', 'GRANTS': 'grant', 'SSH': 'ssh', 'SINKS': 'sink',
             'COMMANDS': 'commands', 'PRICES': 'price', 'WATCH': 'watch', 'LABELS': 'label',
             'CHANNELS': 'channel'}
SIZE = {'': 1, 'Ki': 1 << 10, 'Mi': 1 << 20, 'Gi': 1 << 30}

DIGITS = r'(0|[1-9][0-9]*)'
DECIMAL = DIGITS + r'(\.[0-9]+)?'
SIZE_TEXT = f'{DIGITS}|{DECIMAL}[kKmMgGtTpP][iI]?[bB]?|{DIGITS}[bB]'
TEXT = {'UINT': DIGITS, 'UINTS': DIGITS, 'SIZE': SIZE_TEXT,
        'MEMORY': f'{SIZE_TEXT}|([1-9][0-9]?|100)%',
        'MONEY': DECIMAL, 'CPUS': f'{DECIMAL}|{DIGITS}m',
        'SECONDS': f'{DECIMAL}|([0-9]+(\\.[0-9]+)?(d|h|m|s|ms))+'}
SHAPE = {'env': r'^[A-Za-z_][A-Za-z0-9_]*(=|\*?$)', 'pattern': r'^[^\r\n]+$',
         'service': r'^[a-z0-9-]{1,63}=.+:[0-9]+$',
         'host': r'^[^\s/@#?]+(/[0-9]+)?$', 'name': '^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$',
         'program': '^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$',
         'label': '^[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}$',
         'variable': '^[A-Za-z_][A-Za-z0-9_]*$', 'header': r'^[A-Za-z0-9-]+: [^\r\n]*\{\}[^\r\n]*$',
         'source': '^(env:[A-Za-z_][A-Za-z0-9_,]*|file:(/|~/).+|cmd:.+|keyring:.+|'
                   '(http:)?https?://.+)$'}
SHAPE.update({'method': "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}$", 'path': r'^[/*][!-~]*$',
              'parameter': '^[^= &#][^ &#]*$', 'condition': "^[A-Za-z0-9!#$%&'*+.^_`|~-]+:[ -~]*$",
              'media': '^[^ ;,]+$',
              'graphql': r'^(persisted|(query|mutation|subscription)(:[A-Za-z0-9_*]+)?)$',
              'json_rpc': '^[!-9;-~]+(:[!-~]+)?$',
              'git': '^(fetch|push|force|delete|options)$', 'repository': '^([/*][!-~]+|[*])$',
              'ref': '^(refs/[!-~]*|[*])$'})
PRESETS = [a[0] for macro, a, _ in def_reader.read(ROOT / 'tables/toolchains.def')
           if macro == 'PRESET']
CACHE_NAMES = list(dict.fromkeys(a[0] for _, a, _ in def_reader.read(ROOT / 'tables/caches.def')))
SHAPE['ssh_host'] = r'^([A-Za-z0-9._-]+@)?[^\s/@#?*-][^\s/@#?*]*$'
SHAPE['ssh_key'] = '^(agent(:SHA256:[A-Za-z0-9+/]{43})?|file:(/|~/).+)$'
METRICS = [a[1] for macro, a, _ in def_reader.read(ROOT / 'tables/metrics.def')
           if macro == 'METRIC']
SHAPE['fingerprint'] = '^[0-9A-Fa-f]{40}$'
SHAPE['watch_count'] = '^(%s)$' % '|'.join(METRICS)
SHAPE['canary_file'] = '^(~/|/).+$'
SHAPE['canary_remote'] = r'^[A-Za-z0-9_][A-Za-z0-9._-]*=https://[A-Za-z0-9_][A-Za-z0-9._-]*/.*$'
SHAPE['watch_except'] = '^(host|path|program|credential):.+$'
SHAPE['never'] = r'^(host:[^\s/@#?]+(/[0-9]+)?|path:[/~*].*|(program|credential):.+)$'
SHAPE['layer'] = r'^[^\n]*$'
SHAPE['toolchain'] = '^(auto|%s)$' % '|'.join(PRESETS)
SHAPE['cache'] = '^(%s)$' % '|'.join(CACHE_NAMES)


class Table:
    def __init__(self, path):
        self.groups, self.fields, self.items = {}, [], collections.defaultdict(list)
        for macro, arguments, _ in def_reader.read(path):
            if macro == 'GROUP':
                self.groups[arguments[0]] = arguments[1]
            elif macro == 'FIELD':
                self.fields.append(Field(*arguments))
            elif macro == 'ITEM':
                self.items[arguments[0]].append(Item(*arguments))

    def in_group(self, group):
        return [f for f in self.fields if f.path.startswith(group + '.')]

    def at_top(self):
        return [f for f in self.fields if '.' not in f.path]


def name(field):
    return field.path.split('.')[-1]


def amount(text, kind):
    """A bound as a JSON number, in the unit that a plain number has."""
    if kind in ('SIZE', 'MEMORY'):
        number, unit = re.fullmatch(r'(\d+)([A-Za-z]*)', text).groups()
        return int(number) * SIZE[unit]
    return float(text) if '.' in text else int(text)


# --- JSON schema

def number_schema(kind, values):
    low, high = re.match(r'([^.|]*(?:\.\d+)?)\.\.([^|]*)', values).groups()
    number = {'type': 'number' if kind in ('CPUS', 'SECONDS', 'MONEY') else 'integer'}
    if low:
        number['minimum'] = amount(low, kind)
    if high or number['type'] == 'integer':
        number['maximum'] = amount(high, kind) if high else (1 << 63) - 1
    choices = [number, {'type': 'string', 'pattern': f'^({TEXT[kind]})$'}]
    if values.endswith('|none'):
        choices += [{'const': 'none'}, {'type': 'null'}]
    return {'anyOf': choices}


def string_schema(values):
    shape = {'type': 'string', 'minLength': 1}
    if values in SHAPE:
        shape['pattern'] = SHAPE[values]
    return {'anyOf': [shape, {'type': 'null'}]} if values == 'null' else shape


def enum_schema(values):
    return {'enum': values.split('|')}


def list_schema(entry, **more):
    return {'type': 'array', 'items': entry, **more}


def value_schema(kind, values):
    if kind in ('UINT', 'SIZE', 'MEMORY', 'CPUS', 'SECONDS', 'MONEY'):
        return number_schema(kind, values)
    if kind == 'UINTS':
        port = number_schema(kind, values)
        return {'anyOf': [port, list_schema(port, minItems=1)]}
    if kind == 'STRING':
        return string_schema(values)
    if kind == 'STRINGS' and values == 'layer':
        return {'anyOf': [string_schema(values), list_schema(string_schema(values))]}
    if kind == 'STRINGS':
        return list_schema(string_schema(values))
    if kind == 'ENUM':
        return enum_schema(values)
    if kind == 'ENUMS':
        return {'anyOf': [enum_schema(values),
                          list_schema(enum_schema(values), minItems=1, uniqueItems=True)]}
    if kind == 'BOOL':
        return {'type': 'boolean'}
    if kind == 'INGRESS':
        port = number_schema('UINTS', '1..65535')
        port['anyOf'].append({'type': 'string', 'pattern': '^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$'})
        return {'anyOf': [{'const': 'deny_all'}, list_schema(port)]}
    if kind == 'TOOLCHAINS':
        return {'anyOf': [enum_schema('auto|none'), list_schema(string_schema(values))]}
    if kind == 'GPUS':
        return {'anyOf': [enum_schema('none|all'), list_schema(number_schema('UINTS', '0..63'))]}
    reference = {'$ref': f'#/$defs/{OBJECT_OF[kind]}'}
    if kind == 'COMMANDS':
        return reference
    if kind in ('MOUNTS', 'RULES'):
        return list_schema({'anyOf': [{'type': 'string', 'minLength': 1}, reference]})
    return list_schema(reference)


def object_schema(items):
    properties = {i.name: {**value_schema(i.type, i.values), 'description': i.help} for i in items}
    required = [i.name for i in items if i.default == 'REQUIRED']
    schema = {'type': 'object', 'properties': properties, 'additionalProperties': False}
    return {**schema, 'required': required} if required else schema


def default_of(field):
    if field.type in ('MOUNTS', 'RULES') or field.default == '[]':
        return []
    if field.type == 'COMMANDS':
        return {}
    if field.type in ('STRINGS', 'ENUMS'):
        return [w.strip() for w in field.default[1:-1].split(',')]
    if field.type == 'BOOL':
        return field.default == 'true'
    if field.default == 'null':
        return None
    return int(field.default) if field.default.isdigit() else field.default


def field_schema(field):
    return {**value_schema(field.type, field.values), 'description': field.help,
            'default': default_of(field)}


def json_schema(table):
    properties = {name(f): field_schema(f) for f in table.at_top()}
    for group, text in table.groups.items():
        properties[group] = {'type': ['object', 'null'], 'description': text,
                             'additionalProperties': False,
                             'properties': {name(f): field_schema(f)
                                            for f in table.in_group(group)}}
    schema = {'$schema': 'https://json-schema.org/draft/2020-12/schema', 'title': 'ward.yaml',
              'description': 'What a sandboxed agent may read, write, execute, reach and spend. '
                             'Made by tools/gen_policy.py; do not edit.',
              'type': ['object', 'null'], 'properties': properties, 'additionalProperties': False,
              '$defs': {key: object_schema(items) for key, items in table.items.items()}}
    return json.dumps(schema, indent=2) + '\n'


# --- man page

TYPE_TEXT = {'STRING': 'text', 'BOOL': 'true or false', 'UINT': 'whole number', 'SIZE': 'size',
             'MEMORY': 'size or share', 'CPUS': 'processors', 'SECONDS': 'time', 'MONEY': 'amount',
             'PRICES': 'list of prices', 'MOUNTS': 'list of paths or mounts',
             'INGRESS': 'deny_all or list of ports', 'GPUS': 'none, all or list of numbers',
             'RULES': 'list of rules', 'GRANTS': 'list of grants', 'SSH': 'list of keys',
             'COMMANDS': 'map', 'SINKS': 'list of sinks', 'WATCH': 'list of rules',
             'LABELS': 'list of labels', 'CHANNELS': 'list of channels', 'UINTS': 'list of numbers'}
STRINGS_TEXT = {'layer': 'path or name, or list of them',
                'program': 'list of names', '': 'list of text',
                'env': 'list of NAME, PREFIX* or NAME=VALUE',
                'pattern': 'list of gitignore patterns',
                'service': 'list of NAME=ADDRESS:PORT', 'host': 'list of hosts',
                'method': 'list of methods', 'path': 'list of paths',
                'parameter': 'list of NAME or NAME=PATTERN',
                'condition': 'list of NAME: PATTERN', 'media': 'list of media types',
                'graphql': 'list of OPERATION or OPERATION:FIELD',
                'json_rpc': 'list of METHOD or METHOD:NAME',
                'git': 'list of fetch, push, force, delete, options', 'repository': 'list of paths',
                'ref': 'list of refs'}
STRINGS_TEXT['ssh_host'] = 'list of [USER@]HOST[:PORT]'
STRINGS_TEXT['fingerprint'] = 'list of 40 hexadecimal digits'
STRINGS_TEXT['label'] = 'list of names'
STRINGS_TEXT['canary_file'] = 'list of paths'
STRINGS_TEXT['canary_remote'] = 'list of NAME=URL'
STRINGS_TEXT['variable'] = 'list of names of variables'
STRINGS_TEXT['watch_except'] = 'list of KIND:PATTERN'
STRINGS_TEXT['never'] = 'list of KIND:PATTERN'
STRINGS_TEXT['cache'] = 'list of ' + ', '.join(CACHE_NAMES)
TYPE_TEXT['TOOLCHAINS'] = 'auto, none or list of ' + ', '.join(PRESETS)
STRING_TEXT = {'watch_count': ', '.join(METRICS[:-1]) + ' or ' + METRICS[-1],
               'host': 'host', 'label': 'name', 'variable': 'name of a variable',
               'header': 'NAME: TEXT with {}', 'source': 'source',
               'ssh_key': 'agent, agent:SHA256:FINGERPRINT or file:PATH'}
NARROW_TEXT = {'LOWER': 'a lower value', 'HIGHER': 'a higher value', 'FEWER': 'fewer entries',
               'MORE': 'more entries'}


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^([.'])", r'\\&\1', text, flags=re.M)


def sentence(text):
    text = text[0].upper() + text[1:]
    return roff(text if text.endswith('.') else text + '.')


def range_text(values):
    bounds = values.split('|')[0]
    if '..' not in bounds:
        return ''
    low, high = re.match(r'([^.]*(?:\.\d+)?)\.\.(.*)', bounds).groups()
    none = ', or none' if values.endswith('|none') else ''
    if low == high:
        return f' {low}'
    return f' from {low} to {high}{none}' if high else f' of at least {low}{none}'


def type_text(kind, values):
    if kind == 'STRINGS':
        return STRINGS_TEXT[values]
    if kind == 'STRING' and values == 'name':
        return 'private or a name'
    if kind == 'STRING' and values in STRING_TEXT:
        return STRING_TEXT[values]
    if kind == 'STRING':
        return 'text or null' if values == 'null' else 'text'
    if kind in ('ENUM', 'ENUMS'):
        words = values.split('|')
        text = ', '.join(words[:-1]) + ' or ' + words[-1]
        return text + ', or a list of these' if kind == 'ENUMS' else text
    return TYPE_TEXT[kind] + range_text(values)


def narrow_text(field):
    if field.narrow == 'ANY':
        return []
    if field.narrow == 'SAME':
        return ['Any change counts as wider.']
    if field.type in ('ENUM', 'BOOL'):
        words = ['false', 'true'] if field.type == 'BOOL' else field.values.split('|')
        words = words if field.narrow == 'LOWER' else words[::-1]
        return [roff(f'From the narrowest to the widest: {", ".join(words)}.')]
    if field.type == 'COMMANDS':
        return ['A deny or ask less, and an allow more on top of an allow\\-list, count as wider.']
    lines = [f'{NARROW_TEXT[field.narrow].capitalize()} is narrower.'.replace('entries is',
                                                                              'entries are')]
    return lines + ['An entry that begins with ! removes a pattern and counts as wider.'] * (
        field.values == 'pattern')


def later_text(field):
    if not field.later:
        return []
    if field.later == '*':
        return ['Not yet supported by this build: anything but the default is refused at start.']
    return [roff('Not yet supported by this build, refused at start: '
                 f'{field.later.replace("|", ", ")}.')]


def man_field(field):
    lines = ['.TP',
             f'\\fB{roff(name(field))}\\fR: \\fI{roff(type_text(field.type, field.values))}\\fR',
             sentence(field.help)]
    lines.append(f'Default: \\fB{roff(field.default)}\\fR.')
    return lines + narrow_text(field) + later_text(field)


def man_item(item):
    lines = ['.TP', f'\\fB{roff(item.name)}\\fR: \\fI{roff(type_text(item.type, item.values))}\\fR',
             sentence(item.help)]
    if item.default == 'REQUIRED':
        lines.append('Required.')
    elif item.default != 'OPTIONAL':
        lines.append(f'Default: \\fB{roff(item.default)}\\fR.')
    return lines


INTRO = """\
.SH DESCRIPTION
One document says what an agent may read, write, execute, reach and spend. It is YAML; one that
begins with { and is not named .yaml is read as JSON. A field that is left out has its default; an
unknown field, a wrong type and an impossible value are refused before anything starts, all at
once, each with line, column and the nearest known name.
.PP
Built\\-in defaults are overridden by the file, the file by options of the command line. On top of
a file options can only narrow, unless \\fB\\-\\-widen\\fR is given. A ward.yaml or ward.json that
is found in the workspace and allows more than the defaults is refused until
.BR ward\\-trust (1)
accepts that content; a file named with \\fB\\-p\\fR needs no trust. Paths in the file are
relative to its directory, and ~/ is the home directory.
.PP
YAML anchors, aliases, tags, merge keys, double keys and several documents are refused, as are
files of more than 1 MiB. Values that begin with *, & or ! stand in quotes. Booleans are true and
false only.
.SH VALUES
.TP
.I size
Bytes, or a number with a unit: k, M, G, T, P count in thousands, Ki, Mi, Gi, Ti, Pi in 1024s;
1.5G, 4Gi, 10MB.
.TP
.I share
A percentage of the machine's memory: 50%.
.TP
.I processors
2, 0.5 or 500m.
.TP
.I time
Seconds, or parts with a unit: 300, 0.5, 5m, 1h30m, 250ms.
.TP
.I none
No limit; null and ~ mean the same.
.TP
.I host
A name, *.suffix, an IP address or a CIDR block. As text a rule is host[:port]; without a port it
is 443. An IPv6 address with a port stands in brackets."""

EXAMPLE = """\
.SH EXAMPLES
.nf
version: 1
filesystem:
  mode: read_write
  hide: [".env", "*.key"]
  host_mounts:
    \\- /opt/toolchain
    \\- { path: ~/.cache/models, mode: read_only, at: /models }
process:
  syscalls: build
resources: { memory_limit: 4Gi, cpu_limit: 2, timeout_seconds: 30m }
.fi"""


def man_page(table):
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text()).group(1)
    lines = ['.\\" Made by tools/gen_policy.py; do not edit.',
             f'.TH WARD.YAML 5 "" "ward {version}" "File Formats"',
             '.nh', '.ad l', '.SH NAME', 'ward.yaml \\- policy of a sandbox', INTRO, '.SH FIELDS']
    for field in table.at_top():
        lines += man_field(field)
    for group, text in table.groups.items():
        lines += [f'.SS {group}', sentence(text)]
        for field in table.in_group(group):
            lines += man_field(field)
    lines += ['.SH MAPS IN LISTS']
    for key, items in table.items.items():
        lines += [f'.SS {key}']
        for item in items:
            lines += man_item(item)
    lines += [EXAMPLE, '.SH SEE ALSO', '.BR ward\\-run (1),', '.BR ward\\-check (1),',
              '.BR ward\\-plan (1),',
              '.BR ward\\-trust (1)']
    return '\n'.join(lines) + '\n'


def main():
    check = sys.argv[1:] == ['--check']
    table = Table(ROOT / 'tables/policy.def')
    stale = 0
    for path, text in (('docs/ward.schema.json', json_schema(table)),
                       ('docs/man/ward.yaml.5', man_page(table))):
        file = ROOT / path
        if file.exists() and file.read_text(encoding='utf-8') == text:
            continue
        stale += 1
        if check:
            print(f'{path}: stale', file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding='utf-8')
            print(f'wrote {path}')
    return 1 if check and stale else 0


if __name__ == '__main__':
    sys.exit(main())
