"""What the kernel of the test host can show: the reasons for which a test may be skipped, and no others."""
import ctypes
import functools
import os
import shutil
import subprocess

from . import users

LIBC = ctypes.CDLL(None, use_errno=True)
WARD = None	# the program under test, set by the runner
BUILD = None	# the build directory that it comes from


def syscall(number, *args):
    """A raw system call: its result, or -errno."""
    result = LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return -ctypes.get_errno() if result == -1 else result


def _root():
    return users.IS_ROOT


def _admin():
    """Whether root may mount: a container's root usually may not."""
    return users.IS_ROOT and subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


def _cgroup1():
    return users.IS_ROOT and os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK)


def _cgroup2():
    try:
        with open("/sys/fs/cgroup/cgroup.controllers") as f:
            return "memory" in f.read().split()
    except OSError:
        return False


def _userns():
    return subprocess.run(["unshare", "-U", "true"], stderr=subprocess.DEVNULL).returncode == 0


def _landlock():
    return syscall(444, 0, 0, 1) > 0


def _keys():
    return syscall(250, 0, -4, 0) != -38	# keyctl(KEYCTL_GET_KEYRING_ID, user keyring)


def _mqueue():
    return os.path.exists("/proc/sys/fs/mqueue/msg_max")


def _cc():
    return shutil.which("cc") is not None


def _git():
    return shutil.which("git") is not None


def _idmap():
    return users.IS_ROOT


def _runc():
    return shutil.which("runc", path="/usr/sbin:/usr/bin") is not None


def _podman():
    return shutil.which("podman", path="/usr/bin") is not None


def _bwrap():
    return shutil.which("bwrap", path="/usr/bin") is not None


def _emulator():
    return shutil.which("qemu-system-x86_64") and shutil.which("mkfs.erofs") and shutil.which("cpio") and shutil.which("busybox")


def _plain():
    with open(WARD, "rb") as f:
        return b"__asan_init" not in f.read()


def always_helps():
    """Whether the build has a second process build each sandbox (meson.build)."""
    return not _plain() and len(os.sched_getaffinity(0)) > 1


FACTS = {
    "root": (_root, "the tests were not started by root"),
    "admin": (_admin, "the tests were not started by root with CAP_SYS_ADMIN"),
    "cgroup1": (_cgroup1, "no writable cgroup v1 tree"),
    "cgroup2": (_cgroup2, "no memory controller on cgroup v2"),
    "userns": (_userns, "the kernel gives no user namespaces"),
    "landlock": (_landlock, "the kernel has no Landlock"),
    "keys": (_keys, "the kernel has no keyrings"),
    "mqueue": (_mqueue, "the kernel has no POSIX message queues"),
    "cc": (_cc, "no C compiler"),
    "git": (_git, "git is not installed"),
    "runc": (_runc, "runc is not installed"),
    "podman": (_podman, "podman is not installed"),
    "bwrap": (_bwrap, "bubblewrap is not installed"),
    "emulator": (_emulator, "qemu-system-x86, erofs-utils, cpio or busybox is not installed"),
    "idmap": (_idmap, "id-mapped mounts need root"),
    "unsanitized": (_plain, "what runs behind this wall has no sanitizer in either build"),
    "plain": (_plain, "AddressSanitizer itself does not run where this takes memory or system calls away"),
}


@functools.lru_cache(maxsize=None)
def missing(fact):
    """None when the host has it, else the reason why a test is skipped."""
    probe, reason = FACTS[fact]
    return None if probe() else reason
