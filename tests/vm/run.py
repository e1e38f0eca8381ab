#!/usr/bin/python3
"""make test-vm: boots Debian kernels in QEMU (no KVM needed) and runs ward where this host's kernel
cannot show it.

    run.py [--keep] [BOOT...]

In: the build directory (WARD_BUILD, or build/) and Debian's kernel packages, which are downloaded
and unpacked below build/vm and never installed. Each boot of cases.py gets an initramfs with
busybox and ward, says over the serial line what came of each case, and is judged here. Ends with "N
passed, N failed".
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cases  # noqa: E402

TOP = HERE.parent.parent
BOOT_SECONDS = 400


def newest_package(pattern):
    """The newest kernel package whose name matches, as apt knows it."""
    names = subprocess.run(['apt-cache', 'pkgnames', 'linux-image-'], stdout=subprocess.PIPE,
                           text=True, check=True).stdout.split()
    found = [n for n in names if re.fullmatch(pattern, n)]
    return max(found, key=lambda n: [int(x) for x in re.findall(r'\d+', n)], default=None)


def fetch_package(package, work):
    """Downloads a package, which is the caller's."""
    print(f'fetching {package}', flush=True)
    subprocess.run(['apt-get', 'download', '-q', package], cwd=work, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next(work.glob(f'{package}_*.deb'))


def kernel_package(which):
    """new: the newest that this Debian has; old: the oldest line that it has."""
    oldest = newest_package(r'linux-image-6\.1\.0-\d+-cloud-amd64')
    newest = newest_package(r'linux-image-\d+\.\d+\.\d+\+deb\d+-cloud-amd64') or oldest
    package = {'new': newest, 'old': oldest}[which]
    if not package:
        sys.exit('no kernel package found: run apt-get update, or add bookworm-security to the '
                 'sources')
    return package


def kernel(which, work):
    """Path of an uncompressed kernel."""
    package = kernel_package(which)
    out = work / f'{package}.vmlinux'
    if not out.exists():
        deb = fetch_package(package, work)
        tree = work / package
        subprocess.run(['dpkg', '-x', deb, tree], check=True)
        image = next((tree / 'boot').glob('vmlinuz-*'))
        subprocess.run([HERE / 'extract_vmlinux.py', image, f'{out}.part'], check=True)
        os.rename(f'{out}.part', out)
        shutil.rmtree(tree)
        deb.unlink()
    return out


def add_libraries(root, program):
    """What a program is linked with."""
    needed = subprocess.run(['ldd', program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for library in re.findall(r'(/\S+) \(0x', needed):
        place = root / 'usr' / library.lstrip('/').removeprefix('usr/')
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copy(library, place)


def add_runtimes(root):
    """runc and crun, where this host has them, with their libraries."""
    for name in ('runc', 'crun'):
        program = shutil.which(name, path='/usr/sbin:/usr/bin')
        if program:
            shutil.copy(program, root / 'usr/sbin' / name)
            add_libraries(root, program)


def system_tree(build, work):
    """What every guest has: busybox under all its names, ward as it is installed, the files of /etc
    that ward looks at."""
    root = work / 'root'
    shutil.rmtree(root, ignore_errors=True)
    for name in ('usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64', 'etc', 'home/user', 'opt'):
        (root / name).mkdir(parents=True)
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        (root / name).symlink_to(f'usr/{name}')
    busybox = shutil.which('busybox')
    shutil.copy(busybox, root / 'usr/bin/busybox')
    for applet in subprocess.run([busybox, '--list'], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.split():
        if not (root / 'usr/bin' / applet).exists():
            (root / 'usr/bin' / applet).symlink_to('busybox')
    subprocess.run(['meson', 'configure', build, '-Dprefix=/'], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet'], check=True,
                   env={**os.environ, 'DESTDIR': str(root / 'usr')})
    shutil.rmtree(root / 'usr/share', ignore_errors=True)
    (root / 'etc/passwd').write_text('root:x:0:0:root:/root:/bin/sh\n'
                                     'user:x:1000:1000::/home/user:/bin/sh\n')
    (root / 'etc/group').write_text('root:x:0:\nuser:x:1000:\n')
    (root / 'etc/shadow').write_text('root:secret-hash:1::::::\nuser:*:1::::::\n')
    add_runtimes(root)
    shutil.copytree(HERE / 'apparmor', root / 'opt/apparmor')
    shutil.copy(HERE / 'guest-init.sh', root / 'init')
    (root / 'init').chmod(0o755)
    return root


def initramfs(root, work, name, prepare, todo):
    """The tree with this boot's cases, as a cpio archive owned by root."""
    lines = [prepare] + [f'case_run {shlex.quote(n)} {user} {shlex.quote(command)}'
                         for n, user, command, _ in todo]
    (root / 'cases.sh').write_text('\n'.join(lines) + '\n')
    out = work / f'{name}.cpio'
    listing = '\n'.join(str(p.relative_to(root)) for p in sorted(root.rglob('*')))
    with open(out, 'wb') as f:
        subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet', '-R', '0:0'], cwd=root,
                       input=listing.encode(), stdout=f, check=True)
    return out


def boot(vmlinux, cpio, cpu='qemu64', memory=768, seconds=BOOT_SECONDS):
    """Boots the guest to its end; returns what it said."""
    mhz = re.search(r'^cpu MHz\s*: ([\d.]+)', pathlib.Path('/proc/cpuinfo').read_text(), re.M)
    # Without the early TSC rate the kernel measures it against an emulated timer, and hangs when
    # the host is busy.
    words = ('console=ttyS0 panic=-1 quiet loglevel=1 tsc=reliable no_timer_check nokaslr '
             'lpj=5000000 mitigations=off reboot=t '
             'random.trust_cpu=on apparmor=1 security=apparmor '
             f'tsc_early_khz={int(float(mhz.group(1)) * 1000) if mhz else 2000000}')
    command = ['qemu-system-x86_64', '-M', 'microvm,pcie=on', '-accel', 'tcg', '-cpu', cpu, '-smp',
               '1', '-m', str(memory), '-nodefaults',
               '-no-user-config', '-display', 'none', '-serial', 'stdio', '-no-reboot', '-kernel',
               vmlinux, '-initrd', cpio, '-append', words]
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=seconds)
        return run.stdout.decode(errors='replace')
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b'').decode(errors='replace') + '\nno end after the time allowed\n'


class Result:
    """What the guest said of one case."""

    def __init__(self):
        self.code, self.out, self.report = None, '', None


def read_results(log):
    results = {}
    for kind, name, rest in re.findall(r'^@@(exit|output|report) (\S+) ?(.*?)\r?$', log, re.M):
        r = results.setdefault(name, Result())
        if kind == 'exit':
            r.code = int(rest)
        else:
            text = base64.b64decode(rest).decode(errors='replace')
            if kind == 'output':
                r.out = text
            else:
                r.report = json.loads(text)
    return results


def judge(name, check, r):
    """Empty when all is well, else why not."""
    if r is None or r.code is None:
        return 'it never ended'
    try:
        return '' if check(r) else 'not as expected'
    except (KeyError, TypeError, AttributeError) as error:
        return f'the report lacks something: {error!r}'


def show(name, todo, log):
    """Says what came of each case; returns how many are not as they should be."""
    results = read_results(log)
    release = re.search(r'^@@kernel (\S+)', log, re.M)
    print(f'== {name} on {release.group(1) if release else "a kernel that did not come up"}',
          flush=True)
    bad = 0
    for case, _, command, check in todo:
        r = results.get(case)
        why = judge(case, check, r)
        print(f'{"FAIL" if why else "ok  "} {case}', flush=True)
        if why:
            bad += 1
            print(f'    {why}: {command}')
            if r:
                print(f'    exit {r.code}, report {json.dumps(r.report)}')
                print('    ' + r.out.replace('\n', '\n    '))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--keep', action='store_true',
                        help='keep the serial logs of boots that went well, too')
    parser.add_argument('boots', nargs='*')
    args = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', TOP / 'build'))
    work = build / 'vm'
    work.mkdir(exist_ok=True)
    root = system_tree(build, work)
    passed = failed = 0
    for name, which, prepare, todo in cases.BOOTS:
        if args.boots and name not in args.boots:
            continue
        vmlinux = kernel(which, work)
        log = boot(vmlinux, initramfs(root, work, name, prepare, todo))
        bad = show(name, todo, log)
        passed, failed = passed + len(todo) - bad, failed + bad
        if bad or args.keep:
            (work / f'{name}.log').write_text(log)
            print(f'   serial log: {work / name}.log')
        (work / f'{name}.cpio').unlink()
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
