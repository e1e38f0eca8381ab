#!/usr/bin/python3
"""bench/vm.py: a clone of a template through ward, beside QEMU's own start from an incoming
migration; interleaved.

    vm.py [--rounds 15] [--doc]

In: a build (WARD_BUILD, or build/), QEMU, a kernel package that apt can fetch, busybox. Out: a
table on standard output; with --doc also docs/bench-vm.md. Everything is made in a state directory
of its own. Exit 1: over a bar.

Start: QEMU alone is QEMU with the devices and words of ward-vm, started by this program, outside of
every sandbox, from the template's files; its time is from the start of the process to the guest's
first answer (an echo frame on the port). Beside it `ward run` of the same template, from the start
of `ward` to the same moment: ward-vm asks for the same echo and says when it came (WARD_VM_TIMES).
The rest of that run is shown in rows of its own: trees in, the command, trees out, the end. Exec:
in one machine, a program that does nothing (no libc) over the port, from its first frame to the
frame with its exit, less the fastest of three echoes on the same port right before. "At once": in a
clone that has just been greeted. What it runs through has to be translated first (tcg keeps nothing
of that in a template), and how long that takes at least is shown by the bare agent: another
template with the same kernel, root and devices, whose pid 1 does vfork, execve and wait and nothing
else (bench/vm_bare.c); ward's agent does more, but the process that becomes the command waits in
the template already (src/vm/guest/spare.c). "Left alone": the first exec, after the clone had
nothing to do for half a second; ward's agent rehearses in the first quarter of one
(src/vm/guest/rehearse.c), the bare one does not. "Never read": a copy of the same program that
nobody has executed or read, so that it comes from the device first; /bin/true is in memory since
the template was made (src/vm/guest/warm.c). "Elsewhere": another one, in a directory that nobody
has looked into either. busybox is a larger program: a static one with a libc.

Why "at once" stays over its bar: QEMU's own count (`info jit` of its monitor, before and after) is
7,100 to 8,500 blocks for that one exec, 39,000 instructions that become 4.3 MB of code; a profile
has about four fifths of its time in the translation: 6 microseconds a block in all. 5 ms are 800
blocks. What was tried, in milliseconds, beside 44.8: a processor without smap and pku, 46.1; that,
and a kernel with cgroup.memory=nokmem init_on_alloc=0 audit=0 highres=off nohz=off lsm= norandmaps,
45.2 (each of them saves a tenth of the blocks at most); a second processor that rehearses from the
first frame on, 28.2, but then the second exec takes 16.6, the first answer 1.2 times as long, and
another processor of the host is busy. Page faults are 305: at most 3 ms, if all of them were had
beforehand.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import vm_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tools'))
from wrap_markdown import wrap  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WARD_BUILD', TOP / 'build'))
WARD = BUILD / 'src/cli/ward'
MEMORY_MIB = 512
VM = ['--isolation', 'vm', '--set', 'vm.accel=tcg', '--set', f'vm.memory={MEMORY_MIB}Mi', '--image',
      'small']
START_BAR, EXEC_BAR_MS = 1.25, 5
WARD_AGENT, BARE_AGENT = "ward's agent", 'the bare agent'
ALONE_S = 0.5
LIBRARIES = 60	# files in the image beside those that are used: few for a system
PADDING = 1 << 16	# behind each: a program is no part of an inode
PHASES = ('answered', 'trees are in', 'command ended', 'trees are out')


class Bench:
    def __init__(self, top):
        self.top, self.ws, self.rows = top, top / 'ws', {}
        self.env = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': str(top),
                    'WARD_STATE_DIR': str(top / 'state')}
        self.ws.mkdir()
        self.ward('vm', 'setup', '--quiet')
        tree = top / 'small'
        for name in ('bin', 'etc', 'opt', 'tmp', 'usr/lib'):
            (tree / name).mkdir(parents=True)
        shutil.copy(shutil.which('busybox'), tree / 'bin/busybox')
        for name in ('bin/true', 'bin/other', 'opt/other',
                     *(f'usr/lib/{i}' for i in range(LIBRARIES))):
            (tree / name).write_bytes((BUILD / 'bench/vm-true').read_bytes() + bytes(PADDING))
            (tree / name).chmod(0o755)
        for applet in ('sh', 'chmod'):
            (tree / 'bin' / applet).symlink_to('busybox')
        self.ward('image', 'import', tree, '--name', 'small')
        self.ward('vm', 'template', 'build', '--quiet', '--accel', 'tcg', '--memory',
                  f'{MEMORY_MIB}Mi', '--image', 'small')
        self.template = next((top / 'state/vm/templates').glob('*/ram')).parent
        self.root = next((top / 'state/vm/roots').glob('*.erofs'))
        self.disk = top / 'disk'
        with open(self.disk, 'wb') as f:
            f.truncate(1 << 20)

        self.bare = self.bare_template()

    def bare_template(self):
        """A template whose pid 1 is vm-bare: the same kernel, modules, root and devices; of two
        archives the later one's /init counts."""
        boot, work = next((self.top / 'state/vm').glob('boot-*')), self.top / 'bare'
        work.mkdir()
        shutil.copy(BUILD / 'bench/vm-bare', work / 'init')
        archive = subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet'], cwd=work, input=b'init\n',
                                 stdout=subprocess.PIPE, check=True).stdout
        initrd = (boot / 'initrd').read_bytes()
        (work / 'initrd').write_bytes(initrd + bytes(-len(initrd) % 4) + archive)
        subprocess.run(list(map(str, (BUILD / 'src/vm/ward-vm', 'template', '--program',
                                      '/usr/bin/qemu-system-x86_64', '--accel', 'tcg', '--memory',
                                      MEMORY_MIB << 20, '--cpus', 1, '--kernel', boot / 'vmlinux',
                                      '--initrd', work / 'initrd', '--root', self.root, '--disk',
                                      work / 'disk', '--words',
                                      'ward.root=/dev/vda ward.disk=/dev/vdb', '--ram',
                                      work / 'ram', '--out', work / 'state'))), check=True)
        return work

    def ward(self, *argv, cwd=None):
        done = subprocess.run([WARD, *map(str, argv)], cwd=cwd or self.ws, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f'ward {" ".join(map(str, argv))}: exit {done.returncode}: {done.stderr}')
        return done.stderr

    def add(self, name, ms):
        self.rows.setdefault(name, []).append(ms)

    def machine(self, first, template):
        return vm_port.Machine(template, self.root, self.disk, MEMORY_MIB,
                               BUILD / 'src/vm/ward-vm-ram.so', first)

    def exec_less_echo(self, m, command):
        echo = vm_port.frame('ECHO', payload=b'x')
        before = min(m.ask(echo, 'ECHO') for _ in range(3))
        return m.ask(command, 'EXIT') - before

    def execs(self, agent, template, greeting, command):
        """Each kind of first exec, and those that follow, by one agent. command: of words, what
        starts them."""
        echo = vm_port.frame('ECHO', payload=b'x')
        true = command('/bin/true')
        for pause, what, first_command in ((0, 'at once', true), (ALONE_S, 'left alone', true),
                                           (ALONE_S, 'never read, left alone',
                                            command('/bin/other')),
                                           (ALONE_S, 'elsewhere, left alone',
                                            command('/opt/other')),
                                           (ALONE_S, 'busybox, left alone',
                                            command('/bin/busybox', 'true'))):
            m = self.machine(echo, template)
            first = m.until('ECHO')
            m.ask(greeting + echo, 'ECHO')
            time.sleep(pause)
            self.add(f'{agent}: first exec, {what}', self.exec_less_echo(m, first_command))
            if not pause:
                self.add(f'{agent}: second exec', self.exec_less_echo(m, true))
                for _ in range(10):
                    self.add(f'{agent}: later exec', self.exec_less_echo(m, true))
            m.close()
            if greeting:
                self.add('QEMU alone: first answer', first)

    def alone(self):
        self.execs(WARD_AGENT, self.template, vm_port.greeting(),
                   lambda path, *words: vm_port.command(1, path.removeprefix('/bin/'), *words))
        self.execs(BARE_AGENT, self.bare, b'', vm_port.bare_command)

    def clone(self):
        began = time.perf_counter()
        said = self.ward('run', *VM, '--env', 'WARD_VM_TIMES=1', '--', 'true')
        self.add('ward run: all of it', 1000 * (time.perf_counter() - began))
        for name in PHASES:
            at = float(re.search(rf'ward-vm: {name} at ([0-9.]+)', said).group(1))
            self.add(f'ward run: {name}', 1000 * (at - began))

    def trees(self):
        """Whole runs with a workspace of many files, and with one large file: in, and in and
        back."""
        for name, count, size in (('2000 files', 2000, 1500), ('200 MB', 1, 200 << 20)):
            ws = self.top / name.replace(' ', '-')
            for i in range(count):
                at = ws / f'd{i // 100}' / f'f{i}'
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(os.urandom(size))
            for what, command in (('in', ('true',)),
                                  ('in and back', ('sh', '-c', 'chmod 600 d*/*'))):
                began = time.perf_counter()
                self.ward('run', *VM, '--', *command, cwd=ws)
                self.add(f'{name}, {what}', 1000 * (time.perf_counter() - began))
            shutil.rmtree(ws)


