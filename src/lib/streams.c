/*
 * The three descriptors of the command. In: the caller's 0-2. Out: descriptors that may go inside, or a relay.
 *
 * A pipe, a socket and /dev/null go inside as they are. A regular file is opened again with just the mode that is
 * needed, at the same offset, and only where Landlock keeps the sandbox from opening it once more through /proc with
 * another mode; elsewhere it is relayed. A terminal never goes inside. A directory is a way out (`< /`) and a device is
 * a device: both are refused before anything starts. Runs in the supervisor; ward itself never reads standard input
 * but to pass it on.
 */
#include "lib/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"

static const char *const streams_names[] = { "standard input", "standard output", "standard error" };

static int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC | O_NOCTTY);
}

static bool same_description(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
	       lseek(a, 0, SEEK_CUR) == lseek(b, 0, SEEK_CUR);
}

/* A regular file with just the mode that is needed; 1 and 2 stay one description if they were one. -EACCES where the
 * caller has it open but may not open it (it came from somebody with more rights). */
static int give_file(struct streams *s, int i, struct ward_err *e)
{
	int flags = fcntl(i, F_GETFL);
	off_t offset = lseek(i, 0, SEEK_CUR);
	int fd;

	if ((flags & O_ACCMODE) == (i == 0 ? O_WRONLY : O_RDONLY))
		return ward_fail(e, EBADF, "%s is not open for %s", streams_names[i], i ? "writing" : "reading");
	if (i == 2 && s->reopened[1] >= 0 && same_description(1, 2)) {
		s->inside[2] = fcntl(s->reopened[1], F_DUPFD_CLOEXEC, 10);
		return s->inside[2] < 0 ? ward_fail_errno(e, "cannot pass %s on", streams_names[i]) : 0;
	}
	fd = reopen(i, (i == 0 ? O_RDONLY : O_WRONLY) | (flags & O_APPEND));
	if (fd < 0)
		return ward_fail_errno(e, "cannot open the file of %s again", streams_names[i]);
	s->reopened[i] = fd;
	if (offset > 0 && lseek(fd, offset, SEEK_SET) < 0)
		return ward_fail_errno(e, "cannot pass %s on", streams_names[i]);
	s->inside[i] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	return s->inside[i] < 0 ? ward_fail_errno(e, "cannot pass %s on", streams_names[i]) : 0;
}

