#!/usr/bin/python3
"""make bench: what a start costs, ward and its peers side by side in one run, as root and as an
ordinary user.

In: the build directory (WARD_BUILD, or build/). Out: a table on standard output,
build/bench/bench.json and bench.svg. Everything happens below one directory (in /srv or the user's
home, because firejail empties /tmp and /var/tmp) that is removed at the end; bench-spawn (C) does
the timing, this file only lays things out: an installed copy of ward that every user can reach, a
workspace per user, an OCI bundle for runc and crun, the seccomp filter of ward's default set as a
file for bwrap.

Peers get arguments that come to the same: every namespace, no network, /usr read-only, own /proc,
/dev and /tmp, the workspace writable. None of them has Landlock, and runc and crun run without a
seccomp filter here: that favours them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
USER = 'wardtest'
LIMITS_OFF = ['--memory', 'none', '--pids', 'none', '--disk', 'none',
              '--set', 'resources.inode_limit=none', '--set', 'resources.open_files=none']


def which(name):
    return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')


def stage_ward(build, base):
    """An installed tree, because the build directory may lie where the other user cannot look."""
    prefix = base / 'ward'
    subprocess.run(['meson', 'configure', build, '-Dprefix=/'], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet'], check=True,
                   env={**os.environ, 'DESTDIR': str(prefix)})
    return prefix / 'bin' / 'ward'


def write_filter(build, base):
    """ward's own filter as bwrap's --seccomp wants it: an array of struct sock_filter."""
    program = build / 'bench' / 'bench-filter'
    path = base / 'filter.bpf'
    with open(path, 'wb') as out:
        subprocess.run([program, 'default'], stdout=out, check=True)
    return path


def make_workspace(path, owner, files, true):
    path.mkdir()
    shutil.copy(true, path / 'true')
    for i in range(files):
        directory = path / f'd{i // 100}'
        if i % 100 == 0:
            directory.mkdir()
        (directory / f'f{i % 100}').touch()
    if owner:
        subprocess.run(['chown', '-R', owner, path], check=True)
    return path


def oci_bundle(base, ws, rootless):
    """The bundle that `runc spec` proposes, cut to the same view, with memory and pids limits."""
    bundle = base / ('bundle-user' if rootless else 'bundle')
    for name in ('proc', 'dev', 'sys', 'usr', 'tmp', str(ws).lstrip('/')):
        (bundle / 'rootfs' / name).mkdir(parents=True, exist_ok=True)
    subprocess.run(['runc', 'spec', '--bundle', bundle] + (['--rootless'] if rootless else []),
                   check=True)
    config = json.loads((bundle / 'config.json').read_text())
    config['process'].update(terminal=False, args=[str(ws / 'true')], cwd=str(ws),
                             noNewPrivileges=True)
    config['process'].pop('rlimits', None)
    config['mounts'] += [
        {'destination': '/usr', 'source': '/usr', 'type': 'bind',
         'options': ['rbind', 'ro', 'nosuid', 'nodev']},
        {'destination': '/tmp', 'source': 'tmpfs', 'type': 'tmpfs', 'options': ['nosuid', 'nodev']},
        {'destination': str(ws), 'source': str(ws), 'type': 'bind',
         'options': ['bind', 'rw', 'nosuid', 'nodev']}]
    if rootless:
        user = pwd.getpwnam(USER) if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        config['linux']['uidMappings'][0]['hostID'] = user.pw_uid
        config['linux']['gidMappings'][0]['hostID'] = user.pw_gid
    else:
        config['linux']['resources'] = {'memory': {'limit': 1 << 30}, 'pids': {'limit': 1024}}
    (bundle / 'config.json').write_text(json.dumps(config))
    if rootless and os.geteuid() == 0:
        subprocess.run(['chown', '-R', USER, bundle], check=True)
    return bundle


def bwrap(ws, seccomp=False):
    words = [which('bwrap'), '--unshare-all', '--die-with-parent', '--new-session', '--clearenv',
             '--ro-bind', '/usr', '/usr']
    for name in ('bin', 'lib', 'lib64', 'sbin'):
        words += ['--symlink', f'usr/{name}', f'/{name}']
    words += ['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--bind', str(ws), str(ws),
              '--chdir', str(ws)]
    return words + (['--seccomp', '9'] if seccomp else []) + ['--', str(ws / 'true')]


def contenders(base, ward, ws, filter_file, who, root, crun_ns):
    """Rows for bench-spawn: name, every, file for descriptor 9, mount namespace, argv."""
    true = str(ws / 'true')
    rows = [
        ('bare', 1, '-', '-', [true]),
        ('unshare', 1, '-', '-', [which('unshare'), '--user', '--map-root-user', '--mount', '--pid',
                                  '--net', '--ipc',
                                  '--uts', '--cgroup', '--fork', '--mount-proc', true]),
        ('bwrap', 1, '-', '-', bwrap(ws)),
        ('bwrap + seccomp', 1, filter_file, '-', bwrap(ws, True)),
        ('ward', 1, '-', '-', [str(ward), 'run', '-w', str(ws)] + LIMITS_OFF + ['--', true]),
        ('ward with limits', 1, '-', '-', [str(ward), 'run', '-w', str(ws), '--', true]),
        ('firejail', 5, '-', '-', [which('firejail'), '--quiet', '--noprofile', '--net=none',
                                   '--private-dev', '--private-tmp',
                                   '--caps.drop=all', '--nonewprivs', '--seccomp', true]),
    ]
    bundle = oci_bundle(base, ws, not root) if which('runc') else None
    for name, ns in (('runc', '-'), ('crun', crun_ns)) if bundle else ():
        rows.append((name, 5, '-', ns if root else '-', [
            which(name), '--root', str(base / f'state-{who}' / name), 'run', '--bundle',
            str(bundle), f'ward-bench-{name}']))
    return [row for row in rows if row[4][0]]


def spawn(build, base, user, rows, *mode):
    """Runs bench-spawn over the rows as root or user; returns {name: (state, numbers)}."""
    listing = base / 'contenders'
    listing.write_text(''.join('\t'.join([r[0], str(r[1]), str(r[2]), str(r[3])] + r[4]) + '\n'
                               for r in rows))
    who = user or 'root'
    state = base / f'state-{who}'
    state.mkdir(exist_ok=True, mode=0o700)
    shutil.copy(build / 'bench' / 'bench-spawn', base / 'spawn')
    command = [str(base / 'spawn'), *mode, str(listing)]
    if user:
        shutil.chown(state, user)
        command = ['setpriv', '--reuid', user, '--regid', user, '--init-groups'] + command
    env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'LANG': 'C', 'HOME': str(state),
           'WARD_STATE_DIR': str(state / 'state'),
           'WARD_RUNTIME_DIR': str(state / 'run'), 'XDG_RUNTIME_DIR': str(state)}
    with open(state / 'stderr', 'w+') as err:
        if user:    # runc wants to own what it writes to
            shutil.chown(err.name, user)
        out = subprocess.run(command, env=env, cwd='/', stdout=subprocess.PIPE, stderr=err,
                             text=True, check=True).stdout
        err.seek(0)
        sys.stderr.write(err.read())
    return {f[0]: (f[1], [int(x) for x in f[2:]])
            for f in (line.split('\t') for line in out.splitlines())}


@contextlib.contextmanager
def namespace_without_unified():
    """crun refuses hybrid cgroups, so it gets a mount namespace where the v2 tree is not seen."""
    if os.geteuid() or not os.path.ismount('/sys/fs/cgroup/unified'):
        yield '-'
        return
    holder = subprocess.Popen(['unshare', '--mount', 'sh', '-c',
                               'umount /sys/fs/cgroup/unified && echo ready && exec sleep 3600'],
                              stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        yield f'/proc/{holder.pid}/ns/mnt'
    finally:
        holder.kill()
        holder.wait()


def identities():
    """Whom to measure as: root measures both; a user only itself."""
    if os.geteuid():
        return [None]
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(['useradd', '-m', USER], check=True)
    return [None, USER]


def measure(build, base, args):
    ward = stage_ward(build, base)
    filter_file = write_filter(build, base)
    true = build / 'bench' / 'bench-true'
    results = {}
    with namespace_without_unified() as crun_ns:
        for user in identities():
            who = user or pwd.getpwuid(os.geteuid()).pw_name
            ws = make_workspace(base / f'ws-{who}', user, 0, true)
            rows = contenders(base, ward, ws, filter_file, user or 'root',
                              os.geteuid() == 0 and not user, crun_ns)
            one = results[who] = {'starts': args.rounds,
                                  'latency': spawn(build, base, user, rows, 'latency',
                                                   str(args.rounds))}
            by_name = {r[0]: r for r in rows}
            one['parallel'] = spawn(build, base, user,
                                    [by_name['ward'], by_name['ward with limits']], 'rate',
                                    '20', '20')
            one['rate'] = spawn(build, base, user,
                                [by_name[n] for n in ('bare', 'bwrap', 'ward') if n in by_name],
                                'rate', '4', str(args.rounds))
            if args.growth:
                grown = [(f'{n} files', 1, '-', '-', [str(ward), 'run', '-w', str(w)] + LIMITS_OFF
                          + ['--', str(w / 'true')])
                         for n in (0, 1000, 10000, 50000)
                         for w in [make_workspace(base / f'ws-{who}-{n}', user, n, true)]]
                one['growth'] = spawn(build, base, user, grown, 'latency',
                                      str(max(args.rounds // 10, 5)))
    return results


def forget_the_deleted():
    """ext4 gives nobody the inode of a file that was deleted within the last minutes, and looks
    through all of them whenever a file is made: whoever makes files would pay for those that the
    last bench has removed. What is on the disk counts as old."""
    os.sync()
    with contextlib.suppress(OSError):  # not as a user, nor in every container
        pathlib.Path('/proc/sys/vm/drop_caches').write_text('1')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--rounds', type=int, default=int(os.environ.get('ROUNDS', 200)))
    parser.add_argument('--no-growth', dest='growth', action='store_false',
                        help='leave out the large workspaces')
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', TOP / 'build'))
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench-', dir='/srv' if os.geteuid() == 0
                                         else pathlib.Path.home()))
    base.chmod(0o755)
    forget_the_deleted()
    try:
        results = measure(build, base, args)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    out = build / 'bench'
    summary = report.summarise(results)
    (out / 'bench.json').write_text(json.dumps(summary, indent=1) + '\n')
    (out / 'bench.svg').write_text(report.svg(summary))
    print(report.text(summary))
    print(f'written: {out}/bench.json {out}/bench.svg')
    return 0 if report.sound(summary) else 1


if __name__ == '__main__':
    sys.exit(main())
