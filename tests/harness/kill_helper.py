"""Runs ward and kills the process that helps to build the sandbox, when it is about to make one
call.

usage: kill_helper.py [--reaper] [--slow MS] CALL WARD ARGS...

CALL: a number, or -1: its first one. Prints one line of JSON: the exit code of ward, whether there
was a helper, whether it was killed. ptrace(2) tells of every process that ward makes: the helper is
the one that the sandbox's first process clones before it clones the command, which begins with
setsid. --reaper: the same for the mount reaper, which ward itself clones and which begins with
prctl. --slow: it is not killed, but waits in front of the call.
"""
import ctypes
import json
import os
import signal
import sys
import time

TRACEME, CONT, KILL_EXIT, SYSCALL, GETREGS, SETOPTIONS, GETEVENTMSG = (0, 7, 0x100000, 24, 12,
                                                                       0x4200, 0x4201)
# marked stops at calls; fork, vfork, clone; all end with us
OPTIONS = 1 | 2 | 4 | 8 | KILL_EXIT
WALL = 0x40000000
NR_SETSID, NR_PRCTL = 112, 157
AHEAD_S = 0.05

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=None):
    return libc.ptrace(request, pid, None, data)


def call_of(pid):
    """The number of the call that it stopped at."""
    registers = (ctypes.c_ulong * 27)()
    ptrace(GETREGS, pid, ctypes.addressof(registers))
    return registers[15]


class Trace:
    def __init__(self, wanted, ward, reaper, slow_ms):
        self.wanted, self.ward, self.reaper, self.slow_ms = wanted, ward, reaper, slow_ms
        self.waits = {}		# who is slow now, and until when
        self.parents, self.early = {}, set()
        self.helper = None
        self.looked = set()	# clones of the first process whose first call is known
        self.inside_call = False
        self.killed = False

    def is_second(self, pid):
        """Whether the sandbox's first process made it, or ward itself the one that is wanted."""
        parent = self.parents.get(pid)
        return (parent if self.reaper else self.parents.get(parent)) == self.ward

    def go_on(self, pid, sig=0):
        watched = self.is_second(pid) and (pid not in self.looked or pid == self.helper)
        ptrace(SYSCALL if watched else CONT, pid, sig)

    def born(self, pid):
        new = ctypes.c_ulong()
        ptrace(GETEVENTMSG, pid, ctypes.addressof(new))
        self.parents[new.value] = pid
        # there is no reaper for a sandbox that has not come far
        if self.reaper and self.parents.get(pid) == self.ward and not self.waits:
            os.kill(self.ward, signal.SIGSTOP)
            self.waits[self.ward] = time.monotonic() + AHEAD_S
        if new.value in self.early:
            self.early.discard(new.value)
            self.go_on(new.value)

    def at_call(self, pid):
        nr = call_of(pid)
        if pid not in self.looked:
            self.looked.add(pid)
            if (nr != NR_PRCTL if self.reaper else nr == NR_SETSID) or self.helper:
                return
            self.helper = pid
            self.inside_call = False
        if pid != self.helper:
            return
        self.inside_call = not self.inside_call
        if not self.inside_call or self.wanted not in (-1, nr) or self.killed:
            return
        self.killed = True
        if self.slow_ms:
            self.waits[pid] = time.monotonic() + self.slow_ms / 1000
        else:
            os.kill(pid, signal.SIGKILL)

    def stopped(self, pid, status):
        sig, event = os.WSTOPSIG(status), status >> 16
        if event:
            self.born(pid)
            sig = 0
        elif sig == signal.SIGTRAP | 0x80:
            self.at_call(pid)
            sig = 0
        elif sig == signal.SIGSTOP and pid not in self.parents:
            self.early.add(pid)		# before its parent has reported it
            return
        elif sig in (signal.SIGSTOP, signal.SIGTRAP):
            sig = 0
        if pid not in self.waits:
            self.go_on(pid, sig)

    def next(self):
        """Who has stopped or ended."""
        while self.waits:
            pid, status = os.waitpid(-1, WALL | os.WNOHANG)
            if pid:
                return pid, status
            for pid in [p for p in self.waits if time.monotonic() >= self.waits[p]]:
                del self.waits[pid]
                self.go_on(pid)
            time.sleep(0.001)
        return os.waitpid(-1, WALL)

    def run(self):
        while True:
            pid, status = self.next()
            if os.WIFSTOPPED(status):
                self.stopped(pid, status)
            elif pid == self.ward:
                return os.waitstatus_to_exitcode(status)


def main():
    words = sys.argv[1:]
    reaper = words[0] == "--reaper"
    words = words[reaper:]
    slow_ms = int(words[1]) if words[0] == "--slow" else 0
    words = words[2 if slow_ms else 0:]
    wanted, command = int(words[0]), words[1:]
    pid = os.fork()
    if pid == 0:
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(command[0], command)
    os.waitpid(pid, 0)
    ptrace(SETOPTIONS, pid, OPTIONS)
    trace = Trace(wanted, pid, reaper, slow_ms)
    trace.parents[pid] = os.getpid()
    ptrace(CONT, pid)
    code = trace.run()
    print(json.dumps({"rc": code, "helper": trace.helper is not None, "killed": trace.killed}))


main()
