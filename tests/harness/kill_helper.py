"""Runs ward and kills the process that helps to build the sandbox, when it is about to make one call.

usage: kill_helper.py CALL WARD ARGS...   (CALL: a number, or -1: its first one)
Prints one line of JSON: the exit code of ward, whether there was a helper, whether it was killed. ptrace(2) tells of every process that
ward makes: the helper is the one that the sandbox's first process clones before it clones the command, which begins with setsid.
"""
import ctypes
import json
import os
import signal
import sys

TRACEME, CONT, KILL_EXIT, SYSCALL, GETREGS, SETOPTIONS, GETEVENTMSG = 0, 7, 0x100000, 24, 12, 0x4200, 0x4201
OPTIONS = 1 | 2 | 4 | 8 | KILL_EXIT		# marked stops at calls; fork, vfork, clone; all end with us
WALL = 0x40000000
NR_SETSID = 112

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
    def __init__(self, wanted, ward):
        self.wanted, self.ward = wanted, ward
        self.parents, self.early = {}, set()
        self.helper = None
        self.looked = set()	# clones of the first process whose first call is known
        self.inside_call = False
        self.killed = False

    def is_second(self, pid):
        """Whether the sandbox's first process made it."""
        return self.parents.get(self.parents.get(pid)) == self.ward

    def go_on(self, pid, sig=0):
        watched = self.is_second(pid) and (pid not in self.looked or pid == self.helper)
        ptrace(SYSCALL if watched else CONT, pid, sig)

    def born(self, pid):
        new = ctypes.c_ulong()
        ptrace(GETEVENTMSG, pid, ctypes.addressof(new))
        self.parents[new.value] = pid
        if new.value in self.early:
            self.early.discard(new.value)
            self.go_on(new.value)

    def at_call(self, pid):
        nr = call_of(pid)
        if pid not in self.looked:
            self.looked.add(pid)
            if nr == NR_SETSID or self.helper:
                return
            self.helper = pid
            self.inside_call = False
        if pid != self.helper:
            return
        self.inside_call = not self.inside_call
        if self.inside_call and self.wanted in (-1, nr) and not self.killed:
            os.kill(pid, signal.SIGKILL)
            self.killed = True

    def stopped(self, pid, status):
        sig, event = os.WSTOPSIG(status), status >> 16
        if event:
            self.born(pid)
            sig = 0
        elif sig == signal.SIGTRAP | 0x80:
            self.at_call(pid)
            sig = 0
        elif sig == signal.SIGSTOP and pid not in self.parents:
            self.early.add(pid)		# before its parent has told us of it
            return
        elif sig in (signal.SIGSTOP, signal.SIGTRAP):
            sig = 0
        self.go_on(pid, sig)

    def run(self):
        while True:
            pid, status = os.waitpid(-1, WALL)
            if os.WIFSTOPPED(status):
                self.stopped(pid, status)
            elif pid == self.ward:
                return os.waitstatus_to_exitcode(status)


def main():
    wanted, command = int(sys.argv[1]), sys.argv[2:]
    pid = os.fork()
    if pid == 0:
        ptrace(TRACEME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(command[0], command)
    os.waitpid(pid, 0)
    ptrace(SETOPTIONS, pid, OPTIONS)
    trace = Trace(wanted, pid)
    trace.parents[pid] = os.getpid()
    ptrace(CONT, pid)
    code = trace.run()
    print(json.dumps({"rc": code, "helper": trace.helper is not None, "killed": trace.killed}))


main()
