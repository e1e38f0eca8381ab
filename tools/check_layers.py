#!/usr/bin/python3
"""Checks the layer rule: directories follow the life of a run, and nothing points back.

Reads every #include "..." below src/ and compares the directory it names with the table. A
directory that the table does not know is an error: a new layer is a decision, not an accident.
Generated headers and the tables (*.def) belong to no layer. Prints each violation as file:line, and
"N passed, N failed" over the files looked at.
"""
import pathlib
import re
import sys

# The rooms of a run, in the order of its life: each may include those before it.
ORDER = ['base', 'policy', 'rules', 'model', 'protocol', 'confine', 'host', 'guard', 'limit',
         'event', 'alarm', 'state', 'gitview', 'plan',
         'observe', 'recover', 'review', 'approve', 'egress', 'control', 'term', 'run']


def before(room, *more):
    """All rooms that come before this one, and some more."""
    return set(ORDER[:ORDER.index(room)]) | set(more)


RUN = set(ORDER)
PARTS = {'engine', 'audit', 'git', 'image', 'vmtool', 'tools'}

# directory -> the directories whose headers it may include, beside its own
MAY = {
    **{room: before(room) for room in ORDER},
    **{part: RUN for part in PARTS},
    'confine': {'base'},  # programs that link little take it
    'term': {'base', 'model'},  # pure: what it shows and reads comes as arguments
    # programs of their own, with little of ward in them
    'guest': {'base', 'protocol'},
    'gvisor': {'base', 'protocol', 'confine'},
    # ward-vm and the guest's init, which shares ward-init's code
    'vm': {'base', 'policy', 'rules', 'protocol', 'state', 'guest'},
    'wasm': {'base', 'policy', 'confine'},
    'scan': {'base', 'policy', 'rules', 'confine'},    # rules: the index of git
    'hook': {'base', 'confine'},
    'creds': {'base', 'policy', 'protocol', 'confine'},
    # the gateway's programs: each room may include those before it
    'gateway': {'base', 'policy', 'model', 'rules', 'protocol', 'confine'},
    'transport': {'base', 'policy', 'rules'},
    'tape': {'base', 'policy', 'model', 'rules', 'protocol', 'gateway', 'transport'},
    'ssh': {'base', 'policy', 'rules', 'protocol', 'confine', 'creds'},
    'keys': {'base', 'policy', 'rules', 'protocol', 'creds', 'gateway', 'transport'},
    'inspect': {'base', 'confine', 'policy', 'model', 'rules', 'protocol', 'gateway', 'transport',
                'tape', 'scan'},
    'api': RUN,
    'mcp': {'base', 'policy', 'rules'},    # messages: pure
    'envd': {'base', 'rules', 'protocol'},  # ward-envd, inside of sandboxes
    'daemon': {'base', 'policy', 'rules', 'protocol', 'confine', 'host', 'envd'},
    'remote': {'base', 'policy', 'rules', 'confine', 'envd'},  # envd: base64 and envelopes
    'cli': RUN | PARTS | {'api', 'mcp'},
}

# header -> directories that may include it against the rule, each with its reason
SHARED = {
    'guest/image.h': {'host', 'engine'},    # the bytes of ward-init, which ward carries
    'guest/command.h': {'engine'},          # how a command is executed, in ward-init and beside it
    'vm/disk.h': {'engine'},                # how large the device is over which trees go
    # directories in a checkpoint are the same records, made and read the same way
    'vm/tree_files.h': {'gvisor'},
}


INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def check(path, src):
    layer = path.relative_to(src).parts[0]
    if layer not in MAY:
        return [f'{path}: "{layer}" is not in the table of tools/check_layers.py']
    problems = []
    for number, line in enumerate(path.read_text(errors='replace').splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        target = name.split('/')[0]
        if name.startswith('..'):
            problems.append(f'{path}:{number}: "{name}": name headers from src/, not by "..": the '
                            'rule reads names')
        elif '/' not in name or target == layer or not (src / target).is_dir():
            continue
        elif target not in MAY[layer] and layer not in SHARED.get(name, ()):
            problems.append(f'{path}:{number}: {layer} may not include "{name}"')
    return problems


def main():
    src = pathlib.Path(__file__).resolve().parent.parent / 'src'
    files = sorted(p for p in src.rglob('*') if p.suffix in ('.c', '.h'))
    bad = 0
    for path in files:
        problems = check(path, src)
        bad += bool(problems)
        for problem in problems:
            print(problem)
    print(f'{len(files) - bad} passed, {bad} failed')
    return 1 if bad or not files else 0


if __name__ == '__main__':
    sys.exit(main())
