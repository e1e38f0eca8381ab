"""libward as a program gets it: installed into a tree, found by pkg-config, linked shared or
static.

The tree and the programs are made once for all tests, by whoever runs the tests, where the ordinary
user can read them.
"""
import contextlib
import fcntl
import glob
import hashlib
import os
import shlex
import subprocess

from . import host, users

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TESTS)


@contextlib.contextmanager
def _making(t, name):
    """Root's rights and a lock, while something is made that all tests share."""
    with users.as_root() if users.IS_ROOT else contextlib.nullcontext():
        with open(os.path.join(t.cache, f"{name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _run(t, *argv, env=None):
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        t.fail(f"{' '.join(argv)}: exit {done.returncode}\n"
               f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def tree(t):
    """The installed tree, moved after it was installed: nothing in it may depend on where it
    was."""
    place = os.path.join(t.cache, "moved tree")
    with _making(t, "tree"):
        if not os.path.exists(place):
            first = os.path.join(t.cache, "installed")
            _run(t, "meson", "install", "-C", host.BUILD, "--no-rebuild", "--quiet",
                 "--destdir", first)
            program = glob.glob(f"{first}/**/bin/ward", recursive=True)[0]
            os.rename(os.path.dirname(os.path.dirname(program)), place)
    return place


def library(t):
    """libward.so in the tree."""
    return glob.glob(f"{tree(t)}/lib/**/libward.so", recursive=True)[0]


def pkg_config(t, *words):
    """What pkg-config says about the tree's ward."""
    directory = os.path.dirname(glob.glob(f"{tree(t)}/lib/**/ward.pc", recursive=True)[0])
    env = {"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": directory}
    return _run(t, "pkg-config", *words, "ward", env=env).strip()


def sanitizers(t):
    """Flags for a program that links a library with sanitizers."""
    return ["-fsanitize=address,undefined"] if "__asan_init" in _run(t, "nm", "-D",
                                                                     library(t)) else []


def program(t, source, static=False):
    """Compiles a C program against the tree as docs/libward.md says; returns its path."""
    path = source if os.path.isabs(source) else os.path.join(TOP, source)
    with open(path) as f:
        key = hashlib.sha256(f"{path}{static}{f.read()}".encode()).hexdigest()[:16]
    target = os.path.join(t.cache, f"api-{key}")
    place = os.path.dirname(library(t))
    with _making(t, "programs"):
        if not os.path.exists(target):
            flags = shlex.split(pkg_config(t, "--cflags"))
            link = ([os.path.join(place, "libward.a"), "-pthread"] if static
                    else [*shlex.split(pkg_config(t, "--libs")), f"-Wl,-rpath,{place}", "-pthread"])
            _run(t, "cc", "-D_GNU_SOURCE", "-std=gnu11", "-Wall", "-Wextra", "-Wpedantic",
                 "-Werror", "-g", *sanitizers(t),
                 *flags, "-o", target + ".new", path, *link)
            os.chmod(target + ".new", 0o755)
            os.rename(target + ".new", target)
    return target
