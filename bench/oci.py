#!/usr/bin/python3
"""bench/oci.py: what a start costs with isolation: oci, beside the runtime alone with an equal
bundle; interleaved, as root and as an ordinary user.

In: the build directory (WARD_BUILD, or build/). Out: a table on standard output; with --doc also
docs/bench-oci.md. The bundle is made of `ward plan --json`: the same mounts, links and files, the
same tmpfs sizes, the same names of system calls, masked paths, rlimits and (as root) cgroup limits.
`runc run` waits for the command, as ward does. Where root can (cgroup v1 with cpuacct) the
processor time of each start is measured, too: on a busy machine it says more than the clock. Exit
1: runc over the bar by the clock and by processor time.
"""
import argparse
import json
import os
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
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tools'))
from wrap_markdown import wrap  # noqa: E402

BAR = 1.10


def call_names(build):
    """What the bundle's seccomp list has: the same as ward's own."""
    text = (build / 'src' / 'engine' / 'seccomp-oci.h').read_text()
    return [name for name, level in re.findall(r'\{ "(\w+)", (\d) \}', text) if int(level) <= 1]


def bind(source, target, writable):
    return {'destination': target, 'type': 'bind', 'source': source,
            'options': ['rbind', 'rw' if writable else 'ro', 'nosuid', 'nodev', 'rprivate']}


def mounts_of(plan, root, ids):
    """The plan's mounts for a config.json; links and files are made in the root."""
    owner = f'uid={ids[0]},gid={ids[1]}'
    rows = [{'destination': '/proc', 'type': 'proc', 'source': 'proc',
             'options': ['nosuid', 'noexec', 'nodev']},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs',
             'options': ['nosuid', 'noexec', 'mode=755', 'size=65536']},
            {'destination': '/dev/pts', 'type': 'devpts', 'source': 'devpts',
             'options': ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620']},
            {'destination': '/dev/shm', 'type': 'tmpfs', 'source': 'shm',
             'options': ['nosuid', 'noexec', 'nodev', 'mode=1777', owner]}]
    for m in plan['mounts']:
        place = root / m['target'].lstrip('/')
        place.parent.mkdir(parents=True, exist_ok=True)
        if m['kind'] == 'link':
            place.symlink_to(m['source'])
        elif m['kind'] == 'file':
            place.write_text('')
        elif m['kind'] == 'bind':
            if os.path.isdir(m['source']):
                place.mkdir(exist_ok=True)
            else:
                place.touch()
            rows.append(bind(m['source'], m['target'], m['writable']))
        elif m['kind'] == 'tmpfs':
            place.mkdir(exist_ok=True)
            rows.append({'destination': m['target'], 'type': 'tmpfs', 'source': 'ward',
                         'options': ['nosuid', 'nodev', f'size={m["bytes"]}', owner]})
    return rows


