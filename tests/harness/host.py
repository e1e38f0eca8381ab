"""What the kernel of the test host can show: the reasons for which a test may be skipped, and no
others."""
import ctypes
import functools
import os
import re
import shutil
import subprocess

from . import users

LIBC = ctypes.CDLL(None, use_errno=True)
WARD = None	# the program under test, set by the runner
# --slow, or tests that were named: generated cases all, and not a part of them
THOROUGH = False
TURN = 0	# of the runs: which part of generated cases it is, and who runs what is run once
BUILD = None	# the build directory that it comes from


def syscall(number, *args):
    """A raw system call: its result, or -errno."""
    result = LIBC.syscall(ctypes.c_long(number),
                          *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return -ctypes.get_errno() if result == -1 else result


def _root():
    return users.IS_ROOT


def _admin():
    """Whether root may mount: a container's root usually may not."""
    if not users.IS_ROOT:
        return False
    with users.as_root():	# a test process has the test's user as its effective one
        return subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


def _cgroup1():
    return users.IS_ROOT and os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK)


def _cgroup2():
    try:
        with open("/sys/fs/cgroup/cgroup.controllers") as f:
            return "memory" in f.read().split()
    except OSError:
        return False


def _cgroups():
    with open("/proc/self/mountinfo") as f:
        return any(" - cgroup " in line or " - cgroup2 " in line for line in f)


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


def _suffixes():
    return os.path.exists("/usr/share/publicsuffix/public_suffix_list.dat")


def _emulator():
    return shutil.which("qemu-system-x86_64") and shutil.which("mkfs.erofs") and shutil.which(
        "cpio") and shutil.which("busybox")


def _plain():
    with open(WARD, "rb") as f:
        return b"__asan_init" not in f.read()


def is_plain():
    """Whether ward is built without sanitizers."""
    return _plain()


def always_helps():
    """Whether the build has a second process build each sandbox (meson.build)."""
    return not _plain() and len(os.sched_getaffinity(0)) > 1


FACTS = {
    "root": (_root, "the tests were not started by root"),
    "admin": (_admin, "the tests were not started by root with CAP_SYS_ADMIN"),
    "cgroup1": (_cgroup1, "no writable cgroup v1 tree"),
    "cgroup2": (_cgroup2, "no memory controller on cgroup v2"),
    "cgroups": (_cgroups, "no cgroup file system is mounted, and runc and crun need one"),
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
    "suffixes": (_suffixes, "the package publicsuffix is not installed"),
    "idmap": (_idmap, "id-mapped mounts need root"),
    "unsanitized": (_plain, "what runs behind this wall has no sanitizer in either build"),
    "plain": (_plain, "AddressSanitizer itself does not run where this takes memory or system "
              "calls away"),
}


@functools.lru_cache(maxsize=None)
def missing(fact):
    """None when the host has it, else the reason why a test is skipped."""
    probe, reason = FACTS[fact]
    return None if probe() else reason


ADMIN_TOOLS = ("unshare", "mount", "umount", "nsenter")


def refuses(argv, as_root):
    """Why a program cannot work here: root of a container is refused namespaces and mounts. None
    where it can."""
    name = os.path.basename(os.fspath(argv[0]))
    own_users = any(w == "--user" or re.fullmatch(r"-\w*[Ur]\w*", w) for w in map(str, argv[1:4]))
    if as_root and users.IS_ROOT and name in ADMIN_TOOLS and not own_users:
        return missing("admin")
    return None


def no_runtime(args):
    """Why a command line of ward that asks for OCI alone cannot work here; None where it can, or
    asks for something else."""
    words = [str(a) for a in args]
    asked = any(a == "--isolation" and b == "oci" for a, b in zip(words, words[1:]))
    return missing("cgroups") if asked or "isolation=oci" in words else None


def is_confined():
    """Whether root runs the tests and has less than root has: attacks may fail without a sandbox,
    too."""
    return users.IS_ROOT and missing("admin") is not None


@functools.lru_cache(maxsize=None)
def absent():
    """What the tests use and this host has not: the word by which a test names it -> Debian's
    package (tools/deps.sh)."""
    script = os.path.join(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
        "tools/deps.sh")
    done = subprocess.run([script, "absent", "test"], capture_output=True, text=True)
    found = {}
    for package, probe in (line.split(None, 1) for line in done.stdout.splitlines()):
        package = package.split("|")[0]
        kind, _, name = probe.partition(":")
        found[name if kind == "cmd" else package.removeprefix("python3-")] = package
    return found


def absent_in(*texts):
    """The reason for which a test that failed is skipped: a package that this host lacks and that
    the texts name. None where every package is installed, so that nothing is ever excused on a
    complete host."""
    for word, package in absent().items():
        if any(re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", text) for text in texts):
            return f"failed without {word}, which is not installed: apt-get install {package}"
    return None
