#!/usr/bin/python3
"""bench/box.py: what detached sandboxes cost: memory of an idle one, ward exec beside runc exec, ps
and kill --all of many.

In: the build directory (WARD_BUILD, or build/). Out: a table with the bar of each figure, and
build/bench/box.json; exit status 1 when a bar is missed. As root it measures root's sandboxes and,
for the memory and ps, an ordinary user's too. Everything happens below one directory that is
removed at the end.
"""
import argparse
import json
import os
import pathlib
import pwd
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run  # noqa: E402


class Ward:
    """ward as one user, with directories of its own."""

    def __init__(self, base, ward, user):
        self.ward = str(ward)
        self.home = base / f'box-{user or "root"}'
        self.home.mkdir(mode=0o700)
        self.ws = self.home / 'ws'
        self.ws.mkdir()
        for name in ('state', 'run'):
            (self.home / name).mkdir(mode=0o700)
        if user:
            subprocess.run(['chown', '-R', user, self.home], check=True)
        self.prefix = ['setpriv', '--reuid', user, '--regid', user, '--init-groups'] if user else []
        self.env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': str(self.home),
                    'WARD_STATE_DIR': str(self.home / 'state'),
                    'WARD_RUNTIME_DIR': str(self.home / 'run')}

    def __call__(self, *args, check=True):
        return subprocess.run([*self.prefix, self.ward, *args], env=self.env, cwd=self.ws,
                              check=check, capture_output=True,
                              text=True).stdout

    def pids(self):
        """ward-box of each sandbox."""
        return [s['pid'] for s in json.loads(self('ps', '--json'))['sandboxes']]


def pss_kib(pid):
    """Of a ward-box with its children: ward-init and the guardian."""
    total = 0
    children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    for p in [str(pid), *children]:
        for line in pathlib.Path(f'/proc/{p}/smaps_rollup').read_text().splitlines():
            if line.startswith('Pss:'):
                total += int(line.split()[1])
    return total


def timed(rounds, *commands):
    """Medians of the commands in milliseconds, each in turn, so that a noisy moment hits
    everybody."""
    taken = [[] for _ in commands]
    for i in range(rounds + 2):
        for k, command in enumerate(commands):
            began = time.monotonic_ns()
            command()
            if i >= 2:
                taken[k].append((time.monotonic_ns() - began) / 1e6)
    return [statistics.median(t) for t in taken]


def spawner(argv, env):
    def start():
        pid = os.posix_spawn(argv[0], argv, env)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            raise SystemExit(f'exit {status}: {argv}')
    return start


