/*
 * Starting and dismissing a process that sits beside the caller. In: its role and descriptors. Out:
 * a tiny process in a session of its own (see guest/init.c) that holds the other end of a socket
 * pair (a pipe would raise SIGPIPE here), has the caller's rights and none of its other
 * descriptors. Memory is shared only until it executes its image.
 */
#include "host/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"
#include "host/init_image.h"

struct sidecar_child {
	int fds[SIDECAR_FDS]; /* become 3, 4, ... */
	size_t count;
	int image_fd;
	const char *const *argv;
	char **envp;
	uint64_t no_signals;
	bool failed;
};

static int sidecar_main(void *argument)
{
	struct sidecar_child *c = argument;

	raw_call(SYS_setsid);
	c->failed = true;
	for (size_t i = 0; i < c->count; i++)
		if (raw_call(SYS_dup3, c->fds[i], 3 + i, 0) < 0)
			return 125;
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->no_signals, 0, 8);
	if (raw_call(SYS_close_range, 3 + c->count, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		return 125;
	c->failed = false;
	raw_call(SYS_execveat, c->image_fd, "", c->argv, c->envp, AT_EMPTY_PATH);
	c->failed = true;
	return 125;
}

/* Above what the child overwrites. */
static int copy_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

static int start(struct sidecar *a, struct sidecar_child *c, int writing)
{
	char stack[8192] __attribute__((aligned(16)));
	struct clone_child child = { .flags = CLONE_VM | CLONE_VFORK,
				     .stack = stack,
				     .stack_bytes = sizeof(stack),
				     .main = sidecar_main,
				     .argument = c };
	long pid = clone_start(&child);

	if (pid < 0)
		return (int)pid;
	a->pid = (pid_t)pid;
	a->end_fd = fcntl(writing, F_DUPFD_CLOEXEC, 3);
	if (!c->failed && a->end_fd >= 0)
		return 0;
	sidecar_dismiss(a);
	return -EIO;
}

int sidecar_start(struct sidecar *a, const char *const *argv, const int *fds, size_t count)
{
	auto_fd image = init_image_open(argv[0], "/tmp");
	struct sidecar_child c = {
		.argv = argv, .envp = environ, .image_fd = image, .count = count + 1
	};
	auto_fd reading = -1, writing = -1;
	int ends[2], r = 0;

	if (image < 0)
		return image;
	if (count + 1 > SIDECAR_FDS ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return count + 1 > SIDECAR_FDS ? -EINVAL : -errno;
	reading = ends[0];
	writing = ends[1];
	for (size_t i = 0; i < c.count; i++) {
		c.fds[i] = copy_up(i ? fds[i - 1] : reading);
		if (c.fds[i] < 0)
			r = -errno;
	}
	if (r == 0)
		r = start(a, &c, writing);
	for (size_t i = 0; i < c.count; i++)
		own_close_fd(&c.fds[i]);
	return r;
}

void sidecar_dismiss(struct sidecar *a)
{
	if (a->pid <= 0)
		return;
	(void)!send(a->end_fd, "w", 1, MSG_NOSIGNAL);
	own_close_fd(&a->end_fd);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		;
	a->pid = 0;
	a->end_fd = -1;
}