def table(bench, rounds):
    lines = [f'| of {rounds} rounds | median, ms | minimum, ms |', '| --- | --- | --- |']
    return '\n'.join(lines + [f'| {name} | {statistics.median(v):.1f} | {min(v):.1f} |'
                              for name, v in bench.rows.items()] + [''])


def verdicts(bench):
    """(what, value, bar) of each bar, by median and by minimum."""
    out = []
    for kind, pick in (('median', statistics.median), ('minimum', min)):
        rows = {name: pick(v) for name, v in bench.rows.items()}
        out.append((f'first answer, ward / QEMU alone, {kind}',
                    rows['ward run: answered'] / rows['QEMU alone: first answer'], START_BAR))
        for name in ('first exec, left alone', 'first exec, never read, left alone',
                     'first exec, elsewhere, left alone', 'second exec', 'later exec',
                     'first exec, at once'):
            out.append((f'{name}, less an echo, ms, {kind} (the bare agent: '
                        f'{rows[f"{BARE_AGENT}: {name}"]:.2f})', rows[f'{WARD_AGENT}: {name}'],
                        EXEC_BAR_MS))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--doc', action='store_true')
    args = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench-vm.'))
    try:
        bench = Bench(top)
        for i in range(args.rounds):
            for run in (bench.alone, bench.clone) if i % 2 else (bench.clone, bench.alone):
                run()
        bench.trees()
    finally:
        shutil.rmtree(top)
    bars = '\n'.join(['| bar | is | may be | |', '| --- | --- | --- | --- |',
                      *(f'| {what} | {value:.2f} | {bar} | '
                        f'{"met" if value <= bar else "**not met**"} |'
                        for what, value, bar in verdicts(bench)), ''])
    text = f'{bars}\n{table(bench, args.rounds)}'
    version = subprocess.run(['qemu-system-x86_64', '--version'], capture_output=True, text=True,
                             check=True).stdout.split('\n')[0]
    print(f'{version}\n\n{text}')
    if args.doc:
        how = '\n\n'.join(__doc__.split('\n\n')[3:])
        (TOP / 'docs/bench-vm.md').write_text(wrap('# What a clone of a machine costs\n\n'
                                                   '`bench/vm.py --doc` made these tables '
                                                   f'({version}, tcg, {MEMORY_MIB} MiB; '
                                                   f'{os.cpu_count()} processors, load average '
                                                   f'{os.getloadavg()[0]:.0f} at the end).\n\n'
                                                   f'{how}\n{text}'))
    return 1 if any(value > bar for _, value, bar in verdicts(bench)) else 0


if __name__ == '__main__':
    sys.exit(main())