def measure_exec(w, base, rounds):
    """ward exec of true beside runc exec of true, both in a sandbox that idles."""
    true = str(w.ws / 'true')
    w('run', '-d', '--name', 'exec')
    commands = [spawner([w.ward, 'exec', 'exec', true], w.env)]
    runc = run.which('runc')
    if runc and not os.geteuid():
        bundle = run.oci_bundle(base, w.ws, False)
        config = json.loads((bundle / 'config.json').read_text())
        config['process']['args'] = ['/usr/bin/sleep', '3600']
        for name in ('lib', 'lib64'):
            (bundle / 'rootfs' / name).symlink_to(f'usr/{name}')
        (bundle / 'config.json').write_text(json.dumps(config))
        root = ['--root', str(base / 'runc')]
        subprocess.run([runc, *root, 'run', '-d', '--bundle', str(bundle), 'ward-bench-exec'],
                       check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        commands.append(spawner([runc, *root, 'exec', 'ward-bench-exec', true], w.env))
    try:
        found = timed(rounds, *commands)
    finally:
        if len(commands) > 1:
            subprocess.run([runc, *root, 'delete', '--force', 'ward-bench-exec'], check=True,
                           stdout=subprocess.DEVNULL)
        w('rm', '--force', 'exec')
    return found


def rows_of(w, base, args, who):
    rows = []
    w('run', '-d', '--name', 'idle')
    time.sleep(0.5)
    rows.append((f'{who}: idle sandbox, PSS over all its processes', 'KiB', pss_kib(w.pids()[0]),
                 400))
    w('exec', 'idle', str(w.ws / 'true'))
    time.sleep(1.5)
    rows.append((f'{who}: the same a second after an exec', 'KiB', pss_kib(w.pids()[0]), 400))
    w('rm', '--force', '--all')
    for _ in range(args.many):
        w('run', '-d')
    rows.append((f'{who}: ps of {args.many}', 'ms', timed(10, lambda: w('ps'))[0], 50))
    rows.append((f'{who}: each of {args.many}, PSS', 'KiB',
                 round(sum(map(pss_kib, w.pids())) / args.many), 400))
    began = time.monotonic()
    w('kill', '--all')
    rows.append((f'{who}: kill --all of {args.many} idle ones', 'ms',
                 (time.monotonic() - began) * 1000, None))
    w('rm', '--all')
    return rows


def inner_pidfds(w):
    """ward-init of each sandbox: with it every process inside is dead."""
    found = []
    for pid in w.pids():
        for child in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split():
            if pathlib.Path(f'/proc/{child}/comm').read_text() == 'init\n':
                found.append(os.pidfd_open(int(child)))
    return found


def measure_kill(w, count):
    """kill --all of sandboxes with five processes each: until all are dead, and until the verb is
    through (swept, on record)."""
    for _ in range(count):
        w('run', '-d', '--', 'sh', '-c', 'sleep 900 & sleep 900 & sleep 900 & sleep 900')
    poll = select.poll()
    left = inner_pidfds(w)
    for fd in left:
        poll.register(fd, select.POLLIN)
    began = time.monotonic()
    verb = subprocess.Popen([*w.prefix, w.ward, 'kill', '--all'], env=w.env, cwd=w.ws)
    waiting = len(left)
    while waiting:
        for fd, _ in poll.poll():
            poll.unregister(fd)
            waiting -= 1
    dead = (time.monotonic() - began) * 1000
    verb.wait()
    through = (time.monotonic() - began) * 1000
    for fd in left:
        os.close(fd)
    w('rm', '--all')
    return dead, through


def measure(base, build, args):
    ward = run.stage_ward(build, base)
    rows = []
    for user in run.identities():
        w = Ward(base, ward, user)
        who = user or pwd.getpwuid(os.geteuid()).pw_name
        shutil.copy(build / 'bench' / 'bench-true', w.ws / 'true')
        try:
            rows += rows_of(w, base, args, who)
            if not user:
                found = measure_exec(w, base, args.rounds)
                rows.append((f'{who}: ward exec true', 'ms', found[0], None))
                if len(found) > 1:
                    rows.append((f'{who}: runc exec true', 'ms', found[1], None))
                    rows.append((f'{who}: ward exec / runc exec', '', found[0] / found[1], 0.5))
                dead, through = measure_kill(w, args.kill)
                rows.append((f'{who}: kill --all of {args.kill} with 5 processes each: dead', 'ms',
                             dead, None))
                rows.append((f'{who}: the same, until the verb is through', 'ms', through, None))
        finally:
            w('rm', '--force', '--all', check=False)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--many', type=int, default=500, help='sandboxes for ps')
    parser.add_argument('--kill', type=int, default=50,
                        help='sandboxes with five processes for kill --all')
    parser.add_argument('--rounds', type=int, default=100)
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', run.TOP / 'build'))
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench-', dir='/srv' if os.geteuid() == 0
                                         else pathlib.Path.home()))
    base.chmod(0o755)
    try:
        rows = measure(base, build, args)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    missed = [r for r in rows if r[3] is not None and r[2] > r[3]]
    (build / 'bench' / 'box.json').write_text(json.dumps(
        [{'what': r[0], 'unit': r[1], 'value': r[2], 'bar': r[3]} for r in rows], indent=1) + '\n')
    for what, unit, value, bar in rows:
        verdict = '' if bar is None else f'   bar {bar:g} {unit}' + ('   MISSED' if value > bar
                                                                     else '')
        print(f'{what:58} {value:9.2f} {unit:4}{verdict}')
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
