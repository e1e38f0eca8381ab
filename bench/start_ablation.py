#!/usr/bin/python3
"""What each trick of the start buys: start_ablation.py [--rounds N] [--only TRICK,...]

One ward is built for each choice of -Dstart_without (meson_options.txt; docs/start.md explains
them), and all of them run `ward run -- true` in turn, with the full ward twice: how far those two
are apart is what the machine's noise is worth. Out: a line a trick with the median of its starts
and of the ratios to the full ward of the same round, and the ratio of the fastest tenths, which a
noisy machine disturbs less; above 1.00 is what the trick buys. A trick that buys less than 3 % by
both is a candidate for removal.

In: a source tree; it is built in build/ablation (--tree). Runs as the user that calls it, for at
most --seconds after the builds.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run  # noqa: E402

BATCH = 5       # rounds between two looks at the clock
WORTH = 1.03


def tricks():
    """The choices of the option, in their order."""
    text = (run.TOP / 'meson_options.txt').read_text().split("option('start_without'")[1]
    return re.findall(r"'([a-z_]+)'", text.split('choices:')[1].split(']')[0])


def build(tree, without):
    """Makes the tree's ward one without this trick, None: with all. Few files depend on that."""
    if not (tree / 'build.ninja').exists():
        subprocess.run(['meson', 'setup', tree, run.TOP, '--prefix=/'], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(['meson', 'configure', tree, f'-Dstart_without={without or ""}'], check=True)
    subprocess.run(['ninja', '-C', tree, 'src/cli/ward', 'bench/bench-spawn', 'bench/bench-true'],
                   check=True, stdout=subprocess.DEVNULL)
    return tree / 'src' / 'cli' / 'ward'


def measure(tree, rows, base, rounds, seconds):
    """{name: [ns]}, all of the same length: a round in which any start failed is an error."""
    times, until = {name: [] for name, *_ in rows}, time.monotonic() + seconds
    for _ in range(0, rounds, BATCH):
        batch = run.spawn(tree, base, None, rows, 'latency', str(BATCH))
        for name, (state, numbers) in batch.items():
            if state != 'ok':
                raise SystemExit(f'{name}: {state}')
            times[name] += numbers
        if time.monotonic() >= until:
            break
    return times


def fast(numbers):
    """The tenth percentile."""
    return sorted(numbers)[len(numbers) // 10]


def report(times):
    reference = times['full']
    print(f'{len(reference)} rounds')
    print(f'{"without":18} {"median ms":>10} {"ratio":>7} {"fast ms":>10} {"ratio":>7}')
    for name, mine in times.items():
        ratio = statistics.median(a / b for a, b in zip(mine, reference))
        quick = fast(mine) / fast(reference)
        worth = name.startswith('full') or max(ratio, quick) >= WORTH
        print(f'{name:18} {statistics.median(mine) / 1e6:10.3f} {ratio:7.3f} '
              f'{fast(mine) / 1e6:10.3f} {quick:7.3f}'
              f'{"" if worth else "  buys less than 3 % here"}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--rounds', type=int, default=300)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--only', type=lambda text: text.split(','), default=tricks())
    parser.add_argument('--tree', type=pathlib.Path, default=run.TOP / 'build' / 'ablation')
    options = parser.parse_args()
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-ablation-'))
    workspace = base / 'workspace'
    rows = []
    try:
        for name in (*options.only, 'full again', 'full'):
            ward = build(options.tree, None if name.startswith('full') else name)
            program = base / f'ward-{name.replace(" ", "-")}'
            shutil.copy(ward, program)
            rows.insert(0, (name, 1, '-', '-', [str(program), 'run', '-w', str(workspace),
                                                *run.LIMITS_OFF, '--', str(workspace / 'true')]))
        run.make_workspace(workspace, None, 10, options.tree / 'bench' / 'bench-true')
        report(measure(options.tree, rows, base, options.rounds, options.seconds))
    finally:
        shutil.rmtree(base)


main()