static int give_itself(struct streams *s, int i, struct ward_err *e)
{
	s->inside[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
	return s->inside[i] < 0 ? ward_fail_errno(e, "cannot pass %s on", streams_names[i]) : 0;
}

/* A pipe inside, and the supervisor moves the bytes. */
static int give_relay(struct streams *s, int i, const struct stat *st, struct ward_err *e)
{
	struct relay *r = &s->relays[s->relay_count];
	int fds[2], own;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ward_fail_errno(e, "cannot make a pipe for %s", streams_names[i]);
	s->inside[i] = fcntl(fds[i == 0 ? 0 : 1], F_DUPFD_CLOEXEC, 10);
	own = fds[i == 0 ? 1 : 0];
	close(fds[i == 0 ? 0 : 1]);
	if (s->inside[i] < 0 || fcntl(own, F_SETFL, O_NONBLOCK) < 0) {
		close(own);
		return ward_fail_errno(e, "cannot make a pipe for %s", streams_names[i]);
	}
	*r = (struct relay){ .from_fd = i == 0 ? i : own, .to_fd = i == 0 ? own : i,
			     .own_from = i != 0, .own_to = i == 0, .to_socket = i != 0 && S_ISSOCK(st->st_mode) };
	if (i != 0 && S_ISCHR(st->st_mode)) {
		int tty = reopen(i, O_WRONLY | O_NONBLOCK);	/* a stopped terminal must not stop us */

		if (tty >= 0) {
			r->to_fd = tty;
			r->own_to = true;
		}
	}
	s->relay_count++;
	return 0;
}

static int prepare_one(struct streams *s, const struct plan *p, int i, struct ward_err *e)
{
	bool limited = i != 0 && p->limits[LIMIT_OUTPUT].value != POLICY_NONE;
	struct stat st;

	if (fstat(i, &st) < 0)
		return ward_fail_errno(e, "%s is not open", streams_names[i]);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return give_itself(s, i, e);
	if (S_ISCHR(st.st_mode) && isatty(i))
		return give_relay(s, i, &st, e);
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return limited ? give_relay(s, i, &st, e) : give_itself(s, i, e);
	if (S_ISREG(st.st_mode)) {
		bool relayed = limited || p->facts.landlock_abi < 2 || p->spec->policy.proc_nesting;
		int r = relayed ? -EACCES : give_file(s, i, e);

		return r == -EACCES ? give_relay(s, i, &st, e) : r;
	}
	ward_fail(e, EINVAL, "%s is a %s, which would be a way out of the sandbox", streams_names[i],
			S_ISDIR(st.st_mode) ? "directory" : "device");
	return ward_remedy(e, "give a file, a pipe, a terminal or /dev/null");
}

int streams_prepare(struct streams *s, const struct plan *p, struct ward_err *e)
{
	int r = 0;

	*s = (struct streams){ .inside = { -1, -1, -1 }, .reopened = { -1, -1, -1 } };
	for (int i = 0; i < 3 && r == 0; i++)
		r = prepare_one(s, p, i, e);
	return r;
}

void streams_started(struct streams *s)
{
	for (int i = 0; i < 3; i++) {
		if (s->inside[i] >= 0)
			close(s->inside[i]);
		s->inside[i] = -1;
	}
}

static void close_side(int *fd, bool own)
{
	if (own && *fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_relay(struct relay *r)
{
	close_side(&r->from_fd, r->own_from);
	close_side(&r->to_fd, r->own_to);
	r->have = r->done = 0;
}

size_t streams_poll(struct streams *s, struct pollfd *polled)
{
	for (size_t i = 0; i < s->relay_count; i++) {
		struct relay *r = &s->relays[i];

		if (r->done < r->have)
			polled[i] = (struct pollfd){ .fd = r->to_fd, .events = POLLOUT };
		else
			polled[i] = (struct pollfd){ .fd = r->from_fd, .events = POLLIN };
	}
	return s->relay_count;
}

static void relay_read(struct streams *s, struct relay *r)
{
	ssize_t n = read(r->from_fd, r->data, sizeof(r->data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_relay(r);	/* the other side learns of the end */
		return;
	}
	r->have = (size_t)n;
	r->done = 0;
	if (r->own_from)
		s->out_bytes += (size_t)n;
}

static void relay_write(struct relay *r)
{
	const char *at = r->data + r->done;
	size_t left = r->have - r->done;
	ssize_t n = r->to_socket ? send(r->to_fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT)
				 : write(r->to_fd, at, left);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		close_relay(r);	/* nobody reads any more: the command gets its SIGPIPE */
	else
		r->done += (size_t)n;
}

void streams_move(struct streams *s, const struct pollfd *polled, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct relay *r = &s->relays[i];

		if (!polled[i].revents || r->to_fd < 0)
			continue;
		if (r->done < r->have) {
			relay_write(r);
			continue;
		}
		relay_read(s, r);
		if (r->done < r->have)
			relay_write(r);
	}
}

void streams_drain(struct streams *s, unsigned timeout_ms)
{
	uint64_t end = io_now_ms() + timeout_ms;

	for (;;) {
		struct pollfd polled[3];
		size_t count = streams_poll(s, polled), open = 0;
		uint64_t now = io_now_ms();

		for (size_t i = 0; i < count; i++) {
			if (!s->relays[i].own_from)
				polled[i].fd = -1;	/* input has nobody to go to */
			open += polled[i].fd >= 0;
		}
		if (open == 0 || now >= end || poll(polled, count, (int)(end - now)) <= 0)
			return;
		streams_move(s, polled, count);
	}
}

void streams_finish(struct streams *s)
{
	streams_started(s);
	for (size_t i = 0; i < s->relay_count; i++)
		close_relay(&s->relays[i]);
	for (int i = 0; i < 3; i++) {
		off_t offset = s->reopened[i] < 0 ? -1 : lseek(s->reopened[i], 0, SEEK_CUR);

		if (offset >= 0)
			lseek(i, offset, SEEK_SET);
		close_side(&s->reopened[i], true);
	}
}
