"""The engines that a policy can name, as the tests use them: what each is asked for with, and
whether this machine has it."""
import json
import os
import shutil
import subprocess

from . import users

# what `ward run` is told in front of everything else
OPTIONS = {
    "native": (),
    "oci": ("--isolation", "oci"),
    "gvisor": ("--isolation", "gvisor"),
    # see vm_attacks.py
    "vm": ("--widen", "--isolation", "vm", "--set", "vm.accel=tcg", "--set", "vm.memory=256Mi",
           "--image", "attacks"),
    "wasm": ("--isolation", "wasm"),
}

# how much longer things take behind it
SLOWER = {"native": 1, "oci": 2, "gvisor": 4, "vm": 8, "wasm": 2}


def asked():
    """The engine that all tests shall run under (run-tests --engine); None: the usual one."""
    return os.environ.get("WARD_TEST_ENGINE")


def patience():
    """Factor for every time limit."""
    return SLOWER[asked()] if asked() else 1


def time_limit(seconds):
    """What a --timeout of an attack becomes under the engine that was asked for."""
    from . import vm_attacks
    return seconds * (vm_attacks.SLOWER if asked() == "vm" else 1)


def with_engine(t, args):
    """The words of a command line of ward, with the engine that was asked for."""
    engine = asked()
    if not engine or not args or args[0] != "run" or "--isolation" in args:
        return args
    if engine == "vm":
        from . import vm_attacks
        vm_attacks.share(t)
        args = vm_attacks.words(args)
    return [args[0], *OPTIONS[engine], *args[1:]]


def other_state(t, directory):
    """A test uses another state directory than its own: it gets what the engine needs there."""
    if asked() == "vm":
        from . import vm_attacks
        vm_attacks.share(t, directory)


def rounds(count):
    """How often an attack that is tried again and again is tried: less often where each takes
    seconds."""
    return max(6, count // patience())


def prepare(t, engine, options):
    """What an engine needs once for a test; may add to the options."""
    if engine == "wasm":
        from . import wasm
        options.extend(wasm.image())	# a real runtime rather than node, where there is one
    if engine == "vm":
        from . import vm_engine
        options[:] = vm_engine.OPTIONS
        for more in ((), ("--network",)):	# what fits is cloned instead of booted
            t.ward("vm", "template", "build", "--quiet", "--accel", "tcg", "--memory", "256Mi",
                   "--image", "small", *more, timeout=200)


def linux_tool(t, source):
    """A C program that needs nothing of the root that it runs in, names of the network included:
    those need musl."""
    return t.compile(source, compiler="musl-gcc" if shutil.which("musl-gcc") else "cc")


def wasm_compiler(t):
    """A C compiler that makes WASI modules."""
    clang = next((p for p in ("/usr/bin/clang-14", "/usr/bin/clang") if os.path.exists(p)), None)
    if not clang or not os.path.isdir("/usr/include/wasm32-wasi"):
        t.skip("clang and wasi-libc are not here")
    return clang


def wasm_tool(t, source):
    """A C program as a WASI module, made once for all tests."""
    return t.compile(source, flags=("--target=wasm32-wasi", "-O2", "-s"), compiler=wasm_compiler(t))


def why_not(t, engine):
    """Why this machine cannot use it, as `ward doctor` says; None: it can."""
    if engine == "vm":
        from . import vm_engine
        vm_engine.prepare(t)
    r = subprocess.run([t.ward_path, "doctor", "--json"], env=t.environment(), capture_output=True,
                       check=False,
                       preexec_fn=lambda: users.drop(t.person))
    rows = {row["name"]: row for row in json.loads(r.stdout)["engines"]}
    return None if rows[engine]["usable"] else rows[engine]["why"]
