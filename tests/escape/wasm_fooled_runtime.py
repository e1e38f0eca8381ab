"""Stands for a module that has broken its runtime: the runtime's library itself attacks, in the
process that runs the module, with native code. It wants files beside the module's directories,
another program, another process, a signal, a socket.

layer: ward-wasm gives up files (Landlock) and system calls (seccomp) before it reads the module
control: the same code as a program of a native sandbox has all of that
"""
import os
import re
import shutil

ATTACK = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void got(const char *what) { dprintf(1, "GOT-%s\n", what); }

static void attack(void)
{
	char bytes[128] = "", *argv[] = { (char *)"true", 0 };
	int fd = open("/opt/beside", O_RDONLY);
	pid_t pid;

	dprintf(1, "BEGAN\n");
	if (fd >= 0 && read(fd, bytes, 127) > 0)
		dprintf(1, "FILE %s\n", bytes);
	if (open("/proc/self/environ", O_RDONLY) >= 0)
		got("PROC");
	if (open("/", O_RDONLY | O_DIRECTORY) >= 0)
		got("ROOT");
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		got("UNIX");
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0)
		got("INET");
	if (kill(1, 0) == 0 || errno != EPERM)
		got("SIGNAL");
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		got("FORK");
	fd = open("mine", O_WRONLY | O_CREAT, 0644);
	if (fd >= 0 && write(fd, "x", 1) == 1)
		dprintf(1, "OWN-DIRECTORY\n");
	execve("/opt/program", argv, argv + 1);
	_exit(3);
}
"""
PROGRAM = "#include <unistd.h>\nint main(void) { write(1, \"GOT-EXEC\\n\", 9); return 0; }"
LIBRARY = "/usr/lib/x86_64-linux-gnu"


def library_source(api):
    """A library with every name of WasmEdge's that ward-wasm looks for; running the module is the
    attack."""
    lines = [ATTACK]
    for name in re.findall(r"^EDGE\([^,]+, (\w+),", api, re.M):
        body = ("attack(); return 0;" if name == "VMExecute" else "static long some[8]; return "
                "(long)some;" if name.endswith(("Create", "Context", "Type")) else "return 0;")
        lines.append(f"long WasmEdge_{name}(void) {{ {body} }}")
    return "\n".join(lines)


def image(s, library, program, other):
    """A root with a C library, the attack as a library and as a program, and something beside the
    module's directories."""
    root = s.t.fresh_dir("root")
    s.t.write(root, {"opt/beside": s.token, f"{LIBRARY[1:]}/x": "", "usr/lib64/x": "", "etc/x": "",
                     "tmp/x": ""})
    shutil.copy(f"{LIBRARY}/libc.so.6", root + LIBRARY)
    shutil.copy("/lib64/ld-linux-x86-64.so.2", root + "/usr/lib64")
    shutil.copy(library, f"{root}{LIBRARY}/libwasmedge.so.0")
    shutil.copy(program, root + "/opt/attack")
    shutil.copy(other, root + "/opt/program")
    os.symlink("usr/lib", root + "/lib")
    os.symlink("usr/lib64", root + "/lib64")
    return root


def run(s):
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "src", "wasm", "edge_api.def")) as f:
        library = s.t.compile(library_source(f.read()), flags=("-shared", "-fPIC", "-O1"))
    program = s.t.compile(ATTACK + "int main(void) { attack(); return 0; }", flags=("-O1",))
    root = image(s, library, program, s.t.compile(PROGRAM))
    s.t.write(s.ws, {"m.wasm": b"\0asm\1\0\0\0"})
    words = ("--isolation", "native", "--image", root, "--",
             "/opt/attack") if s.control else ("--isolation", "wasm", "--set", "wasm.compile=false",
                                               "--image", root, "--", "m.wasm")
    r = s.t.ward("run", *words, cwd=s.ws)
    s.t.check("BEGAN" in r.out and "OWN-DIRECTORY" in r.out,
              f"it has not begun, or has not even its own directory: {r}")
    found = set(re.findall(r"GOT-\w+", r.out)) | ({"FILE"} if s.token in r.out else set())
    wanted = {"FILE", "GOT-PROC", "GOT-ROOT", "GOT-UNIX", "GOT-SIGNAL", "GOT-FORK", "GOT-EXEC"}
    s.t.say(f"got {sorted(found)}")
    return wanted <= found if s.control else bool(found)


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
