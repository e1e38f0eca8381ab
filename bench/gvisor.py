#!/usr/bin/python3
"""bench/gvisor.py: what a start costs with isolation: gvisor, beside `runsc run` alone with an
equal bundle; interleaved, as root and as an ordinary user.

In: the build directory (WARD_BUILD, or build/). Out: a table on standard output; with --doc also
docs/bench-gvisor.md. The bundle has what ward's has: one tree for the root, the same directories
shared, /dev/shm, the same platform, the network of the caller's namespace, no cgroup of its own;
everything else is runsc's default, directfs too, which ward turns off because the kernel would pass
by what is hidden. For an ordinary user it is `runsc --rootless`. Exit 1: over the bar.
"""
import argparse
import json
import os
import pathlib
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tools'))
from wrap_markdown import wrap  # noqa: E402

BAR = 1.10
ROOT = pathlib.Path(__file__).resolve().parent.parent


def bundle(base, shared):
    """A bundle whose command is true."""
    mounts = [{'type': 'tmpfs', 'source': 'tmpfs', 'destination': '/dev/shm',
               'options': ['mode=1777']}]
    mounts += [{'type': 'bind', 'source': d, 'destination': d, 'options': ['rbind']}
               for d in shared]
    config = {'ociVersion': '1.0.2', 'process': {'terminal': False, 'user': {'uid': 0, 'gid': 0},
                                                 'args': ['/usr/bin/true'],
                                                 'env': ['PATH=/usr/bin:/bin'],
                                                 'cwd': '/', 'noNewPrivileges': True},
              'root': {'path': '/', 'readonly': True}, 'hostname': 'ward', 'mounts': mounts,
              'linux': {'namespaces': [{'type': kind} for kind in ('pid', 'ipc', 'uts', 'mount')]}}
    base.mkdir()
    (base / 'config.json').write_text(json.dumps(config))
    (base / 'state').mkdir()
    return base


def seconds(argv, cwd, who):
    """One run, in milliseconds of the clock and of the processor."""
    def become():
        if who != os.getuid():
            person = pwd.getpwuid(who)
            os.setgroups([])
            os.setgid(person.pw_gid)
            os.setuid(who)
    before = os.times()
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=become,
                          env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': str(cwd.parent),
                               'WARD_STATE_DIR': str(cwd.parent / 'state')}, check=False)
    if done.returncode != 0:
        sys.exit(f'{argv}: exit {done.returncode}: {done.stderr.decode()}')
    after = os.times()
    return 1000 * (time.perf_counter() - began), 1000 * (after.children_user + after.children_system
                                                         - before.children_user
                                                         - before.children_system)


def measure(build, who, rounds):
    """Milliseconds of ward and of runsc alone, (clock, processor) each."""
    top = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench.'))
    try:
        ws, home = top / 'ws', top / 'home'
        for d in (ws, home, top / 'state'):
            d.mkdir()
        plan = json.loads(subprocess.run([build / 'src/cli/ward', 'plan', '--json', '--isolation',
                                          'gvisor', '--', 'true'], cwd=ws, capture_output=True,
                                         check=True).stdout)
        platform = plan['wall'].split()[-1]
        place = bundle(top / 'bundle', [str(ws), str(home), '/tmp'])
        for path in [top, *top.rglob('*')]:
            os.chown(path, who, who)
        alone = ['runsc', f'--root={place}/state', '--network=none', '--ignore-cgroups',
                 '--overlay2=none', f'--platform={platform}',
                 *(['--rootless'] if who else []), 'run', f'--bundle={place}', 'bench']
        ours = [str(build / 'src/cli/ward'), 'run', '--isolation', 'gvisor', '--', 'true']
        times = {'ward': [], 'runsc': []}
        for i in range(rounds + 1):
            for name, argv in (('ward', ours),
                               ('runsc', alone)) if i % 2 else (('runsc', alone), ('ward', ours)):
                times[name].append(seconds(argv, ws, who))
        return {name: rows[1:] for name, rows in times.items()}, platform
    finally:
        shutil.rmtree(top)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--doc', action='store_true')
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', ROOT / 'build'))
    version = subprocess.run(['runsc', '--version'], capture_output=True, text=True,
                             check=True).stdout.split('\n')[0]
    rows, over = [], False
    for label, who in (('root', 0),
                       ('user', pwd.getpwnam('wardtest').pw_uid)) if os.getuid() == 0 else (
                           ('user', os.getuid()),):
        times, platform = measure(build, who, args.rounds)
        for unit, column in (('clock', 0), ('processor', 1)):
            for kind, pick in (('median', statistics.median), ('minimum', min)):
                ours, alone = (pick([row[column] for row in times[name]])
                               for name in ('ward', 'runsc'))
                rows.append(f'| {label} | {unit}, {kind} | {ours:.1f} | {alone:.1f} | '
                            f'{ours / alone:.2f} |')
                over |= ours / alone > BAR
    text = '\n'.join(['| who | of ' + f'{args.rounds} runs | ward, ms | runsc alone, ms | ratio |',
                      '| --- | --- | --- | --- | --- |', *rows, ''])
    print(f'{version}, platform {platform}; bar {BAR:.2f}, in every row\n\n{text}')
    if args.doc:
        (ROOT / 'docs' / 'bench-gvisor.md').write_text(wrap(
            '# What a start behind gVisor costs\n\n`bench/gvisor.py --doc` made this table: `ward '
            'run --isolation gvisor -- true` beside `runsc run` of an equal bundle, one after the '
            'other in turns. Both have `--network=none --ignore-cgroups --overlay2=none` and the '
            'same platform; ward adds `--directfs=false` (what is hidden or protected holds only '
            'in the gofer), runsc alone has its default, and `--rootless` for a user. ward does '
            'not go through `runsc run`: it makes the jails of gVisor\'s kernel and gofer by '
            'itself and starts the two (`src/gvisor/direct.c`). With a version of runsc that '
            '`src/engine/gvisor/runtime.c` does not list, ward goes through `runsc run`, and takes '
            'longer. '
            f'{version}, platform {platform}; {os.cpu_count()} processors, load average '
            f'{os.getloadavg()[0]:.0f} at the end.\nThe bar is {BAR:.2f} of `runsc` '
            f'alone{", in every row, and is not met" if over else ", and is met in every row"}. On '
            f'a busy machine the time of the processor tells more than the clock.\n\n{text}'))
    return 1 if over else 0


if __name__ == '__main__':
    sys.exit(main())
