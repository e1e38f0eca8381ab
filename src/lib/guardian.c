/*
 * Starting and dismissing the guardian. In: the sandbox's pidfd. Out: a tiny process in a session of its own (see
 * guest/init.c) that holds the other end of a pipe. It has the supervisor's rights, because it must be able to remove
 * the run's cgroup and to sweep the workspace, but it does nothing until the supervisor is gone.
 */
#include "lib/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/io.h"
#include "base/raw.h"
#include "lib/image.h"

struct guardian_child {
	int fds[3];	/* become 3, 4, 5 */
	int image_fd;
	const char *argv[4];
	char **envp;
	uint64_t no_signals;
	bool failed;
};

static int guardian_main(void *argument)
{
	struct guardian_child *c = argument;

	raw_call(SYS_setsid);
	c->failed = true;
	for (int i = 0; i < 3; i++)
		if (raw_call(SYS_dup3, c->fds[i], 3 + i, 0) < 0)
			return 125;
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->no_signals, 0, 8);
	if (raw_call(SYS_close_range, 6, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return 125;
	c->failed = false;
	raw_call(SYS_execveat, c->image_fd, "", c->argv, c->envp, AT_EMPTY_PATH);
	c->failed = true;
	return 125;
}

/* Above 3-5, which the child overwrites. */
static int move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	close(fd);
	return moved;
}

int guardian_start(struct guardian *g, int pid_fd)
{
	char stack[8192] __attribute__((aligned(16)));
	auto_fd image = image_open("ward-guardian", "/tmp");
	auto_fd self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	auto_fd self_up = self < 0 ? -1 : fcntl(self, F_DUPFD_CLOEXEC, 10);
	auto_fd dead_up = fcntl(pid_fd, F_DUPFD_CLOEXEC, 10);
	auto_fd reading = -1;
	struct guardian_child c = { .argv = { "ward-guardian", "ward", "recover", NULL }, .envp = environ };
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK, .stack = stack,
				     .stack_bytes = sizeof(stack), .main = guardian_main, .argument = &c };
	int fds[2];
	long pid;

	if (image < 0)
		return image;
	if (self_up < 0 || dead_up < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	reading = move_up(fds[0]);
	c.fds[0] = reading;
	c.fds[1] = dead_up;
	c.fds[2] = self_up;
	c.image_fd = image;
	pid = clone_start(&child);
	if (pid < 0) {
		close(fds[1]);
		return (int)pid;
	}
	g->pid = (pid_t)pid;
	g->pipe_fd = fds[1];
	if (c.failed) {
		guardian_dismiss(g);
		return -EIO;
	}
	return 0;
}

void guardian_dismiss(struct guardian *g)
{
	if (g->pid <= 0)
		return;
	(void)!write(g->pipe_fd, "w", 1);
	close(g->pipe_fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
	g->pipe_fd = -1;
}
