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
    # the Landlock level of native, as on a host without user namespaces: see start_of()
    "landlock": ("--set", "require.isolation=landlock", "--set", "require.limits=none"),
}

# what a host without user namespaces answers (Docker's filter answers in the same way)
WITHOUT_NAMESPACES = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define LOAD(field) { BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, field) }
#define RET(value) { BPF_RET | BPF_K, 0, 0, value }
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		LOAD(nr),
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3 },
		RET(SECCOMP_RET_ERRNO | ENOSYS),
		{ BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_unshare },
		LOAD(args[0]),
		{ BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x10000000 },
		RET(SECCOMP_RET_ERRNO | EPERM),
		RET(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execv(argv[1], argv + 1);
	return 98;
}
"""

# how much longer things take behind it
SLOWER = {"native": 1, "oci": 2, "gvisor": 4, "vm": 8, "wasm": 2, "landlock": 1}


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
    if not engine or not args or args[0] not in ("run", "plan") or "--isolation" in args:
        return args
    if args[0] == "plan" and engine != "landlock":
        return args
    if engine == "vm":
        from . import vm_attacks
        vm_attacks.share(t)
        args = vm_attacks.words(args)
    return [args[0], *OPTIONS[engine], *args[1:]]


def start_of(t):
    """What ward is started with, so that it has that engine alone."""
    return (t.compile(WITHOUT_NAMESPACES),) if asked() == "landlock" else ()


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
