# What every attack written in Python has at hand; sent along with it, so it needs nothing but the
# standard library.
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALL = {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "msgget": 68, "msgrcv": 70, "chmod": 90,
    "fchmod": 91,
    "ptrace": 101, "syslog": 103, "mknod": 133, "personality": 135, "modify_ldt": 154,
    "pivot_root": 155,
    "chroot": 161, "acct": 163, "mount": 165, "umount2": 166, "swapoff": 168, "reboot": 169,
    "sethostname": 170,
    "iopl": 172, "init_module": 175, "mq_open": 240, "mq_timedreceive": 243, "kexec_load": 246,
    "add_key": 248,
    "request_key": 249, "keyctl": 250, "openat": 257, "mknodat": 259, "linkat": 265,
    "fchmodat": 268, "unshare": 272, "splice": 275,
    "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "finit_module": 313,
    "seccomp": 317,
    "memfd_create": 319, "bpf": 321, "userfaultfd": 323, "copy_file_range": 326,
    "io_uring_setup": 425,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "pidfd_open": 434,
    "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452,
    "pidfd_send_signal": 424, "open_tree_attr": 467, "clone": 56, "creat": 85, "open": 2,
    "mkdir": 83, "vmsplice": 278,
    "setuid": 105, "setgroups": 116, "kcmp": 312, "landlock_create_ruleset": 444,
    "memfd_secret": 447, "statmount": 457,
}


def syscall(name, *args):
    """A raw system call by name (or number): the result, or OSError."""
    number = SYSCALL[name] if isinstance(name, str) else name
    packed = []
    for a in args:
        if isinstance(a, bool) or isinstance(a, int):
            packed.append(ctypes.c_long(a))
        elif isinstance(a, str):
            packed.append(ctypes.c_char_p(os.fsencode(a)))
        elif isinstance(a, bytes):
            packed.append(ctypes.c_char_p(a))
        else:
            packed.append(a)
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *packed)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def attempt(function, *args):
    """Calls function; prints what went wrong and returns None if it is refused."""
    try:
        return function(*args)
    except Exception as error:
        print(f"{getattr(function, '__name__', 'call')}{args!r:.200}: {error!r:.300}")
        return None


def slurp(path):
    """A file's content as text."""
    with open(path, errors="replace") as f:
        return f.read()


def put(path, text, mode="w"):
    """Writes a file."""
    with open(path, mode) as f:
        f.write(text)
    return True


def hand_over(meeting, fds):
    """Gives descriptors to whoever comes to take_over() there, in a socket that is made when both
    have begun."""
    put(meeting + ".waits", "")
    end = time.monotonic() + 20
    with socket.socket(socket.AF_UNIX) as giver:
        while time.monotonic() < end:
            try:
                giver.connect(meeting + ".socket")
                break
            except OSError:
                time.sleep(0.001)
        socket.send_fds(giver, [b"x"], fds)


def take_over(meeting):
    """The descriptors that somebody hands over there."""
    while not os.path.exists(meeting + ".waits"):
        time.sleep(0.002)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(meeting + ".socket")
        listening.listen()
        giver, _ = listening.accept()
    with giver:
        return socket.recv_fds(giver, 1, 8)[1]


SCENE = {}


def inside():
    """Whether this is the sandboxed run. A control run touches nothing but what its scene made."""
    return SCENE["inside"]


def processes():
    """Every process id that /proc shows; in a control run only those that the scene made."""
    if not inside():
        return SCENE["pids"]
    return sorted(int(n) for n in os.listdir("/proc") if n.isdigit())


def leave_mounts():
    """With process.nesting: a user and mount namespace whose root is an empty file system; what
    descriptors lead to has no mounts on it there."""
    uid, gid = os.getuid(), os.getgid()
    syscall("unshare", 0x10000000 | 0x20000)
    put("/proc/self/setgroups", "deny")
    put("/proc/self/uid_map", f"0 {uid} 1")
    put("/proc/self/gid_map", f"0 {gid} 1")
    syscall("mount", "t", "/tmp", "tmpfs", 0, 0)
    os.mkdir("/tmp/old")
    os.chdir("/tmp")
    syscall("pivot_root", "/tmp", "/tmp/old")
    os.chdir("/")
    syscall("umount2", "/old", 2)
    print("the mounts are left behind")


def same_kernel():
    """Whether this is the host's kernel, as far as anybody can tell: the first namespaces of two
    kernels have the same numbers."""
    try:
        return slurp("/proc/sys/kernel/random/boot_id") == SCENE["boot_id"]
    except OSError:
        return True


def main(attack):
    """Runs the attack with the arguments of its scene."""
    a = json.loads(sys.argv[1])
    SCENE.update(a.pop("scene"))
    os.write(2, b"[attack began]\n")
    if inside() and os.readlink("/proc/self/ns/pid") == SCENE["pid_ns"] and same_kernel():
        # a sandbox that failed open: say so, and spare the machine the attack
        os.write(2, b"[not contained]\n")
        os._exit(1)
    try:
        attack(a)
    except Exception as error:
        print(f"attack refused: {error!r}")
        sys.stdout.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)
