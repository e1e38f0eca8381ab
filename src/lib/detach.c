/*
 * From `ward run -d` to ward-box. The caller forks before anything is begun; the child builds and supervises the sandbox as `ward
 * run` does, and tells the caller over a pipe that it runs, or the whole refusal. It is in a session of its own, keeps
 * nothing of the caller's but descriptors 0-2, and those only until the sandbox runs: errors of the policy are printed line by
 * line while it is read. Whoever kills the caller meanwhile does not stop the child; whoever kills the child leaves the
 * caller with the end of the pipe.
 */
#include "lib/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/io.h"
#include "lib/serve.h"

static int take_answer(int fd, pid_t child, struct detach_answer *ret_answer, struct ward_err *e)
{
	ssize_t n;

	do
		n = read(fd, ret_answer, sizeof(*ret_answer));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ret_answer)) {
		if (!ret_answer->ready)		/* it ends now */
			while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
				;
		return 1;
	}
	ward_fail(e, EIO, "ward-box ended while it was starting the sandbox");
	return ward_remedy(e, "ward recover cleans up what it may have left");
}

static int become_box(struct detached *d)
{
	int fd = fcntl(d->ready_fd, F_DUPFD_CLOEXEC, 3);

	if (setsid() < 0 || fd < 0)
		_exit(125);
	prctl(PR_SET_NAME, "ward-box");
	d->ready_fd = fd;
	/* whatever else the caller had open is none of ours */
	if (fd > 3)
		syscall(SYS_close_range, 3, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0U, 0);
	return 0;
}

int detach_fork(struct detached *d, struct detach_answer *ret_answer, struct ward_err *e)
{
	auto_fd reading = -1;
	int fds[2];
	pid_t child;

	d->entry = NO_BOX_ENTRY;
	d->serve = NULL;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	reading = fds[0];
	d->ready_fd = fds[1];
	child = fork();
	if (child < 0) {
		close(fds[1]);
		return ward_fail_errno(e, "cannot start ward-box");
	}
	if (child == 0)
		return become_box(d);
	close(fds[1]);
	return take_answer(reading, child, ret_answer, e);
}

static void answer(struct detached *d, const struct detach_answer *a)
{
	if (d->ready_fd >= 0)
		(void)!io_write_all(d->ready_fd, a, sizeof(*a));	/* less than a pipe takes at once */
	own_close_fd(&d->ready_fd);
	d->ready_fd = -1;
}

void detach_refuse(struct detached *d, const struct ward_err *why)
{
	struct detach_answer a = { .error = *why };

	answer(d, &a);
}

void detach_ready(struct detached *d)
{
	struct detach_answer a = { .ready = true };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	memcpy(a.id, d->entry.id, sizeof(a.id));
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	own_close_fd(&null);
	(void)!chdir("/");
	d->started = true;
	answer(d, &a);
}

int detach_end(struct detached *d, const struct plan *p, const struct result *r, struct ward_err *e)
{
	auto_buf report = { 0 };
	int status = 0;

	if (!d->started) {
		serve_destroy(d->serve);
		boxes_discard(&d->entry);
	} else {
		result_json(r, p, &report);
		status = boxes_ended(&d->entry, r, &report, e);
		serve_destroy(d->serve);
		box_entry_close(&d->entry);
		boxes_prune();
	}
	d->serve = NULL;
	return status;
}
