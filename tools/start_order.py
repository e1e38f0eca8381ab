#!/usr/bin/python3
"""Writes src/cli/start_order.ld: which functions `ward run` goes through, in that order.

    start_order.py [--build build]

Every 64 KiB of a program that are touched cost a page fault of sixteen pages, and these pages again when it ends; what a start goes through was spread over all of ward, fifteen times that. The linker puts the functions of the list, and
the texts and constants that they use, side by side. A name that no longer exists does no harm, one that is missing lies elsewhere: make it anew when the start path has changed.

In: a build with symbols, root, a kernel with uprobes (one on each function; to take them away again takes the kernel minutes), the user nobody. Out: the file. What is run has a state directory and a workspace of its own.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TRACE = pathlib.Path('/sys/kernel/tracing')
NO_LIMITS = ['--memory', 'none', '--pids', 'none', '--disk', 'none', '--set', 'resources.inode_limit=none', '--set', 'resources.open_files=none']
NOBODY = ['setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups']
HEAD = """/* Made by tools/start_order.py, which says why: the functions of a start, in their order, and their texts. */
SECTIONS
{
	.text.start_path : {
		*rcrt1.o(.text)
		*libc.a:memset.lo(.text)
		*libc.a:__set_thread_area.lo(.text)
		*libgcc.a:_udivdi3.o(.text)
"""
BY_CHANCE = ['native_either', 'wait_for_helper', 'wait_until_gone', 'native_take_old_root', 'wait_for_arguments', 'has_left', 'wait_for_old_root', 'streams_wait_ms']    # who takes what is another matter when every function is watched


def symbols(program):
    """{offset: [names]}; a function may have several."""
    out = collections.defaultdict(list)
    for line in subprocess.run(['nm', program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in 'tTwW':
            out[int(fields[0], 16)].append(fields[2])
    return out


def tables(program, names):
    """The constants that these functions name."""
    used, of = {}, False
    for line in subprocess.run(['objdump', '-d', '--no-show-raw-insn', program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        begin, named = re.match(r'[0-9a-f]+ <([^>]+)>:$', line), re.search(r'# [0-9a-f]+ <([^>+]+)', line)
        if begin:
            of = begin.group(1).split('.')[0] in names
        elif named and of:
            used[named.group(1)] = None
    constants = {f[2] for f in (line.split() for line in subprocess.run(['nm', program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()) if len(f) == 3 and f[1] in 'rR'}
    return [name for name in used if name in constants]


def write(name, text):
    (TRACE / name).write_text(text)


def probe(program, offsets):
    fd = os.open(TRACE / 'uprobe_events', os.O_WRONLY | os.O_APPEND)
    for at in offsets:
        try:
            os.write(fd, f'p:ward_start/f{at:x} {program}:0x{at:x}\n'.encode())
        except OSError:     # an instruction that cannot be replaced
            continue
    os.close(fd)


def run_all(program, top):
    """A start without limits, then one with them, as root and as a user: what all of them need comes first."""
    for who, words in (('root', []), ('user', NOBODY)):
        home = top / who
        (home / 'ws/directory').mkdir(parents=True)
        for name in ('file', 'directory/file'):
            (home / 'ws' / name).write_text('something\n')
        for path in (home, *home.rglob('*')):
            shutil.chown(path, 'nobody' if words else 'root')
        env = {'PATH': '/usr/bin:/bin', 'LANG': 'C', 'XDG_RUNTIME_DIR': str(home), 'HOME': str(home), 'WARD_STATE_DIR': str(home / 'state'), 'WARD_RUNTIME_DIR': str(home / 'run')}
        for options in (NO_LIMITS, NO_LIMITS, NO_LIMITS, []):
            yield [*words, program, 'run', '-w', str(home / 'ws'), *options, '--', 'true'], env


def traced(program, found, top):
    runs = list(run_all(program, top))
    subprocess.run(runs[0][0], env=runs[0][1], check=True)   # the first one ever makes what others find
    write('tracing_on', '0')
    probe(program, found)
    write('buffer_size_kb', '60000')
    write('trace', '')
    try:
        write('events/ward_start/enable', '1')
        write('tracing_on', '1')
        for words, env in runs:
            subprocess.run(words, env=env, check=True, stdin=subprocess.DEVNULL)
        write('tracing_on', '0')
        with open(TRACE / 'trace', encoding='utf-8', errors='replace') as f:
            return list(dict.fromkeys(int(m.group(1), 16) for m in (re.search(r': f([0-9a-f]+): \(', line) for line in f) if m))
    finally:
        write('events/ward_start/enable', '0')
        write('uprobe_events', '')
        write('buffer_size_kb', '1408')
        write('trace', '')


def script(names, constants):
    lines = [HEAD, '\t\t*(.text.startup.main)\n']
    lines += [f'\t\t*(.text.{n} .text.{n}.*)\n' for n in names]   # of one function the compiler may make several
    lines += ['\t}\n}\nINSERT BEFORE .text;\nSECTIONS\n{\n\t.rodata.start_path : {\n\t\t*(.rodata.cst4 .rodata.cst8 .rodata.cst16 .rodata.cst32)\n']
    lines += [f'\t\t*(.rodata.{n} .rodata.{n}.*)\n' for n in names]
    lines += [f'\t\t*(.rodata.{n})\n' for n in constants]
    return ''.join(lines) + '\t}\n}\nINSERT AFTER .rodata;\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=TOP / 'build')
    args = parser.parse_args()
    if os.geteuid() or not (TRACE / 'uprobe_events').exists():
        sys.exit('start_order: this takes root and uprobes: mount -t tracefs tracefs /sys/kernel/tracing')
    top = pathlib.Path(tempfile.mkdtemp(prefix='ward-order-', dir='/srv'))
    try:
        top.chmod(0o755)
        program = str(top / 'ward')
        shutil.copy(args.build / 'src/cli/ward', program)
        found = symbols(program)
        names = dict.fromkeys(name.split('.')[0] for at in traced(program, found, top) for name in found[at])
        names.update(dict.fromkeys(BY_CHANCE))
        (TOP / 'src/cli/start_order.ld').write_text(script([n for n in names if n != 'main'], tables(program, names)))
        print(f'{len(names)} functions')
    finally:
        shutil.rmtree(top)


if __name__ == '__main__':
    main()
