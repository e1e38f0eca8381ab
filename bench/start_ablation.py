#!/usr/bin/python3
"""What each trick of the start buys: start_ablation.py [--rounds N] [--only TRICK,...]

One ward is built for each choice of -Dstart_without (meson_options.txt; docs/start.md explains
them), and all of them run `ward run -- true` in turn, with the full ward twice: how far those two
are apart is what the machine's noise is worth. Out: a line a trick with the median of its starts
and of the ratios to the full ward of the same round; above 1.00 is what the trick buys. A trick
that buys less than 3 % on a quiet machine is a candidate for removal.

In: a source tree; the builds go to build/ablation and are made again only where something has
changed. Runs as the user that calls it, for at most --seconds after the builds.
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


def build(place, without):
    """A ward without this trick, None: with all."""
    directory = place / (without or 'full')
    if not (directory / 'build.ninja').exists():
        subprocess.run(['meson', 'setup', directory, run.TOP, '--prefix=/',
                        f'-Dstart_without={without or ""}'], check=True, stdout=subprocess.DEVNULL)
    targets = ['src/cli/ward'] + ([] if without else ['bench/bench-spawn', 'bench/bench-true'])
    subprocess.run(['ninja', '-C', directory, *targets], check=True, stdout=subprocess.DEVNULL)
    return directory


def measure(full, rows, base, rounds, seconds):
    """{name: [ns]}, all of the same length: a round in which any start failed is an error."""
    times, until = {name: [] for name, *_ in rows}, time.monotonic() + seconds
    for _ in range(0, rounds, BATCH):
        batch = run.spawn(full, base, None, rows, 'latency', str(BATCH))
        for name, (state, numbers) in batch.items():
            if state != 'ok':
                raise SystemExit(f'{name}: {state}')
            times[name] += numbers
        if time.monotonic() >= until:
            break
    return times


def report(times):
    reference = times['full']
    print(f'{len(reference)} rounds')
    print(f'{"without":18} {"median ms":>10} {"ratio":>7}')
    for name, mine in times.items():
        ratio = statistics.median(a / b for a, b in zip(mine, reference))
        note = '' if name.startswith('full') or ratio >= WORTH else '  buys less than 3 % here'
        print(f'{name:18} {statistics.median(mine) / 1e6:10.3f} {ratio:7.3f}{note}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--rounds', type=int, default=300)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--only', type=lambda text: text.split(','), default=tricks())
    parser.add_argument('--builds', type=pathlib.Path, default=run.TOP / 'build' / 'ablation')
    options = parser.parse_args()
    options.builds.mkdir(parents=True, exist_ok=True)
    full = build(options.builds, None)
    builds = {'full': full, 'full again': full}
    builds.update((name, build(options.builds, name)) for name in options.only)
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-ablation-'))
    try:
        workspace = run.make_workspace(base / 'workspace', None, 10, full / 'bench' / 'bench-true')
        rows = []
        for name, directory in builds.items():
            program = base / f'ward-{name.replace(" ", "-")}'
            shutil.copy(directory / 'src' / 'cli' / 'ward', program)
            rows.append((name, 1, '-', '-', [str(program), 'run', '-w', str(workspace),
                                             *run.LIMITS_OFF, '--', str(workspace / 'true')]))
        report(measure(full, rows, base, options.rounds, options.seconds))
    finally:
        shutil.rmtree(base)


main()
