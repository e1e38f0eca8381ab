/*
 * Programs that give secrets. In: words. Out: what the program writes, into locked memory. Runs in
 * ward-secrets with the user's rights and environment, outside of every sandbox. A program that a
 * sandbox could have written is never taken, whatever PATH says; one that takes too long or writes
 * too much is killed with everything it started in its session.
 */
#include "creds/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"

static void child(const char *path, char *const *argv, int in_fd, int out_fd)
{
	sigset_t none;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nothing < 0 || dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(nothing, 2) < 0 ||
	    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0 || chdir("/") < 0)
		_exit(125);
	execv(path, argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Waits for fd (-1: for nothing), at most so long; sees to what must not wait. How often fd is
 * ready: 1 or 0. */
static int await(int fd, int wait_ms, struct run_meanwhile *m)
{
	struct pollfd ready[] = { { .fd = fd, .events = POLLIN },
				  { .fd = m ? m->fd : -1, .events = POLLIN } };

	if (poll(ready, ARRAY_LEN(ready), wait_ms) <= 0)
		return 0;
	if (m && ready[1].revents)
		m->ready(m->whose);
	return ready[0].revents != 0;
}

/* Everything that it writes, until the end; -ETIMEDOUT, -EFBIG. */
static int take_output(int fd, uint64_t until, struct run_meanwhile *m, uint8_t *out, size_t room,
		       size_t *ret_n)
{
	size_t n = 0;

	for (;;) {
		uint64_t now = io_now_ms();
		uint8_t more;
		ssize_t got;

		if (now >= until)
			return -ETIMEDOUT;
		if (!await(fd, (int)(until - now), m))
			continue;
		got = n < room ? read(fd, out + n, room - n) : read(fd, &more, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			*ret_n = n;
			return got < 0 ? -errno : 0;
		}
		if (n == room)
			return -EFBIG;
		n += (size_t)got;
	}
}

static int wait_for(pid_t pid, uint64_t until, struct run_meanwhile *m)
{
	int status = 0;

	for (;;) {
		pid_t r = waitpid(pid, &status, WNOHANG);

		if (r == pid)
			return status;
		if (r < 0 && errno != EINTR)
			return 0;
		if (io_now_ms() >= until)
			return -1;
		(void)await(-1, 5, m);
	}
}

static int explain(int r, int status, const char *path, unsigned timeout_ms, struct ward_err *e)
{
	const char *name = strrchr(path, '/') + 1;

	if (r == -ETIMEDOUT || (r == 0 && status == -1))
		return ward_fail(e, ETIMEDOUT, "%.100s returned no secret within %u seconds", name,
				 timeout_ms / 1000);
	if (r == -EFBIG)
		return ward_fail(e, EFBIG, "%.100s wrote more than the maximum length of a secret",
				 name);
	if (r < 0)
		return ward_fail(e, -r, "cannot read what %.100s writes: %s", name, strerror(-r));
	if (WIFSIGNALED(status))
		return ward_fail(e, EIO, "%.100s was killed by signal %d", name, WTERMSIG(status));
	ward_fail(e, EIO, "%.100s failed with exit status %d", name, WEXITSTATUS(status));
	return ward_remedy(e, "run it by hand to see why; its standard error is not shown here, "
			      "because it may contain the secret");
}

int run_program(const char *path, char *const *argv, const void *in, size_t in_bytes,
		unsigned timeout_ms, struct run_meanwhile *meanwhile, uint8_t *out, size_t room,
		size_t *ret_n, struct ward_err *e)
{
	uint64_t until = io_now_ms() + timeout_ms;
	int in_pipe[2], out_pipe[2], r, status = -1;
	pid_t pid;

	if (pipe2(in_pipe, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe");
	if (pipe2(out_pipe, O_CLOEXEC) < 0) {
		close(in_pipe[0]);
		close(in_pipe[1]);
		return ward_fail_errno(e, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0)
		child(path, argv, in_pipe[0], out_pipe[1]);
	close(in_pipe[0]);
	close(out_pipe[1]);
	/* a pipe has room for a token; a program that reads none must not stop us */
	if (pid > 0 && in_bytes && fcntl(in_pipe[1], F_SETFL, O_NONBLOCK) == 0)
		(void)!write(in_pipe[1], in, in_bytes);
	close(in_pipe[1]);
	r = pid < 0 ? -errno : take_output(out_pipe[0], until, meanwhile, out, room, ret_n);
	close(out_pipe[0]);
	if (pid < 0)
		return ward_fail(e, -r, "cannot start %.200s: %s", path, strerror(-r));
	if (r == 0)
		status = wait_for(pid, until, meanwhile);
	if (r < 0 || status == -1) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r < 0 || status ? explain(r, status, path, timeout_ms, e) : 0;
}
