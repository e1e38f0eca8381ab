#!/usr/bin/python3
"""Starts on a machine without a compiler: start_carried.py pack FOLDER | run FOLDER

`pack` puts into FOLDER what the comparison needs: this build's ward (--build), other builds of it
(--ward NAME=PATH), bwrap with the libraries that its host may lack, ward's filter for it, and the
two programs of the bench. `run` needs Python and that folder: `ward run -- true` of each ward, with
default limits and without, beside bwrap with the filter, in turn. Out: a line each with the
median, the fastest tenth and the fastest start, and their ratios to bwrap's. Runs as the user
that calls it. What holds the limits on this host is printed first: cgroup v2 is where ward makes a
cgroup for each start.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run  # noqa: E402

BATCH = 10
WITHIN = 0.60


def pack(options):
    folder = options.folder
    (folder / 'bench').mkdir(parents=True, exist_ok=True)
    (folder / 'lib').mkdir(exist_ok=True)
    wards = dict(word.split('=', 1) for word in options.ward)
    for name, path in {'ward': options.build / 'src' / 'cli' / 'ward', **wards}.items():
        shutil.copy(path, folder / name)
        subprocess.run(['strip', folder / name], check=True)
    for name in ('bench-spawn', 'bench-true'):
        shutil.copy(options.build / 'bench' / name, folder / 'bench')
    (folder / 'names').write_text('\n'.join(('ward', *wards)) + '\n')
    run.write_filter(options.build, folder)
    bwrap = run.which('bwrap')
    shutil.copy(bwrap, folder)
    for line in subprocess.run(['ldd', bwrap], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        words = line.split()
        if '=>' in words and 'libc.so' not in words[0] and words[2].startswith('/'):
            shutil.copy(words[2], folder / 'lib')


def provide_bwrap(folder, base):
    """The host's own, else the carried one; libraries that the host lacks lie beside it."""
    if run.which('bwrap'):
        return
    directory = base / 'bwrap'
    directory.mkdir()
    shutil.copy(folder / 'bwrap', directory)
    os.environ['PATH'] = f'{directory}:{os.environ["PATH"]}'
    listed = subprocess.run(['ldd', directory / 'bwrap'], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    missing = [line.split()[0] for line in listed.splitlines() if 'not found' in line]
    if missing:
        raise SystemExit(f'bwrap needs {", ".join(missing)}: as root, copy them from '
                         f'{folder / "lib"} to a directory that ld.so searches')


def rows_of(folder, base, workspace):
    true = str(workspace / 'true')
    rows = [('bwrap + seccomp', 1, str(folder / 'filter.bpf'), '-', run.bwrap(workspace, True))]
    for name in (folder / 'names').read_text().split():
        program = base / name
        shutil.copy(folder / name, program)
        words = [str(program), 'run', '-w', str(workspace)]
        rows.append((name, 1, '-', '-', [*words, '--', true]))
        rows.append((f'{name}, no limits', 1, '-', '-', [*words, *run.LIMITS_OFF, '--', true]))
    return rows


def measure(folder, base, rows, options):
    times, until = {row[0]: [] for row in rows}, time.monotonic() + options.seconds
    groups, count = ([[row] for row in rows], 1) if options.gap else ([rows], BATCH)
    for _ in range(0, options.rounds, count):
        for group in groups:
            done = run.spawn(folder, base, None, group, 'latency', str(count))
            for name, (state, numbers) in done.items():
                if state != 'ok':
                    raise SystemExit(f'{name}: {state}')
                times[name] += numbers
            time.sleep(options.gap)
        if time.monotonic() >= until:
            break
    return times


def report(times):
    def numbers(values):
        values = sorted(values)
        return statistics.median(values), values[len(values) // 10], values[0]

    reference = numbers(times['bwrap + seccomp'])
    print(f'{len(times["bwrap + seccomp"])} rounds; ms, and ratio to bwrap + seccomp '
          f'(wanted: {WITHIN:.2f})')
    print(f'{"":26} {"median":>7} {"ratio":>6} {"fast":>7} {"ratio":>6} {"min":>7} {"ratio":>6}')
    for name, mine in times.items():
        print(f'{name:26}', *(f'{n / 1e6:7.3f} {n / r:6.3f}'
                              for n, r in zip(numbers(mine), reference)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('what', choices=['pack', 'run'])
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--build', type=pathlib.Path, default=run.TOP / 'build')
    parser.add_argument('--gap', type=float, default=0, metavar='SECONDS',
                        help='between two starts: a cgroup is taken apart after its removal, and '
                        'the next start would wait for that')
    parser.add_argument('--ward', action='append', default=[], metavar='NAME=PATH')
    parser.add_argument('--rounds', type=int, default=300)
    parser.add_argument('--seconds', type=float, default=60)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.what == 'pack':
        return pack(options)
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-carried-', dir='/srv'))
    try:
        base.chmod(0o755)
        provide_bwrap(options.folder, base)
        workspace = run.make_workspace(base / 'workspace', None, 10,
                                       options.folder / 'bench' / 'bench-true')
        rows = rows_of(options.folder, base, workspace)
        print(f'{os.cpu_count()} processors, Linux {os.uname().release}')
        report(measure(options.folder, base, rows, options))
    finally:
        shutil.rmtree(base)
    return 0


if __name__ == "__main__":
    main()
