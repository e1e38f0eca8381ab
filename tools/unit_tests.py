#!/usr/bin/python3
"""Runs the unit tests of one build directory and counts their cases: unit_tests.py BUILD

meson runs the programs; each is a cmocka program that names every case on its standard error. A program that fails
without naming a failed case (a crash, a sanitizer's report) is one failure. Ends with "N passed, N failed".
"""
import json
import pathlib
import re
import subprocess
import sys


def main():
    build = pathlib.Path(sys.argv[1])
    run = subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '--print-errorlogs'],
                         stdin=subprocess.DEVNULL)
    passed = failed = 0
    log = build / 'meson-logs' / 'testlog.json'
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        text = (test.get('stdout') or '') + (test.get('stderr') or '')
        good = len(re.findall(r'^\[ +OK +\]', text, re.M))
        bad = len(set(re.findall(r'^\[ +(?:FAILED|ERROR) +\] (\w+)$', text, re.M)))
        if test['result'] == 'OK':
            passed += max(good, 1)
        else:
            passed += good
            failed += max(bad, 1)
    if run.returncode and not failed:
        failed = 1
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
