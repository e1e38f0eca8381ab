#!/usr/bin/python3
"""ward scan against its bars, beside detect-secrets in the same run.

  bench/scan.py [--build DIR] [--peer detect-secrets] [--trees DIR...] [--check]

Found: 400 planted secrets of 50 kinds (scan_corpus.py). False hits: over /usr/share/doc,
/usr/include and the trees given; a hit there counts as false. Speed: 1 GiB of text from those
trees, one process. --check: the exit status is 1 if a bar is missed.
"""
import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import scan_corpus

HERE = pathlib.Path(__file__).resolve().parent
FOUND_LEAST, MEGABYTES_PER_FALSE, SPEED_LEAST = 0.98, 2, 1e9


def scan(ward, *words):
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    p = subprocess.run([ward, 'paths', '--json', '--quiet', '--', *map(str, words)],
                       capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(p.stdout), time.monotonic() - began, cpu


def peer_scan(peer, directory):
    p = subprocess.run([peer, 'scan', '--all-files', '--no-verify', '.'], cwd=directory,
                       capture_output=True, text=True, check=True)
    return {(name, hit['line_number']) for name, hits in json.loads(p.stdout)['results'].items()
            for hit in hits}


def sample_of(trees, directory, size):
    """Copies text files of the trees, every so many, up to that size; returns the bytes."""
    files = [f for tree in trees for f in sorted(pathlib.Path(tree).rglob('*'))
             if f.is_file() and not f.is_symlink() and f.suffix != '.gz']
    directory.mkdir()
    total = 0
    for i, file in enumerate(files[::7]):
        data = file.read_bytes()
        if b'\0' in data[:8192] or len(data) > 1 << 20:
            continue
        (directory / f'{i}{file.suffix}').write_bytes(data)
        total += len(data)
        if total > size:
            break
    return total


def compare_sample(ward, peer, trees, work, size):
    """False hits and processor time of both over the same files."""
    read = sample_of(trees, work / 'sample', size)
    result, _, cpu = scan(ward, work / 'sample')
    print(f'sample of {read / 1e6:.0f} MB: ward: {len(result["findings"])} false hits, '
          f'{cpu:.2f} s of processor time')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    hits = peer_scan(peer, work / 'sample')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f'  detect-secrets: {len(hits)} false hits, {cpu:.2f} s of processor time, '
          f'{read / 1e6 / cpu:.2f} MB/s')


def near(hits, name, line):
    return any((name, n) in hits for n in (line, line + 1))


def big_text(trees, path, size):
    """Text of the trees, repeated to that size."""
    pieces, total = [], 0
    for tree in trees:
        for file in sorted(pathlib.Path(tree).rglob('*')):
            if total > 64 << 20:
                break
            if file.is_file() and not file.is_symlink() and file.suffix != '.gz':
                data = file.read_bytes()
                if b'\0' not in data:
                    pieces.append(data)
                    total += len(data)
    block = b''.join(pieces)
    with open(path, 'wb') as out:
        while out.tell() < size:
            out.write(block)


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--build', default=str(HERE.parent / 'build'))
    a.add_argument('--peer', default=shutil.which('detect-secrets'))
    a.add_argument('--trees', nargs='*', default=[])
    a.add_argument('--check', action='store_true')
    a.add_argument('--size', type=int, default=1 << 30)
    a.add_argument('--sample', type=int, default=8 << 20,
                   help='bytes of the trees that both scanners read')
    o = a.parse_args()
    ward = str(pathlib.Path(o.build) / 'src/scan/ward-scan')
    trees = ['/usr/share/doc', '/usr/include', *o.trees]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        planted = scan_corpus.make(work / 'corpus')
        result, _, _ = scan(ward, work / 'corpus')
        hits = {(pathlib.Path(h['path']).name, h['line']) for h in result['findings']}
        missed = [p for p in planted if not near(hits, p[0], p[1])]
        extra = hits - {(n, line + k) for n, line, _ in planted for k in (0, 1)}
        print(f'ward: found {len(planted) - len(missed)} of {len(planted)} planted, '
              f'{len(extra)} others in the corpus')
        for miss in missed:
            print('  missed', *miss)
        if o.peer:
            peer = peer_scan(o.peer, work / 'corpus')
            found = sum(near(peer, n, line) for n, line, _ in planted)
            print(f'detect-secrets: found {found} of {len(planted)} planted')
            compare_sample(ward, o.peer, trees, work, o.sample)
        result, wall, _ = scan(ward, *trees)
        false, read = len(result['findings']), result['bytes']
        print(f'false hits: {false} in {result["bytes"] / 1e6:.0f} MB, {wall:.1f} s: one per '
              f'{result["bytes"] / 1e6 / max(false, 1):.1f} MB')
        for h in result['findings'][:400]:
            print('  ', h['rule'], f"{h['path']}:{h['line']}", h['shown'])
        big = work / 'big'
        big_text(trees, big, o.size)
        scan(ward, big)
        result, wall, cpu = scan(ward, big)
        empty = scan(ward, work / 'corpus/part0.txt')[2]
        speed = result['bytes'] / (cpu - empty)
        print(f'speed: {speed / 1e9:.2f} GB/s of processor time ({result["bytes"] / wall / 1e9:.2f}'
              f' GB/s wall clock with the start), start {empty * 1000:.0f} ms')
    bad = (len(missed) > len(planted) * (1 - FOUND_LEAST)
           or false * MEGABYTES_PER_FALSE * 1e6 > read
           or speed < SPEED_LEAST)
    return 1 if o.check and bad else 0


if __name__ == '__main__':
    sys.exit(main())
