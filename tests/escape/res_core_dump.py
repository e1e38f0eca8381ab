"""Crashes on purpose to leave a core file, and has the kernel start the host's crash handler with
it.

layer: rlimits
control: without a sandbox a core file is left
"""
import os
import resource


def scene(s):
    if s.t.read("/proc/sys/kernel/core_pattern").startswith("|"):
        s.t.skip("the host pipes core files to a program: no file can show it")
    s.prepare = lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                           (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def attack(a):
    import resource
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    attempt(resource.setrlimit, resource.RLIMIT_CORE, (hard, hard))
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def escaped(s, r):
    return any(n.startswith("core") for n in os.listdir(s.ws))
