#!/usr/bin/python3
"""bench/stop.py: how fast everything stops: ward kill --all over many sandboxes of five busy
processes, beside bubblewrap and bare processes, both ended by kill -9 of all of them at once.

In: the build directory (WARD_BUILD, or build/), --boxes, --rounds. Out: a table, per candidate the
median of the rounds (they alternate): from the call of the command that stops to the last
instruction that any of the processes executed, and to the death of the last one. Exit status 1 when
ward's are above --bar-last and --bar-dead milliseconds (0: no bar). Every process writes the
monotonic clock into a slot of one shared file all the time, for a second before the call: the
youngest value is the last instruction. Needs root: the observer has a real-time priority, or it
would be late itself.
"""
import argparse
import mmap
import os
import pathlib
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BEAT = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR), slot = 5 * atoi(argv[2]);
	volatile uint64_t *beats = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct timespec t;

	(void)argc;
	for (int i = 1; i < 5; i++)
		if (fork() == 0) {
			slot += i;
			break;
		}
	beats[slot] = 1; /* ready */
	while (!beats[8191])
		usleep(20000);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		beats[slot] = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
}
"""
PER_BOX = 5


class Stage:
    """Directories, the busy program and its shared file."""

    def __init__(self, base, ward, user):
        self.base, self.ward, self.user = base, str(ward), user
        self.ws = base / 'ws'
        self.ws.mkdir()
        for name in ('state', 'run'):
            (base / name).mkdir(mode=0o700)
        (base / 'beat.c').write_text(BEAT)
        subprocess.run(['cc', '-O2', '-static', '-o', self.ws / 'beat', base / 'beat.c'],
                       check=True)
        self.file = self.ws / 'beats'
        self.file.write_bytes(bytes(65536))
        self.env = {'PATH': '/usr/bin:/bin', 'HOME': str(base), 'WARD_STATE_DIR': f'{base}/state',
                    'WARD_RUNTIME_DIR': f'{base}/run'}
        base.chmod(0o755)
        if user:
            subprocess.run(['chown', '-R', user, base], check=True)

    def argv(self, *words):
        """A command line as the user."""
        drop = ['setpriv', '--reuid', self.user, '--regid', self.user, '--init-groups']
        return [*(drop if self.user else []), *map(str, words)]

    def run(self, *words):
        """Runs it in the workspace."""
        return subprocess.run(self.argv(*words), env=self.env, cwd=self.ws, check=True,
                              stdout=subprocess.DEVNULL)

    def start(self, *words):
        """Starts it, in a process group of its own."""
        return subprocess.Popen(self.argv(*words), env=self.env, cwd=self.ws,
                                start_new_session=True, stdout=subprocess.DEVNULL)


def start_ward(s, count):
    """Detached sandboxes; how all of them are stopped."""
    for i in range(count):
        s.run(s.ward, 'run', '-d', '--', './beat', 'beats', i)
    return [s.ward, 'kill', '--all'], []


def start_bwrap(s, count):
    """bubblewrap with a pid namespace each."""
    started = [s.start('bwrap', '--unshare-pid', '--unshare-user', '--die-with-parent',
                       '--ro-bind', '/', '/', '--bind', s.ws, s.ws, '--proc', '/proc', '--dev',
                       '/dev', './beat', 'beats', i) for i in range(count)]
    return ['kill', '-9', *[p.pid for p in started]], started


def start_bare(s, count):
    """No sandbox: a process group each."""
    started = [s.start('./beat', 'beats', i) for i in range(count)]
    return ['kill', '-9', '--', *[-p.pid for p in started]], started


CANDIDATES = {'ward': start_ward, 'bwrap': start_bwrap, 'bare': start_bare}


def busy(s):
    """Every process that runs the busy program."""
    wanted = os.stat(s.ws / 'beat')
    found = []
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                st = os.stat(f'/proc/{entry}/exe')
            except OSError:
                continue
            if (st.st_dev, st.st_ino) == (wanted.st_dev, wanted.st_ino):
                found.append(int(entry))
    return found


def beats(s):
    """The youngest moment at which one of them executed something, in ns."""
    with open(s.file, 'rb') as f, mmap.mmap(f.fileno(), 65536, prot=mmap.PROT_READ) as m:
        return struct.unpack('8192Q', m[:])


def write_go(s, value):
    """Lets them run, all at once: to start many beside busy ones takes minutes."""
    with open(s.file, 'r+b') as f:
        f.seek(65528)
        f.write(struct.pack('Q', value))


def set_priority(policy, level):
    """Of this process, which must not be late where a thousand others are busy."""
    try:
        os.sched_setscheduler(0, policy, os.sched_param(level))
    except PermissionError:
        print('no real-time priority here: "all dead" may be seen late', file=sys.stderr)


def measure(s, name, count):
    """(last instruction, all dead), in ms after the call."""
    with open(s.file, 'r+b') as f:
        f.write(bytes(65536))
    stop, started = CANDIDATES[name](s, count)
    deadline = time.monotonic() + 60
    while sum(1 for b in beats(s) if b) < PER_BOX * count and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = busy(s)
    if len(pids) != PER_BOX * count:
        sys.exit(f'{name}: {len(pids)} busy processes, not {PER_BOX * count}')
    waiting = select.epoll()
    for pid in pids:
        fd = os.pidfd_open(pid)
        waiting.register(fd, select.EPOLLIN)
    set_priority(os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 2)
    write_go(s, 1)
    time.sleep(1)
    write_go(s, 0)
    began = time.monotonic_ns()
    stopper = subprocess.Popen(s.argv(*stop), env=s.env, cwd=s.ws, stdout=subprocess.DEVNULL)
    left = len(pids)
    while left and time.monotonic_ns() < began + 60 * 10**9:
        for fd, _ in waiting.poll(1):
            waiting.unregister(fd)
            os.close(fd)
            left -= 1
    dead = time.monotonic_ns()
    set_priority(os.SCHED_OTHER, 0)
    if stopper.wait() != 0 or left:
        sys.exit(f'{name}: the stop failed ({stopper.returncode}), {left} live')
    for p in started:
        p.wait()
    return (max(beats(s)) - began) / 1e6, (dead - began) / 1e6


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--boxes', type=int, default=200)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--user', help='as this user; default: root')
    parser.add_argument('--bar-last', type=float, default=0)
    parser.add_argument('--bar-dead', type=float, default=0)
    o = parser.parse_args()
    build = pathlib.Path(os.environ.get('WARD_BUILD', 'build')).resolve()
    base = pathlib.Path(tempfile.mkdtemp(prefix='ward-bench-stop.', dir='/var/tmp'))
    found = {name: [] for name in CANDIDATES if name != 'bwrap' or shutil.which('bwrap')}
    try:
        s = Stage(base, build / 'src/cli/ward', o.user)
        for _ in range(o.rounds):
            for name, values in found.items():
                values.append(measure(s, name, o.boxes))
    finally:
        shutil.rmtree(base)
    print(f'{o.boxes} sandboxes of {PER_BOX} busy processes, median of {o.rounds}, ms')
    print(f'{"":8} {"last instruction":>18} {"all dead":>10}')
    medians = {}
    for name, values in found.items():
        medians[name] = [statistics.median(v[i] for v in values) for i in (0, 1)]
        print(f'{name:8} {medians[name][0]:18.1f} {medians[name][1]:10.1f}')
    last, dead = medians['ward']
    missed = (o.bar_last and last > o.bar_last) or (o.bar_dead and dead > o.bar_dead)
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