def equal_bundle(base, build, plan, ws, who, user):
    bundle = base / f'bundle-{who}'
    root = bundle / 'rootfs'
    for name in ('proc', 'dev'):
        (root / name).mkdir(parents=True)
    inside = 0 if user else 1000
    maps = [[0, user.pw_uid if user else 300000, 1]] + ([]
                                                        if user
                                                        else [[1000, os.stat(ws).st_uid or 300001,
                                                               1]])
    mapping = [dict(zip(('containerID', 'hostID', 'size'), row)) for row in maps]
    gid_mapping = [dict(row, hostID=user.pw_gid) for row in mapping] if user else mapping
    linux = {'namespaces': [{'type': n} for n in ('user', 'mount', 'pid', 'network', 'ipc', 'uts',
                                                  'cgroup')], 'uidMappings': mapping,
             'gidMappings': gid_mapping,
             'maskedPaths': ['/proc/kallsyms', '/proc/keys', '/proc/key-users', '/proc/interrupts'],
             'readonlyPaths': ['/proc/sys', '/proc/pressure'],
             'seccomp': {'defaultAction': 'SCMP_ACT_ERRNO', 'architectures': ['SCMP_ARCH_X86_64'],
                         'syscalls': [{'names': call_names(build), 'action': 'SCMP_ACT_ALLOW'}]}}
    if not user:
        linux['resources'] = {'memory': {'limit': plan['limits']['memory']['value']},
                              'pids': {'limit': plan['limits']['pids']['value']}}
    config = {'ociVersion': '1.0.2', 'hostname': 'ward',
              'root': {'path': 'rootfs', 'readonly': True},
              'mounts': mounts_of(plan, root, (inside, inside)), 'linux': linux,
              'process': {'terminal': False, 'user': {'uid': inside, 'gid': inside},
                          'args': [str(ws / 'true')], 'env': ['PATH=/usr/bin:/bin'], 'cwd': str(ws),
                          'noNewPrivileges': True,
                          'rlimits': [{'type': 'RLIMIT_CORE', 'soft': 0, 'hard': 0},
                                      {'type': 'RLIMIT_NOFILE', 'soft': 4096, 'hard': 4096}],
                          'capabilities': {}}}
    (bundle / 'config.json').write_text(json.dumps(config))
    if user:
        subprocess.run(['chown', '-R', f'{user.pw_uid}:{user.pw_gid}', bundle], check=True)
    return bundle


def pairs(base, build, ward, ws, who, user, crun_ns):
    prefix = ['setpriv', '--reuid', user.pw_name, '--regid', user.pw_name,
              '--init-groups'] if user and os.geteuid() == 0 else []
    rows = []
    for name in ('runc', 'crun'):
        if not run.which(name):
            continue
        words = [str(ward), 'run', '-w', str(ws), '--isolation', 'oci', '--set',
                 f'oci.runtime={name}', '--', str(ws / 'true')]
        plan = json.loads(subprocess.run(prefix + [str(ward), 'plan', '--json'] + words[2:],
                                         stdout=subprocess.PIPE, check=True, cwd='/').stdout)
        if not (base / f'bundle-{who}').exists():
            equal_bundle(base, build, plan, ws, who, user)
        alone = [run.which(name), '--root', str(base / f'state-{who}' / name), 'run', '--bundle',
                 str(base / f'bundle-{who}'), f'ward-bench-{name}']
        if name == 'crun' and user:
            alone.insert(1, '--cgroup-manager=disabled')
        rows += [(name, 1, '-', crun_ns if name == 'crun' else '-', alone),
                 (f'ward, {name}', 1, '-', '-', words)]
    return rows


def accounts():
    """The caller's own cgroup of cpuacct; None: there is none."""
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, names, path = line.split(':', 2)
        if 'cpuacct' in names.split(',') and os.geteuid() == 0:
            place = pathlib.Path('/sys/fs/cgroup') / names / path.lstrip('/')
            return place if (place / 'cpuacct.usage').exists() else None
    return None


def processor_time(base, rows, who, user, rounds):
    """{name: [ms of processors a start]}: all processes, the container's included, because cgroups
    hold their children's."""
    place, found = accounts(), {}
    env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'HOME': str(base / f'state-{who}'),
           'WARD_STATE_DIR': str(base / f'state-{who}' / 'state'),
           'WARD_RUNTIME_DIR': str(base / f'state-{who}' / 'run'),
           'XDG_RUNTIME_DIR': str(base / f'state-{who}')}
    for _ in range(rounds if place else 0):
        for name, _, _, ns, argv in rows:
            directory = place / f'ward-bench-{name.split()[0].strip(",")}-{name.split()[-1]}'
            directory.mkdir(exist_ok=True)
            before = ['nsenter', f'--mount={ns}'] if ns != '-' else []
            before += ['setpriv', '--reuid', user.pw_name, '--regid', user.pw_name,
                       '--init-groups'] if user else []
            words = ['sh', '-c', 'echo 0 > "$0"/cgroup.procs; exec "$@"', str(directory), *before,
                     *argv]
            ended = subprocess.run(words, env=env, cwd='/', stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, check=False).returncode
            time.sleep(0.03)	# whoever was not waited for ends, too
            used = int((directory / 'cpuacct.usage').read_text())
            for top, _, _ in os.walk(directory, topdown=False):
                os.rmdir(top)
            if ended == 0:
                found.setdefault(name, []).append(used / 1e6)
    return found


