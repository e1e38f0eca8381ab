"""Where the clone lies does not matter: tests/run-tests shows the tree to the ordinary user
wherever root keeps it."""
import os
import subprocess
import sys

from harness import host, needs, only_root, place, timeout, users

NATIVE_ONLY = "it tests the test runner"

# reads a file of the tree as the ordinary user, and runs ward
PROBE = "run/test_clone_location.py::test_tree_is_read"
BIND = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def test_tree_is_read(t):
    """What [user] tests do: read the tests' own data and profiles, run ward out of the build
    directory."""
    for name in ("tests/data/sample.yaml", "profiles/generic.yaml", "examples/run.sh"):
        t.check(t.run("cat", os.path.join(place.TREE, name)).out,
                f"{name} cannot be read by {t.person.pw_name}")
    t.equal(t.ward("run", "--", "/bin/echo", "ran", cwd=t.workspace()).out, "ran\n", "ward")


def _below_a_closed_directory(t, *words):
    """run-tests out of a tree that is bound below a directory of mode 0700, as in /root."""
    closed = t.fresh_dir("closed")
    os.chmod(closed, 0o700)
    seen = os.path.join(closed, "clone")
    os.mkdir(seen)
    build = host.BUILD
    within = build.startswith(place.TREE + "/")
    build = os.path.join(seen, os.path.relpath(build, place.TREE)) if within else build
    return t.run("unshare", "-m", "--propagation", "private", "sh", "-c", BIND, "sh", place.TREE,
                 seen, sys.executable,
                 f"{seen}/tests/run-tests", "--build", build, "--only", PROBE, *words, cwd="/",
                 timeout=280,
                 env={place.PLACED: None})


@only_root
@needs("admin")
@timeout(300)
def test_below_a_closed_directory(t):
    """Root's clone below a directory that nobody else may enter: both halves pass, by a bind
    mount."""
    before = os.listdir(t.directory)
    r = _below_a_closed_directory(t)
    t.contains(r.out, "bind mount", "output")
    t.contains(r.out, "2 passed, 0 failed", "output")
    t.equal(r.rc, 0, "exit code")
    t.check(set(os.listdir(t.directory)) - set(before) == {"closed1"},
            f"left: {os.listdir(t.directory)}")


@only_root
@needs("admin")
@timeout(300)
def test_below_a_closed_directory_by_copy(t):
    """The same where nothing can be mounted, or the files' modes hide them: by a copy."""
    r = _below_a_closed_directory(t, "--place", "copy", "--as", "user")
    t.contains(r.out, "copy of the tree", "output")
    t.contains(r.out, "1 passed, 0 failed", "output")
    t.equal(r.rc, 0, "exit code")


@only_root
def test_hidden_is_found(t):
    """One unreadable file or directory is found, links that lead nowhere and what git and meson
    keep are not looked at."""
    person = users.ensure()
    tree, build = t.fresh_dir("tree"), t.fresh_dir("build")
    for directory in (tree, build):
        os.chmod(directory, 0o755)
    t.write(tree, {"tests/data/a": "x", ".git/objects/b": "x"})
    t.write(build, {"src/cli/ward": "x", "meson-private/secret": "x"})
    os.chmod(f"{tree}/.git", 0o700)
    os.chmod(f"{build}/meson-private", 0o700)
    os.symlink("nowhere", f"{tree}/tests/link")
    t.equal(place.hidden(person, tree, build), None, "all can be read")
    for path, mode in (("tests/data/a", 0o600), ("tests/data", 0o700), ("tests/data", 0o744)):
        old = os.stat(f"{tree}/{path}").st_mode & 0o777
        os.chmod(f"{tree}/{path}", mode)
        t.check(place.hidden(person, tree, build), f"{path} of mode {mode:o} is not found")
        os.chmod(f"{tree}/{path}", old)
    os.chmod(f"{build}/src", 0o700)
    t.check(place.hidden(person, tree, build), "a closed directory of the build is not found")


def test_what_is_not_installed_is_named(t):
    """A test that fails is excused by a package only where that package is missing and the test
    names it."""
    old = host.absent
    try:
        host.absent = lambda: {}
        t.equal(host.absent_in("nginx: not found"), None, "a complete host")
        host.absent = lambda: {"nginx": "nginx-light", "ip": "iproute2"}
        t.contains(host.absent_in("def test_x(t):", "t.run('nginx')") or "",
                   "apt-get install nginx-light", "the reason")
        t.equal(host.absent_in("the script has an ip-address, a zip and nginx-like words"), None,
                "parts of words")
    finally:
        host.absent = old


@only_root
def test_copy_opens_modes(t):
    """A clone made under umask 077 is readable in its copy, and programs stay programs."""
    tree = t.fresh_dir("tree")
    build = os.path.join(tree, "build")
    t.write(tree, {"tests/run-tests": "x", "profiles/a.yaml": "x", ".git/config": "x",
                   "build-asan/big": "x"})
    t.write(build, {"src/cli/ward": "x", "src/cli/ward.p/main.c.o": "x"})
    subprocess.run(["chmod", "-R", "go-rwx", tree], check=True)
    os.chmod(f"{build}/src/cli/ward", 0o700)
    base = t.fresh_dir("base")
    os.chmod(base, 0o755)
    place._copy(base, tree, build)
    t.equal(place.hidden(users.ensure(), *place._targets(base, tree, build)), None,
            "the copy can be read")
    t.equal(os.stat(f"{base}/ward/build/src/cli/ward").st_mode & 0o777, 0o755, "mode of a program")
    t.equal(sorted(os.listdir(f"{base}/ward")), ["build", "profiles", "tests"], "what is copied")
