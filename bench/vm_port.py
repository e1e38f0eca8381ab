"""A machine that is restored from a template by QEMU alone, and the frames of its port
(src/vm/wire.h), for bench/vm.py."""
import json
import os
import socket
import struct
import subprocess
import sys
import time

TYPES = ('', 'READY', 'TIME', 'SETUP', 'WORDS', 'START', 'DATA', 'WINDOW', 'EOF', 'BROKEN',
         'SIGNAL', 'RESIZE', 'STOPPED', 'EXIT', 'ERROR', 'QUIESCE', 'QUIET', 'ECHO')
RUN = 1


def frame(kind, channel=0, payload=b''):
    return struct.pack('<HBBII', 0x5657, TYPES.index(kind), 0, channel, len(payload)) + payload


def command(channel, *argv):
    """What starts a command: its words, then START, then the end of its input."""
    words = b''.join(w.encode() + b'\0' for w in ('/', *argv, 'PATH=/bin'))
    return frame('WORDS', channel, words) + frame('START', channel,
                                                  struct.pack('<IIIHHHH', RUN, len(argv), 1, 0, 0,
                                                              0, 0)) + frame('EOF', channel)


def bare_command(*argv):
    """The same for bench/vm_bare.c: one frame, the path and one more word."""
    return frame('WORDS', 1, b''.join(w.encode() + b'\0' for w in (*argv, '')))


def greeting():
    now = time.time_ns()
    return (frame('TIME', payload=struct.pack('<qII', now // 10**9, now % 10**9, 0)
                  + os.urandom(32))
            + frame('SETUP', payload=struct.pack('<IIQQQ64s', 1000, 1000, 0, 0, 0, b'')))


class Machine:
    """QEMU with the devices that ward-vm gives it, started by nobody but this program, from the
    files of a template."""

    def __init__(self, template, root, disk, memory_mib, shim, first=b''):
        port_in, control_in = self.sockets()
        state = os.open(template / 'state', os.O_RDONLY)
        self.fds = [port_in.fileno(), control_in.fileno(), state]
        argv = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-no-reboot', '-display',
                'none', '-monitor', 'none', '-parallel', 'none',
                '-sandbox',
                'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny',
                '-machine', 'microvm,pcie=on,memory-backend=ram',
                '-accel', 'tcg,thread=multi,tb-size=64', '-cpu', 'max,-erms,-fsrm', '-smp', '1',
                '-m', f'{memory_mib}M',
                '-object',
                f'memory-backend-file,id=ram,size={memory_mib}M,mem-path={template}/ram,share=off',
                '-chardev', f'socket,id=port,fd={port_in.fileno()}', '-device',
                'virtio-serial-pci,max_ports=2', '-device',
                'virtserialport,chardev=port,name=ward.0',
                '-drive', f'if=none,id=root,format=raw,readonly=on,file.locking=off,file={root}',
                '-device', 'virtio-blk-pci,drive=root',
                '-drive', f'if=none,id=disk,format=raw,file.locking=off,file={disk}', '-device',
                'virtio-blk-pci,drive=disk',
                '-chardev', f'socket,id=control,fd={control_in.fileno()}', '-mon',
                'chardev=control,mode=control', '-serial', 'none', '-incoming', 'defer']
        env = {'PATH': '/usr/bin:/bin', 'LD_PRELOAD': str(shim), 'WARD_VM_RAM': f'{template}/ram'}
        self.heard, self.began = b'', time.perf_counter()
        self.qemu = subprocess.Popen(argv, pass_fds=self.fds, env=env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
        self.control.sendall(b'{"execute":"qmp_capabilities"}\n'
                             b'{"execute":"migrate-set-capabilities","arguments":{"capabilities":'
                             b'[{"capability":"x-ignore-shared","state":true}]}}\n'
                             + json.dumps({'execute': 'migrate-incoming',
                                           'arguments': {'uri': f'fd:{state}'}}).encode() + b'\n')
        self.port.sendall(first)
        port_in.close()
        control_in.close()
        os.close(state)

    def sockets(self):
        self.port, port_in = socket.socketpair()
        self.control, control_in = socket.socketpair()
        self.port.settimeout(60)
        return port_in, control_in

    def until(self, kind):
        """Milliseconds since the start when the frame came; frames before it are passed over."""
        while True:
            if len(self.heard) >= 12:
                _, number, _, _, n = struct.unpack('<HBBII', self.heard[:12])
                if len(self.heard) >= 12 + n:
                    payload, self.heard = self.heard[12:12 + n], self.heard[12 + n:]
                    if TYPES[number] == 'EXIT' and payload != bytes(4):
                        self.fail(f'the command did not end with 0: {payload!r}')
                    if TYPES[number] == kind:
                        return 1000 * (time.perf_counter() - self.began)
                    continue
            more = self.port.recv(65536)
            if not more:
                self.fail('QEMU alone could not restore the template')
            self.heard += more

    def ask(self, frames, kind):
        """Milliseconds from sending the frames to the answer of that kind."""
        began = time.perf_counter()
        self.port.sendall(frames)
        self.until(kind)
        return 1000 * (time.perf_counter() - began)

    def fail(self, why):
        self.close()
        sys.exit(why)

    def close(self):
        self.qemu.kill()
        self.qemu.wait()
        self.port.close()
        self.control.close()
