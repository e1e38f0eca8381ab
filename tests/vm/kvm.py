#!/usr/bin/python3
"""make test-vm-kvm: the vm engine with KVM, on whatever machine: QEMU emulates a processor with
AMD's virtualization, so a guest that boots there has a /dev/kvm that runs machines of its own, and
ward starts some.

In: the build directory (WARD_BUILD, or build/), QEMU, Debian's newest cloud kernel, which is
downloaded once and never installed. What the inner machines start from (kernel, image, root) is
made here, by the ward that goes into the guest; what is tested is made there. Minutes, because all
is emulated. Ends with "N passed, N failed".
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import kvm_cases  # noqa: E402
import run  # noqa: E402

SECONDS = 1500
# QEMU 7.2 lets a guest set XCR0 behind KVM's back, and has another one after the next exit: the
# probe refuses that
PROCESSOR = 'max,-xsave'
MODULES = ('virt/lib/irqbypass', 'arch/x86/kvm/kvm', 'arch/x86/kvm/kvm-amd')
FIRMWARE = ('bios-microvm.bin', 'pvh.bin', 'linuxboot_dma.bin', 'kvmvapic.bin')
APPLETS = ('sh', 'cat', 'ls', 'id', 'uname', 'sleep', 'true', 'grep')


def kernel_package(work):
    """The kernel's package; kept for the next time."""
    name = run.kernel_package('new')
    return next(work.glob(f'{name}_*.deb'), None) or run.fetch_package(name, work)


def add_qemu(root):
    for name in ('qemu-system-x86_64', 'mkfs.erofs', 'tar'):
        program = shutil.which(name, path='/usr/bin:/usr/sbin')
        (root / 'usr/bin' / name).unlink(missing_ok=True)
        shutil.copy(program, root / 'usr/bin' / name)
        run.add_libraries(root, program)
    for program in ('ward-vm-tool', 'ward-image'):
        run.add_libraries(root, root / 'usr/libexec/ward' / program)
    (root / 'usr/share/qemu').mkdir(parents=True)
    for name in FIRMWARE:
        shutil.copy(f'/usr/share/qemu/{name}', root / 'usr/share/qemu' / name)


def add_modules(root, work, package):
    tree = work / 'tree'
    subprocess.run(['dpkg', '-x', package, tree], check=True)
    (root / 'opt/modules').mkdir()
    for name in MODULES:
        packed = next(tree.glob(f'lib/modules/*/kernel/{name}.ko.xz'))
        with open(root / 'opt/modules' / (pathlib.Path(name).name + '.ko'), 'wb') as f:
            subprocess.run(['xz', '-dc', packed], stdout=f, check=True)
    shutil.rmtree(tree)


def add_state(root, work, package):
    """What `ward vm setup` and `ward image import` keep, made by the guest's own ward."""
    small = work / 'small'
    shutil.rmtree(small, ignore_errors=True)
    for name in ('bin', 'etc', 'tmp', 'usr'):
        (small / name).mkdir(parents=True)
    shutil.copy(shutil.which('busybox'), small / 'bin/busybox')
    for name in APPLETS:
        (small / 'bin' / name).symlink_to('busybox')
    state = root / 'opt/state'
    state.mkdir(mode=0o700)
    ward = [root / 'usr/bin/ward']
    env = {**os.environ, 'WARD_STATE_DIR': str(state)}
    for words in (['vm', 'setup', '--quiet', '--from', package],
                  ['image', 'import', '--quiet', small, '--name', 'small'],
                  ['vm', 'root', '--quiet', 'small']):
        subprocess.run(ward + words, env=env, check=True, stdout=subprocess.DEVNULL)


def main():
    build = pathlib.Path(os.environ.get('WARD_BUILD', run.TOP / 'build'))
    work = build / 'vm' / 'kvm'
    work.mkdir(parents=True, exist_ok=True)
    root = run.system_tree(build, work)
    package = kernel_package(work)
    add_qemu(root)
    add_modules(root, work, package)
    add_state(root, work, package)
    todo = [case for case in kvm_cases.CASES if not sys.argv[1:]
            or any(word in case[0] for word in sys.argv[1:])]
    cpio = run.initramfs(root, work, 'kvm', kvm_cases.PREPARE, todo)
    log = run.boot(run.kernel('new', work.parent), cpio, cpu=PROCESSOR, memory=3072,
                   seconds=SECONDS)
    (work / 'kvm.log').write_text(log)
    cpio.unlink()
    bad = run.show('kvm', todo, log)
    print(f'{len(todo) - bad} passed, {bad} failed (serial log: {work / "kvm.log"})')
    return 1 if bad or not todo else 0


if __name__ == '__main__':
    sys.exit(main())
