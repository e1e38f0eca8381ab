/*
 * The host program's ends of a command's streams: they come from ward-box as descriptors, and no
 * byte passes through the library. A stream is handed over once and is the host program's then. Of
 * a terminal there is one descriptor; the library keeps it for its size and hands out copies.
 */
#include "api/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/io.h"

int streams_take(struct api_streams *s, bool terminal, const int *fds, size_t count,
		 struct ward_err *e)
{
	*s = NO_STREAMS;
	if (terminal && (count == 1 || count == 2)) {
		s->terminal_fd = fds[0];
		if (count == 2)
			/* the inner end: without it the command's end is the terminal's */
			close(fds[1]);
		return 0;
	}
	if (!terminal && count == 3) {
		for (size_t i = 0; i < 3; i++)
			s->fds[i] = fds[i];
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	return ward_fail(
		e, EMFILE,
		"only %zu of the command's streams arrived: too few file descriptors (ulimit -n)",
		count);
}

void streams_close(struct api_streams *s)
{
	for (size_t i = 0; i < 3; i++)
		own_close_fd(&s->fds[i]);
	own_close_fd(&s->terminal_fd);
	*s = NO_STREAMS;
}

int streams_hand(struct api_streams *s, int which, struct ward_err *e)
{
	int fd = -1;

	if (which < 0 || which > 2)
		return ward_fail(e, EINVAL, "there is no stream %d, only 0, 1 and 2", which);
	if (s->terminal_fd >= 0 && which < 2) {
		fd = fcntl(s->terminal_fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? ward_fail_errno(e, "cannot duplicate the terminal's descriptor")
			      : fd;
	}
	fd = take_fd(&s->fds[which]);
	return fd >= 0 ? fd
		       : ward_fail(e, EBADF, "stream %d was already taken, or does not exist",
				   which);
}

int streams_resize(const struct api_streams *s, unsigned rows, unsigned columns, struct ward_err *e)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };

	if (rows > UINT16_MAX || columns > UINT16_MAX)
		return ward_fail(e, EINVAL, "not a valid terminal size: %u rows and %u columns",
				 rows, columns);
	if (s->terminal_fd < 0)
		return ward_fail(e, ENOTTY, "the command has no terminal");
	return ioctl(s->terminal_fd, TIOCSWINSZ, &size) == 0
		       ? 0
		       : ward_fail_errno(e, "cannot set the terminal's size");
}

int api_time_left(int timeout_ms, uint64_t began_ms, uint64_t now_ms)
{
	if (timeout_ms < 0)
		return -1;
	return now_ms - began_ms >= (uint64_t)timeout_ms ? 0
							 : timeout_ms - (int)(now_ms - began_ms);
}

int api_poll(int fd, int timeout_ms, struct ward_err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t began = io_now_ms();
	int r;

	do
		r = poll(&p, 1, api_time_left(timeout_ms, began, io_now_ms()));
	while (r < 0 && errno == EINTR);
	return r < 0 ? ward_fail_errno(e, "cannot wait") : r;
}
