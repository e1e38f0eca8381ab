/*
 * The log of a detached sandbox. In: what its command writes. Out: at most two files of LOG_FILE_BYTES each: when the present one
 * is full it takes the place of the one before. Runs in ward-box; a disk that is full loses output, never the sandbox.
 */
#include "lib/log.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"

static int open_now(int dir_fd)
{
	return openat(dir_fd, LOG_NOW, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int log_open(struct log *l, int dir_fd, struct ward_err *e)
{
	*l = (struct log){ .dir_fd = dir_fd, .fd = open_now(dir_fd) };
	return l->fd < 0 ? ward_fail_errno(e, "cannot make the sandbox's log") : 0;
}

static void turn(struct log *l)
{
	own_close_fd(&l->fd);
	l->fd = -1;
	l->size = 0;
	if (renameat(l->dir_fd, LOG_NOW, l->dir_fd, LOG_BEFORE) == 0)
		l->fd = open_now(l->dir_fd);
}

void log_add(struct log *l, const void *bytes, size_t n)
{
	if (l->fd >= 0 && l->size + n > LOG_FILE_BYTES)
		turn(l);
	if (l->fd < 0 || io_write_all(l->fd, bytes, n) < 0)
		l->lost += n;
	else
		l->size += n;
}

void log_close(struct log *l)
{
	own_close_fd(&l->fd);
	l->fd = -1;
}