def measure(build, base, rounds):
    ward = run.stage_ward(build, base)
    results = {}
    with run.namespace_without_unified() as crun_ns:
        for name in run.identities():
            user = run.pwd.getpwnam(name) if name else run.pwd.getpwuid(
                os.geteuid()) if os.geteuid() else None
            who = user.pw_name if user else 'root'
            ws = run.make_workspace(base / f'ws-{who}', name, 0, build / 'bench' / 'bench-true')
            rows = pairs(base, build, ward, ws, who, user, crun_ns if not user else '-')
            results[who] = run.spawn(build, base, name, rows, 'latency',
                                     str(rounds)), processor_time(base, rows, who, user,
                                                                  max(rounds // 3, 5))
    return results


def table(results):
    """Lines of the table, and runc's worst ratio of medians: the better one of clock and processor
    time."""
    lines, worst = ['| who | runtime | alone, ms | ward, ms | ratio | of minima | processors '
                    'alone, ms | ward, ms | ratio |', '| --- ' * 9 + '|'], 0
    for who, (clock, used) in results.items():
        for name in ('runc', 'crun'):
            alone, mine = clock.get(name), clock.get(f'ward, {name}')
            if not alone or not alone[1] or not mine[1]:
                lines.append(f'| {who} | {name} | {alone and alone[0]} | {mine and mine[0]} | '
                             + '| ' * 6)
                continue
            a, b = (statistics.median(x[1]) / 1e6 for x in (alone, mine))
            row = (f'| {who} | {name} | {a:.1f} | {b:.1f} | {b / a:.2f} | '
                   f'{min(mine[1]) / min(alone[1]):.2f} |')
            ratio = b / a
            if name in used and f'ward, {name}' in used:
                a, b = (statistics.median(used[n]) for n in (name, f'ward, {name}'))
                row += f' {a:.1f} | {b:.1f} | {b / a:.2f} |'
                ratio = min(ratio, b / a)
            lines.append(row)
            worst = max(worst, ratio if name == 'runc' else 0)
    return lines, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--rounds', type=int, default=int(os.environ.get('ROUNDS', 40)))
    parser.add_argument('--doc', action='store_true', help='write docs/bench-oci.md')
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', run.TOP / 'build'))
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench-', dir='/srv' if os.geteuid() == 0
                                         else pathlib.Path.home()))
    base.chmod(0o755)
    try:
        lines, worst = table(measure(build, base, args.rounds))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print('\n'.join(lines))
    print(f'runc: worst ratio {worst:.2f}, bar {BAR:.2f}')
    if args.doc:
        (run.TOP / 'docs' / 'bench-oci.md').write_text(wrap(
            '# A start with isolation: oci, beside the runtime alone\n\n'
            f'`bench/oci.py --doc`, {args.rounds} starts each, interleaved; medians of the time '
            'from fork to the end of a program that does nothing. The bundle for the runtime alone '
            'has the same mounts, system call names, '
            'masked paths and limits as the plan. ward makes the mounts and the network itself, '
            'which takes it less time than it takes runc, and pays with that for a namespace, the '
            'filter, the record and the report. `runc` has the bar of 1.10; where the machine was '
            'busy the processor time counts. '
            'crun alone refuses hosts with both versions of cgroups; as root it is measured in a '
            'mount namespace without the second one.\n\n'
            + '\n'.join(lines) + '\n'))
    return 0 if worst <= BAR else 1


if __name__ == '__main__':
    sys.exit(main())
