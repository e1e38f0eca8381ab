"""Stands for a command that has taken over gVisor's kernel: in runsc's place a program attacks with
native code where the kernel stands, with its capabilities. When the kernel's /proc is gone, as it
is before any command begins, it wants the processes around it: the runner, which has the sandbox's
files and the socket that gVisor is told things by, and the gofer, which has the mounts.

layer: the kernel's own pid namespace
control: the same program as the same user without a sandbox takes a process over by ptrace, by its
memory and by its descriptors
"""
NEEDS = ["cc"]
ENGINES = ("gvisor",)
ENGINES_WHY = "the attack is on gVisor's own parts"
SOURCE = r"""
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char here[16], there[16] = "x";

static void try(pid_t pid)
{
	struct iovec mine = { here, 1 }, its = { there, 1 };
	int fd;

	if (pid == getpid() || kill(pid, 0) < 0 && errno == ESRCH)
		return;
	dprintf(2, "SEEN %d\n", pid);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0) {
		dprintf(2, "TOOK-PTRACE\n");
		ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	/* EFAULT: it was allowed, only the address is not there */
	if (process_vm_readv(pid, &mine, 1, &its, 1, 0) == 1 || errno == EFAULT)
		dprintf(2, "TOOK-MEMORY\n");
	fd = syscall(SYS_pidfd_open, pid, 0);
	for (int i = 0; fd >= 0 && i < 64; i++)
		if (syscall(SYS_pidfd_getfd, fd, i, 0) >= 0) {
			dprintf(2, "TOOK-DESCRIPTOR\n");
			break;
		}
}

int main(int argc, char **argv)
{
	int status;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("runsc version 0.0~20240729.0") < 0;
	if (argc == 3 && strcmp(argv[1], "control") == 0) {
		try(atoi(argv[2]));
		return 0;
	}
	if (strcmp(argv[0], "runsc-sandbox") != 0) {	/* the gofer */
		sleep(60);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--proc-mount-sync-fd=", 21) == 0 &&
		    write(atoi(argv[i] + 21), "x", 1) == 1)
			wait(&status);
	dprintf(2, "BEGAN %s\n", access("/proc/self", F_OK) == 0 ? "with a /proc" : "as a kernel");
	usleep(300000);		/* the gofer is there by now */
	for (pid_t pid = 1; pid < 1000; pid++)
		try(pid);
	dprintf(2, "ENDED\n");
	return 0;
}
"""


def run(s):
    evil = s.t.compile(SOURCE)
    if s.control:
        told = s.t.run(evil, "control", str(s.victim()["pid"]), cwd=s.ws).err
        s.t.check(all(word in told for word in ("TOOK-PTRACE", "TOOK-MEMORY", "TOOK-DESCRIPTOR")),
                  f"everything is there without a sandbox: {told}")
        return True
    told = s.t.ward("run", "--isolation", "gvisor", "--set", "gvisor.platform=systrap", "--",
                    "true", cwd=s.ws, env={"WARD_RUNSC": evil}).err
    s.t.check("BEGAN as a kernel" in told and "ENDED" in told, f"it did not run to its end: {told}")
    return "TOOK" in told or "SEEN" in told


def test(t):
    import sys
    from harness import escape, gvisor
    gvisor.usable(t)
    escape.run_both(t, sys.modules[__name__], run)
