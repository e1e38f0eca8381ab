#!/usr/bin/python3
"""make test-gvisor-kvm: gVisor's platform kvm, on whatever machine: QEMU emulates a processor with
AMD's virtualization, so a guest that boots there has a /dev/kvm that runs machines of its own, and
ward starts gVisor on it.

In: the build directory (WARD_BUILD, or build/), QEMU, runsc, Debian's newest cloud kernel, which is
downloaded once and never installed. The processor has no XSAVE: QEMU 7.2 does not tell KVM of a
guest's xsetbv, so that XCR0 is another one after the next exit, and gVisor's kernel ends with a
general protection fault at xrstor (`runsc --platform=kvm do true` alone, too). The probe refuses
such a processor. Ends with "N passed, N failed".
"""
import os
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gvisor_kvm_cases  # noqa: E402
import kvm  # noqa: E402
import run  # noqa: E402

SECONDS = 900
PROCESSOR = kvm.PROCESSOR


def main():
    runsc = shutil.which('runsc', path='/usr/local/bin:/usr/bin:/usr/sbin')
    if not runsc:
        sys.exit('there is no runsc: tools/gvisor.sh installs it')
    build = pathlib.Path(os.environ.get('WARD_BUILD', run.TOP / 'build'))
    work = build / 'vm' / 'gvisor-kvm'
    work.mkdir(parents=True, exist_ok=True)
    root = run.system_tree(build, work)
    shutil.copy(runsc, root / 'usr/bin/runsc')
    packages = build / 'vm' / 'kvm'
    packages.mkdir(exist_ok=True)
    kvm.add_modules(root, work, kvm.kernel_package(packages))
    todo = [case for case in gvisor_kvm_cases.CASES if not sys.argv[1:]
            or any(word in case[0] for word in sys.argv[1:])]
    cpio = run.initramfs(root, work, 'gvisor-kvm', gvisor_kvm_cases.PREPARE, todo)
    log = run.boot(run.kernel('new', work.parent), cpio, cpu=PROCESSOR, memory=3072,
                   seconds=SECONDS)
    (work / 'gvisor-kvm.log').write_text(log)
    cpio.unlink()
    bad = run.show('gvisor-kvm', todo, log)
    print(f'{len(todo) - bad} passed, {bad} failed (serial log: {work / "gvisor-kvm.log"})')
    return 1 if bad or not todo else 0


if __name__ == '__main__':
    sys.exit(main())
