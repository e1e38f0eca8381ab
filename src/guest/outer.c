/*
 * ward-outer: pid 1 around an OCI runtime and its container. In: the runtime's words, descriptors
 * 0-2 of the container, 3 on the supervisor, 4 for the runtime's log. Out: the runtime has been
 * run, and this process lives for as long as the container does. Whatever ends it ends everything:
 * it is pid 1 of a pid namespace, so a runtime that is killed half-way, or whatever a runtime
 * leaves behind, never outlives it, and it goes when the supervisor's end of 3 closes.
 *
 * Runs in the user namespace that ward made, as its root: the rights that the runtime needs, over
 * nothing of the host. What this process and the runtime use is not what the sandbox uses:
 * ward-init says that itself.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"
#include "guest/guest.h"

struct runtime {
	char **argv, **envp;
};

static int become_runtime(void *argument)
{
	const struct runtime *r = argument;
	unsigned long none = 0;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
	raw_call(SYS_execve, r->argv[0], r->argv, r->envp);
	return 127;
}

/* Until the descriptor says something; false: the supervisor is gone. */
static bool wait_for(int fd)
{
	struct pollfd polled[2] = { { fd, POLLIN, 0 }, { GUEST_CONTROL_FD, 0, 0 } };
	long r;

	do
		r = raw_call(SYS_poll, polled, 2, -1);
	while (r == -EINTR);
	return r > 0 && !polled[1].revents;
}

static long start_runtime(char **argv, char **envp, int *ret_pid_fd)
{
	/* used until the runtime is executed, which is as long as we sleep */
	char stack[16384] __attribute__((aligned(16)));
	struct runtime r = { argv, envp };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD,
				     .pid_fd = -1,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = become_runtime,
				     .argument = &r };
	long pid = clone_start(&child);

	*ret_pid_fd = child.pid_fd;
	return pid;
}

_Noreturn void guest_outer(char **argv, char **envp)
{
	unsigned long all = ~0UL;
	int pid_fd = -1, status = -1;
	long runtime, r;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof(all));
	runtime = start_runtime(argv, envp, &pid_fd);
	if (runtime < 0)
		guest_exit(125);
	for (int fd = 0; fd < GUEST_CONTROL_FD; fd++)
		raw_call(SYS_close, fd);
	raw_call(SYS_close, GUEST_LOG_FD);
	if (!wait_for(pid_fd))
		guest_exit(0);
	raw_call(SYS_wait4, runtime, &status, 0, 0);
	/* it has said why, or was killed; what it had begun waits for it, maybe, and dies with
	 * us */
	if (status != 0)
		guest_exit(125);
	/* what it has made is our child now, and ends when the supervisor does */
	do
		r = raw_call(SYS_wait4, -1, 0, 0, 0);
	while (r >= 0 || r == -EINTR);
	guest_exit(0);
}
