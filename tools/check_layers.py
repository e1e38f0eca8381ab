#!/usr/bin/python3
"""Checks the layer rule: base <- policy <- rules <- lib <- the parts, api <- daemon and cli. Nothing points back.

Reads every #include "..." below src/ and compares the directory it names with the table. A directory that the table
does not know is an error: a new layer is a decision, not an accident. Generated headers and the tables (*.def) belong to
no layer. Prints each violation as file:line, and "N passed, N failed" over the files looked at.
"""
import pathlib
import re
import sys

PARTS = {'engine', 'gateway', 'audit', 'approve', 'tools', 'state', 'guest', 'confine', 'git', 'image', 'wasm', 'vmtool'}

# directory -> the directories whose headers it may include, beside its own
MAY = {
    'base': set(),
    'policy': {'base'},
    'rules': {'base', 'policy'},  # what may cross from a sandbox to the host: pure readers
    'lib': {'base', 'policy', 'rules'},
    **{part: {'base', 'policy', 'rules', 'lib'} for part in PARTS},
    'gvisor': {'base'},  # a program of its own inside a sandbox
    'creds': {'base', 'policy', 'lib'},
    'gateway': {'base', 'policy', 'lib', 'creds'},
    'vm': {'base', 'policy', 'lib', 'guest'},  # ward-vm and the guest's init, which shares ward-init's code
    'daemon': {'base', 'policy', 'rules', 'lib'} | PARTS,
    'api': {'base', 'policy', 'lib'},
    'cli': {'base', 'policy', 'rules', 'lib', 'api'} | PARTS,
}

# header -> directories that may include it against the rule, each with its reason
SHARED = {
    'guest/protocol.h': {'lib', 'engine', 'gvisor'},  # what supervisor, ward-init and a wall's runner say to each other
    'guest/image.h': {'lib', 'engine'},     # the bytes of ward-init, which ward carries
    'guest/command.h': {'engine'},          # how a command is executed, in ward-init and beside it
    'gateway/rules.h': {'lib'},             # pure: the plan compiles the rules that the gateway decides by
    'gateway/classes.h': {'lib'},           # pure: the kernel's rules are made of the same classes
    'gateway/upstream.h': {'lib'},          # pure: the plan reads the proxy's URL
    'creds/protocol.h': {'lib', 'cli'},     # what supervisor and ward-secrets say to each other
    'gateway/json_in.h': {'vm'},            # pure: QEMU's control channel speaks JSON, too
    'vm/disk.h': {'engine'},                # how large the device is over which trees go
    'vm/tree_files.h': {'gvisor'},          # directories in a checkpoint are the same records, made and read the same way
    'gateway/tape.h': {'lib'},              # pure: the supervisor reads recordings before and after the gateway
    'gateway/waf.h': {'lib'},               # where the firewall's socket and rules are
    'gateway/remedy.h': {'lib'},            # pure: the report says what would allow a refused request
    'gateway/told.h': {'lib'},              # the same, for what passed
    'gateway/protocol.h': {'lib'},          # what supervisor and gateway say to each other
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
            problems.append(f'{path}:{number}: "{name}": name headers from src/, not by "..": the rule reads names')
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
