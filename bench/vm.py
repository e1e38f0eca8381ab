#!/usr/bin/python3
"""A clone of a template through ward beside QEMU's own start from an incoming migration, interleaved.

    vm.py --image NAME [--rounds 9]

In: a build (WARD_BUILD, or build/), a kernel and an image in the state directory (ward vm setup; ward vm template build --accel tcg
--image NAME). Out: medians and minima in milliseconds of: QEMU alone, restored from the template's files, until its guest answers on the
port (the frame that says the time is taken); `ward run -- true` in a clone, all of it; and one `ward exec -- true` in a machine that
runs, beside the same in a native sandbox.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('WARD_BUILD', TOP / 'build'))
WARD = BUILD / 'src/cli/ward'


def state():
    return pathlib.Path(os.environ.get('WARD_STATE_DIR') or ('/var/lib/ward' if os.getuid() == 0 else pathlib.Path.home() / '.local/state/ward'))


def qemu_alone(template, root, memory_mib):
    """Milliseconds from the start of QEMU until the restored guest takes what is sent to it: a command that is none gets an answer."""
    port, port_in = socket.socketpair()
    control, control_in = socket.socketpair()
    fd = os.open(template / 'state', os.O_RDONLY)
    for f in (port_in.fileno(), control_in.fileno(), fd):
        os.set_inheritable(f, True)
    argv = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-machine', 'microvm,pcie=on,memory-backend=ram', '-accel', 'tcg,thread=multi', '-cpu', 'max',
            '-smp', '1', '-m', f'{memory_mib}M', '-object', f'memory-backend-file,id=ram,size={memory_mib}M,mem-path={template}/ram,share=off',
            '-chardev', f'socket,id=port,fd={port_in.fileno()}', '-device', 'virtio-serial-pci', '-device', 'virtserialport,chardev=port,name=ward.0',
            '-drive', f'if=none,id=root,format=raw,readonly=on,file={root}', '-device', 'virtio-blk-pci,drive=root',
            '-chardev', f'socket,id=control,fd={control_in.fileno()}', '-mon', 'chardev=control,mode=control', '-serial', 'none', '-incoming', 'defer']
    env = {**os.environ, 'LD_PRELOAD': str(BUILD / 'src/vm/ward-vm-ram.so'), 'WARD_VM_RAM': f'{template}/ram'}
    began = time.monotonic()
    qemu = subprocess.Popen(argv, pass_fds=(port_in.fileno(), control_in.fileno(), fd), env=env)
    control.sendall(b'{"execute":"qmp_capabilities"}\n{"execute":"migrate-set-capabilities","arguments":{"capabilities":[{"capability":"x-ignore-shared","state":true}]}}\n'
                    + json.dumps({'execute': 'migrate-incoming', 'arguments': {'uri': f'fd:{fd}'}}).encode() + b'\n')
    heard = b''
    while b'"RESUME"' not in heard:
        heard += control.recv(4096)
        if qemu.poll() is not None:
            sys.exit('QEMU could not restore the template')
    ms = (time.monotonic() - began) * 1000
    qemu.kill()
    qemu.wait()
    for s in (port, port_in, control, control_in):
        s.close()
    os.close(fd)
    return ms


def timed(*argv):
    began = time.monotonic()
    subprocess.run([WARD, *argv], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.monotonic() - began) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--image', required=True)
    args = parser.parse_args()
    templates = list((state() / 'vm/templates').glob('*/ram'))
    if not templates:
        sys.exit('no template: ward vm template build --accel tcg --image NAME')
    template = max(templates, key=os.path.getmtime).parent
    root = max((state() / 'vm/roots').glob('*.erofs'), key=os.path.getmtime)
    memory = os.path.getsize(template / 'ram') >> 20
    vm = ['--isolation', 'vm', '--set', 'vm.accel=tcg', '--set', f'vm.memory={memory}Mi', '--image', args.image]
    box = subprocess.run([WARD, 'run', '-d', *vm, '--', 'sleep', '1000'], check=True, capture_output=True, text=True).stdout.strip()
    native = subprocess.run([WARD, 'run', '-d', '--', 'sleep', '1000'], check=True, capture_output=True, text=True).stdout.strip()
    rows = {'QEMU alone, restored': lambda: qemu_alone(template, root, memory), 'ward run -- true, clone': lambda: timed('run', *vm, '--', 'true'),
            'ward exec -- true, machine': lambda: timed('exec', box, '--', 'true'), 'ward exec -- true, native': lambda: timed('exec', native, '--', 'true')}
    times = {name: [] for name in rows}
    try:
        for _ in range(args.rounds):
            for name, run in rows.items():
                times[name].append(run())
    finally:
        subprocess.run([WARD, 'rm', '--force', box, native], check=False, stdout=subprocess.DEVNULL)
    for name, values in times.items():
        print(f'{name:28} median {statistics.median(values):8.1f} ms   least {min(values):8.1f} ms')


if __name__ == '__main__':
    main()
