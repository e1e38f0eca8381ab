"""Runs the tests from a place that the ordinary user can reach, wherever the clone lies.

Root often clones below /root, whose mode is 0700, or with an umask that shows files to nobody else;
the [user] tests could read neither their own files nor ward there. So `tests/run-tests`, when root
starts it, asks as the ordinary user whether the tree and the build directory can be read. If not,
it starts itself again from a directory that can be: a bind mount of the tree in a mount namespace
of its own, which costs nothing and leaves nothing. Where that does not help (the files' own modes)
or is not allowed (a container without CAP_SYS_ADMIN), what the tests need is copied.

The variable WARD_TESTS_PLACED tells the second start that it is the second one.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from . import users

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACED = "WARD_TESTS_PLACED"
MODES = ("auto", "bind", "copy")
# of a build directory: objects, archives and what meson keeps for itself
NOT_READ = ("*.p", "*.o", "*.a", "meson-logs", "meson-private", "meson-info", ".ninja*",
            "compile_commands.json")


def _prune(names):
    words = []
    for name in names:
        words += ["-name", name, "-prune", "-o"]
    return words


def hidden(person, tree, build):
    """The first thing in tree or build that person cannot read, None if there is none."""
    unreadable = ["(", "!", "-readable", "-o", "-type", "d", "!", "-executable", ")", "-print",
                  "-quit"]
    for top, ignored in ((tree, (".git", "build*", "__pycache__")),
                         (build, (*NOT_READ, "wasm-tree", "vm-rig"))):
        find = ["find", top, "-mindepth", "1", *_prune(ignored), "!", "-type", "l", *unreadable]
        done = subprocess.run([*users.setpriv(person), *find], cwd="/", capture_output=True,
                              text=True)
        if done.returncode or done.stdout.strip():
            return done.stdout.strip() or top
    return None


def _within(path, top):
    return path == top or path.startswith(top.rstrip("/") + "/")


def _targets(base, tree, build):
    """Where tree and build are seen below base. A build directory within the tree stays within
    it."""
    new_tree = os.path.join(base, "ward")
    if _within(build, tree):
        return new_tree, os.path.join(new_tree, os.path.relpath(build, tree))
    return new_tree, os.path.join(base, "build")


def _bind(base, tree, build):
    """In a child: a mount namespace in which both are seen below base. Returns whether that
    worked."""
    new_tree, new_build = _targets(base, tree, build)
    os.makedirs(new_tree, exist_ok=True)
    pairs = [(tree, new_tree)]
    if not _within(build, tree):
        os.makedirs(new_build, exist_ok=True)
        pairs.append((build, new_build))
    clone_newns = 0x20000
    if users.LIBC.unshare(clone_newns) != 0:
        return False
    commands = [["mount", "--make-rprivate", "/"]] + [["mount", "--bind", old, new]
                                                      for old, new in pairs]
    return all(subprocess.run(c, stderr=subprocess.DEVNULL).returncode == 0 for c in commands)


def _open_modes(top):
    """Whoever reads may read, whoever executes may execute: for everybody."""
    subprocess.run(["chmod", "-R", "a+rX", top], check=True)


def _copy(base, tree, build):
    """Copies what the tests need."""
    new_tree, new_build = _targets(base, tree, build)
    shutil.copytree(tree, new_tree, symlinks=True,
                    ignore=lambda top, names: shutil.ignore_patterns(".git", "__pycache__",
                                                                     "*.o")(top, names)
                    | ({n for n in names if n.startswith("build")} if top == tree else set()))
    skipped = shutil.ignore_patterns("*.p", "*.o", "meson-logs", "vm-rig")
    shutil.copytree(build, new_build, symlinks=True, ignore=skipped)
    _open_modes(base)


def _arguments(argv, new_build):
    """The command line for the second start: the same, and the build directory where it is seen
    now."""
    kept, words = [], iter(argv)
    for word in words:
        name, _, value = word.partition("=")
        if name == "--build":
            value or next(words, None)
        elif name in ("--junit", "--keep"):	# a file of the caller's
            kept += [name, os.path.abspath(value or next(words))]
        else:
            kept.append(word)
    return [*kept, "--build", new_build]


def _start(base, tree, build, how):
    """In a child: starts the tests below base. Exits 77 where binding is not possible or does not
    help."""
    person = users.ensure()
    new_tree, new_build = _targets(base, tree, build)
    arguments = _arguments(sys.argv[1:], new_build)
    if how == "bind":
        if not _bind(base, tree, build) or hidden(person, new_tree, new_build):
            os._exit(77)
    else:
        _copy(base, tree, build)
    here = os.getcwd()
    os.chdir(os.path.join(new_tree, os.path.relpath(here, tree)) if _within(here, tree)
             else new_tree)
    os.environ[PLACED] = how
    program = os.path.join(new_tree, "tests/run-tests")
    os.execv(sys.executable, [sys.executable, program, *arguments])


def _wait(pid):
    """The exit status of the child; signals that should end this process end the child first."""
    def forward(number, _):
        os.kill(pid, number)
    old = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _again(tree, build, how):
    """Starts the tests a second time, from elsewhere; their exit status, 77 if that was not
    possible."""
    base = tempfile.mkdtemp(prefix="ward-place-")
    os.chmod(base, 0o755)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            _start(base, tree, build, how)
        except BaseException as error:
            print(f"run-tests: {how}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    try:
        return _wait(pid)
    finally:
        # the mounts were the child's alone: here the directories are empty, and rmdir proves it
        if how == "copy":
            shutil.rmtree(base, ignore_errors=True)
        else:
            for name in ("ward", "build", ""):
                if os.path.isdir(os.path.join(base, name)):
                    os.rmdir(os.path.join(base, name))


def settle(build, mode="auto"):
    """Returns None where the tests can run from here, else the exit status of those that ran
    elsewhere."""
    if not users.IS_ROOT or os.environ.get(PLACED):
        return None
    problem = hidden(users.ensure(), TREE, build) if mode == "auto" else "asked for"
    if not problem:
        return None
    for how in ("bind", "copy") if mode == "auto" else (mode,):
        print(f"{problem}: user {users.NAME} cannot read it; the tests run from a "
              f"{'bind mount' if how == 'bind' else 'copy'} of the tree", flush=True)
        status = _again(TREE, build, how)
        if status != 77:
            return status
    sys.exit("run-tests: the tree can be shown to the ordinary user neither by a mount nor "
             "by a copy")
