/*
 * The log of a detached sandbox. In: what its command writes. Out: at most two files of
 * LOG_FILE_BYTES each: when the present one is full it takes the place of the one before. Runs in
 * ward-box; a disk that is full loses output, never the sandbox.
 */
#include "state/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

static int open_now(int dir_fd)
{
	return openat(dir_fd, LOG_NOW,
		      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
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

static int open_old(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Whether the descriptor is still what the name stands for; no file is one of no name. */
static bool is_still(int dir_fd, const char *name, int fd)
{
	struct stat own = { 0 }, named = { 0 };
	bool there = fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0;

	return there == (fd >= 0) &&
	       (fd < 0 || (fstat(fd, &own) == 0 && own.st_ino == named.st_ino));
}

int log_read(int dir_fd, struct buf *out, struct ward_err *e)
{
	for (;;) {
		auto_fd before = open_old(dir_fd, LOG_BEFORE);
		auto_fd now = open_old(dir_fd, LOG_NOW);
		int r = 0;

		if (!is_still(dir_fd, LOG_BEFORE, before))
			continue; /* they changed places in between */
		if (before >= 0)
			r = io_read_all(before, 2 * LOG_FILE_BYTES, out);
		if (r == 0 && now >= 0)
			r = io_read_all(now, 2 * LOG_FILE_BYTES, out);
		return r < 0 ? ward_fail(e, -r, "cannot read the log: %s", strerror(-r)) : 0;
	}
}
