"""Attacks inside virtual machines (run-tests --engine vm): a kernel, a root with what attacks
start, and templates, made once for root and once for the user.

They are made in a state directory of their own in the tests' cache, with ward itself, and each test
gets them into its own by hard links: what ward changes there it replaces, and what runs inside sees
none of these files.
"""
import fcntl
import os
import re
import shutil
import subprocess

from . import users, vm_engine

NAME = "attacks"
MEMORY = "256Mi"
# whose files attacks need, and what of them they never do
PACKAGES = ("base-files", "libc-bin", "dash", "bash", "coreutils", "findutils", "grep", "sed",
            "tar", "util-linux", "procps", "git",
            "python3-minimal", "python3.11-minimal", "python3.11", "libpython3.11-minimal",
            "libpython3.11-stdlib")
LEFT_OUT = re.compile(
    r"/usr/(share/(doc|man|locale|info|lintian|bash-completion|gitweb|git-core/contrib)|"
    r"lib/git-core/git-(http|remote|imap|daemon|sh-i18n)|lib/python3/dist-packages)|/test(s)?/|"
    r"/(idlelib|ensurepip|tkinter|lib2to3|pydoc_data)/")
SHARED = ("vm", "images")
UNITS = {"": 1, "M": 10 ** 6, "Mi": 1 << 20, "G": 10 ** 9, "Gi": 1 << 30}
MONITOR = 512 << 20	# what QEMU itself may take beside the machine's memory
SLOWER = 30		# emulated: what a time limit leaves for starting and for the attack


def _files():
    """Every file of the packages, by the name that its place really has (/bin is a link here)."""
    out = subprocess.run(["dpkg", "-L", *PACKAGES], capture_output=True, text=True,
                         check=False).stdout
    for path in sorted(set(out.split("\n"))):
        if path.startswith("/") and not LEFT_OUT.search(path) and os.path.lexists(path):
            yield os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _libraries(programs):
    """What the dynamic linker loads for them."""
    found = set()
    for i in range(0, len(programs), 200):
        out = subprocess.run(["ldd", *programs[i:i + 200]], capture_output=True, text=True,
                             check=False).stdout
        found |= set(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", out, re.M))
    return found


def _is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def _put(tree, path):
    target = tree + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        if not os.path.lexists(target):
            os.symlink(os.readlink(path), target)
    elif os.path.isfile(path):
        shutil.copy(path, target)
    else:
        os.makedirs(target, exist_ok=True)


def make_tree(tree):
    """A small Debian of this machine's own files."""
    for name in ("etc", "tmp", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
        os.makedirs(os.path.join(tree, name), exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(tree, name))
    paths = [p for p in _files() if os.access(p, os.R_OK)]
    programs = [p for p in paths if os.path.isfile(p) and not os.path.islink(p) and _is_elf(p)]
    for path in paths:
        _put(tree, path)
    for path in _libraries(programs):
        _put(tree, os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))
        _put(tree, os.path.realpath(path))


def _ward(t, state, *words):
    r = t.run(t.ward_path, *words, env={"WARD_STATE_DIR": state}, timeout=900)
    t.equal(r.rc, 0, f"ward {' '.join(words[:3])}: {r.err}")


def _make(t, state):
    os.mkdir(state, 0o700)
    _ward(t, state, "vm", "setup", "--quiet", "--from", vm_engine.package(t))
    tree = t.fresh_dir("tree")
    make_tree(tree)
    _ward(t, state, "image", "import", tree, "--name", NAME)
    shutil.rmtree(tree)
    for more in ((), ("--network",)):
        _ward(t, state, "vm", "template", "build", "--quiet", "--accel", "tcg", "--memory", MEMORY,
              "--image", NAME, *more)


def _base(t):
    """The state directory with everything; the first test makes it, others wait."""
    place = os.path.join(t.cache, f"vm-attacks-{t.as_user}")
    with t.root():
        os.makedirs(place, exist_ok=True)
        if users.IS_ROOT:
            os.chown(place, t.person.pw_uid, t.person.pw_gid)
        os.chmod(place, 0o700)
    with open(os.path.join(place, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state, done = os.path.join(place, "state"), os.path.join(place, "done")
        if not os.path.exists(done):
            t.check(not os.path.exists(state),
                    "making the machines for the attacks failed in another test")
            _make(t, state)
            t.write(place, {"done": ""})
    return state


def _memory(value):
    """A limit of memory that fits into the machine is its own; QEMU comes on top of it."""
    number, unit = re.fullmatch(r"(\d+)(\w*)", value).groups()
    inside = int(number) * UNITS[unit]
    return ["--memory", str(inside + MONITOR),
            *(["--set", f"vm.memory={max(inside >> 20, 96)}Mi"] if inside < 200 << 20 else [])]


def words(args):
    """A command line of an attack, with what it says about memory and time said for a machine, and
    with a command where a machine needs one."""
    end = args.index("--") if "--" in args else len(args)
    head, i = [], 0
    while i < end:
        if args[i] == "--memory":
            head += _memory(args[i + 1])
        elif args[i] == "--timeout":
            head += ["--timeout", str(float(args[i + 1]) * SLOWER)]
        else:
            head.append(args[i])
            i -= 1
        i += 2
    return head + (args[end:] if end < len(args) or "-d" not in head
                   else ["--", "sleep", "infinity"])


def share(t, directory=None):
    """The state directory of this test, or another one, has the kernel, the image and the
    templates. Once a test."""
    directory = directory or t.state_dir
    if os.path.exists(os.path.join(directory, "vm")):
        return
    for program in ("qemu-system-x86_64", "mkfs.erofs", "dpkg-deb", "apt-get"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            t.skip(f"{program} is not here")
    base = _base(t)
    for name in SHARED:
        same = os.stat(base).st_dev == os.stat(directory).st_dev
        t.run("cp", "-al" if same else "-a", os.path.join(base, name), directory, check=True)
