/*
 * Sinks on this machine: a file and a command. In: a batch of lines. Out: lines at the end of a
 * file, whole batches or nothing, also beside other runs; or the standard input of a command. Run
 * by ward-audit in the process of one sink. The file is never followed through a link at its end;
 * when it is long enough it becomes FILE.1 and so on, under a lock that every writer takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "audit/sink.h"
#include "base/io.h"

/* for a command to end; the parent of this process may end it earlier */
#define GOODBYE_MS 60000

static int fail_path(const struct sink *s, int code, struct ward_err *e)
{
	return ward_fail(e, code, "%s: %s", s->policy->to, strerror(code));
}

static const char *path_of(const struct sink *s)
{
	return s->policy->place ? s->policy->place : s->policy->path;
}

static int file_open(struct sink *s, struct ward_err *e)
{
	struct stat st;

	s->fd = open(path_of(s),
		     O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (s->fd < 0)
		return fail_path(s, errno, e);
	if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	close(s->fd);
	s->fd = -1;
	return ward_fail(e, EINVAL, "%s: not a regular file", s->policy->to);
}

static void file_close(struct sink *s)
{
	own_close_fd(&s->fd);
	s->fd = -1;
}

static bool has_name(const struct sink *s, struct stat *ret)
{
	struct stat named;

	return fstat(s->fd, ret) == 0 && lstat(path_of(s), &named) == 0 &&
	       named.st_ino == ret->st_ino && named.st_dev == ret->st_dev;
}

/* FILE -> FILE.1 -> FILE.2 ... */
static void shift(const struct sink *s)
{
	for (uint64_t i = s->policy->keep; i-- > 0;) {
		auto_buf from = { 0 }, to = { 0 };

		buf_printf(&to, "%s.%u", path_of(s), (unsigned)i + 1);
		if (i)
			buf_printf(&from, "%s.%u", path_of(s), (unsigned)i);
		else
			buf_puts(&from, path_of(s));
		if (from.data && to.data)
			(void)!rename(from.data, to.data);
	}
	if (!s->policy->keep)
		unlink(path_of(s));
}

/* Opens and locks what has the name, with room for the batch. */
static int take_file(struct sink *s, struct stat *ret, struct ward_err *e)
{
	for (int tries = 0; tries < 20; tries++) {
		int r = s->fd < 0 ? file_open(s, e) : 0;

		if (r == 0)
			r = place_lock(s->fd);
		if (r < 0)
			return e->code ? r : fail_path(s, -r, e);
		if (has_name(s, ret)) {
			if (!ret->st_size ||
			    (uint64_t)ret->st_size + s->batch.len <= s->policy->max_bytes)
				return 0;
			shift(s);
		}
		file_close(s);
	}
	return fail_path(s, EBUSY, e);
}

static int file_send(struct sink *s, struct ward_err *e)
{
	struct stat st;
	int r = take_file(s, &st, e);

	if (r < 0)
		return r;
	r = io_write_all(s->fd, s->batch.data, s->batch.len);
	if (r < 0)
		(void)!ftruncate(s->fd, st.st_size); /* no half lines */
	flock(s->fd, LOCK_UN);
	return r < 0 ? fail_path(s, -r, e) : 0;
}

static int64_t file_unread(unused_arg struct sink *s)
{
	return 0;
}

static int file_finish(struct sink *s, unused_arg struct ward_err *e)
{
	file_close(s);
	return 0;
}

const struct sink_ops sink_file = { .open = file_open,
				    .send = file_send,
				    .unread = file_unread,
				    .finish = file_finish,
				    .close = file_close };

/* -- a command */

static int command_open(struct sink *s, struct ward_err *e)
{
	const char *program = s->policy->place ? s->policy->place : s->policy->words.items[0];
	int ends[2];

	/* kept by an older ward; its present writer is not known */
	if (*program != '/')
		return ward_fail(e, EINVAL,
				 "%s: the program needs an absolute path; to drop the undelivered "
				 "events, remove the run's file in audit/sinks",
				 s->policy->to);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_path(s, errno, e);
	s->bytes = s->mark_seq = 0;
	s->pid = fork();
	if (s->pid == 0) {
		int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		signal(SIGPIPE, SIG_DFL);
		if (nothing >= 0 && dup2(ends[0], 0) == 0 && dup2(nothing, 1) == 1 &&
		    dup2(nothing, 2) == 2 && chdir("/") == 0)
			execv(program, s->policy->words.items);
		_exit(127);
	}
	close(ends[0]);
	if (s->pid < 0) {
		close(ends[1]);
		return fail_path(s, errno, e);
	}
	s->fd = ends[1];
	return 0;
}

/* Waits for the command to end. Its exit status, -1: it did not in time. */
static int reap(struct sink *s, unsigned ms)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	uint64_t until = io_now_ms() + ms;
	int status = 0;
	pid_t done;

	while ((done = waitpid(s->pid, &status, WNOHANG)) == 0 && io_now_ms() < until)
		nanosleep(&moment, NULL);
	if (done == 0)
		return -1;
	s->pid = 0;
	return done > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void command_close(struct sink *s)
{
	own_close_fd(&s->fd);
	s->fd = -1;
	if (s->pid > 0 && reap(s, 500) < 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
		s->pid = 0;
	}
}

static int command_send(struct sink *s, struct ward_err *e)
{
	int r = io_write_all(s->fd, s->batch.data, s->batch.len);

	s->bytes += s->batch.len;
	return r < 0 ? ward_fail(e, -r, "%s: the command exited, or no longer reads", s->policy->to)
		     : 0;
}

static int64_t command_unread(struct sink *s)
{
	int n = 0;

	return ioctl(s->fd, FIONREAD, &n) < 0 ? -1 : n;
}

/* Its input ends; if it then ends well, it has read all. */
static int command_finish(struct sink *s, struct ward_err *e)
{
	int code;

	own_close_fd(&s->fd);
	s->fd = -1;
	code = reap(s, GOODBYE_MS);
	return code == 0 ? 0
			 : ward_fail(e, EIO,
				     code < 0 ? "%s: the command does not exit"
					      : "%s: the command exited with status %d",
				     s->policy->to, code);
}

const struct sink_ops sink_command = { .stream = true,
				       .open = command_open,
				       .send = command_send,
				       .unread = command_unread,
				       .finish = command_finish,
				       .close = command_close };
