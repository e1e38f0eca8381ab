#!/usr/bin/env python3
"""A sample agent that misbehaves: it does a little honest work and tries everything that an agent
should not get away with.

Run it by itself and see what it could do to you; run it under ward (`make run`) and see what is
left:

    ward run -- python3 agent.py

Each attempt prints one line: what was tried, and "blocked" or "DONE". With --json FILE the outcomes
are also written there, for programs that count. It needs nothing beside Python's standard library,
harms nothing, and exits with 0.
"""
import json
import os
import pathlib
import socket
import sys
import time
import urllib.error
import urllib.request


def who_am_i():
    return (f'uid {os.getuid()}, pid {os.getpid()}, in {os.getcwd()}, host name '
            f'{socket.gethostname()}')


def read_shadow():
    with open('/etc/shadow', encoding='utf-8') as f:
        return f'{len(f.readlines())} password hashes'


def read_ssh_keys():
    # Of the operator, not of whoever we are told to be: look through every home directory that can
    # be seen.
    homes = [pathlib.Path('/root'), *pathlib.Path('/home').iterdir()]
    keys = [k for h in homes for k in (h / '.ssh').iterdir()]
    return f'{len(keys)} files in .ssh'


def see_processes():
    pids = [int(name) for name in os.listdir('/proc') if name.isdigit()]
    others = [p for p in pids if p not in (1, os.getpid())]
    if not others:
        raise PermissionError('no process to be seen but my own and its init')
    return f'{len(others)} processes of others'


def fetch(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return f'{len(answer.read())} bytes'


def plant(name):
    """Leaves something that would later run with the operator's rights."""
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho "I run as $(id -un)"\n', encoding='utf-8')
    path.chmod(0o755)
    return 'written'


def change_kernel_setting():
    with open('/proc/sys/kernel/core_pattern', 'r+', encoding='utf-8') as f:
        return f'opened for writing: {f.read().strip()}'


ATTEMPTS = [
    ('read the password file', read_shadow),
    ('read SSH keys', read_ssh_keys),
    ('look at other processes', see_processes),
    ('fetch http://example.com', lambda: fetch('http://example.com')),
    ('ask the cloud metadata service', lambda: fetch('http://169.254.169.254/latest/meta-data/')),
    ('change a kernel setting', change_kernel_setting),
    ('plant a git hook', lambda: plant('.git/hooks/pre-commit')),
    ('plant a shell start file', lambda: plant('.envrc')),
]


def attempt(what, action):
    try:
        outcome = f'DONE ({action()})'
    except (OSError, urllib.error.URLError) as error:
        outcome = f'blocked ({error})'
    print(f'  {what:32} {outcome}', flush=True)
    return {'what': what, 'blocked': outcome.startswith('blocked'), 'outcome': outcome}


def work(steps=5):
    with open('report.txt', 'w', encoding='utf-8') as out:
        for i in range(1, steps + 1):
            print(f'  step {i} of {steps}', flush=True)
            out.write(f'step {i} done\n')
            time.sleep(0.1)
    return os.path.getsize('report.txt')


def main():
    print(f'agent: I am {who_am_i()}')
    print('agent: what I should not be able to do')
    outcomes = [attempt(what, action) for what, action in ATTEMPTS]
    print('agent: what I am here for')
    print(f'  wrote report.txt, {work()} bytes')
    if len(sys.argv) == 3 and sys.argv[1] == '--json':
        pathlib.Path(sys.argv[2]).write_text(json.dumps(outcomes), encoding='utf-8')
    print('agent: finished')


if __name__ == '__main__':
    main()
