/*
 * ward logs: what the command of a detached sandbox wrote. In: the two files of its log (log.h),
 * while they may grow and change places. Out: their bytes; a terminal gets only what may pass the
 * filter. With -f until the sandbox has ended. Asks the sandbox nothing.
 */
#include "cli/boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/terminal.h"
#include "policy/units.h"
#include "run/console.h"
#include "state/log.h"

#define LOOK_MS 500 /* whether it has ended */

struct reader {
	int dir_fd;
	int fd; /* the present file; -1: none yet */
	bool filtered;
	struct terminal terminal;
	bool closed; /* the reader of our output is gone */
};

static void put(struct reader *r, const char *bytes, size_t n)
{
	auto_buf out = { 0 };
	int status;

	if (r->filtered)
		terminal_filter(&r->terminal, bytes, n, &out);
	else
		buf_add(&out, bytes, n);
	status = out.failed ? -ENOMEM : io_write_all(STDOUT_FILENO, buf_text(&out), out.len);
	r->closed |= status < 0;
}

/* What is there of one file, from where it is read now. */
static void put_rest(struct reader *r, int fd)
{
	char bytes[16384];
	ssize_t n;

	while (!r->closed && (n = read(fd, bytes, sizeof(bytes))) > 0)
		put(r, bytes, (size_t)n);
}

static int open_log(const struct reader *r, const char *name)
{
	return openat(r->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Both files, oldest first; the present one stays open. */
static void put_all(struct reader *r)
{
	auto_fd before = open_log(r, LOG_BEFORE);

	r->fd = open_log(r, LOG_NOW);
	if (before >= 0)
		put_rest(r, before);
	if (r->fd >= 0)
		put_rest(r, r->fd);
}

/* The last lines of what is there. */
static int put_tail(struct reader *r, uint64_t lines, struct ward_err *e)
{
	static const char *const names[] = { LOG_BEFORE, LOG_NOW };
	auto_buf all = { 0 };
	size_t at;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int fd = open_log(r, names[i]);

		if (fd >= 0 && io_read_all(fd, 2 * LOG_FILE_BYTES, &all) < 0)
			all.failed = true;
		if (fd >= 0 && i == 1)
			r->fd = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (all.failed)
		return ward_fail(e, ENOMEM, "cannot read the log");
	at = all.len;
	for (uint64_t seen = 0; at > 0; at--)
		if (all.data[at - 1] == '\n' && at < all.len && ++seen >= lines)
			break;
	if (lines)
		put(r, buf_text(&all) + at, all.len - at);
	return 0;
}

/* The file that was read to its end may have been put aside for a new one. */
static void turn(struct reader *r)
{
	struct stat old, now;

	if (fstatat(r->dir_fd, LOG_NOW, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (r->fd >= 0 && fstat(r->fd, &old) == 0 && old.st_ino == now.st_ino))
		return;
	if (r->fd >= 0)
		put_rest(r, r->fd); /* what came before it was put aside */
	own_close_fd(&r->fd);
	r->fd = open_log(r, LOG_NOW);
	if (r->fd >= 0)
		put_rest(r, r->fd);
}

static void follow(struct reader *r, const char *id)
{
	auto_fd watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[32], events[4096];
	bool alive = true;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->dir_fd);
	if (watch >= 0)
		(void)!inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
	while (alive && !r->closed) {
		struct pollfd p = { .fd = watch, .events = POLLIN };
		struct box_info now = { 0 };
		struct ward_err ignored = { 0 };

		(void)!poll(&p, 1, LOOK_MS);
		while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
			;
		/* before the last look at the file */
		alive = boxes_look(id, &now, &ignored) == 0 && now.alive;
		box_info_clear(&now);
		if (r->fd >= 0)
			put_rest(r, r->fd);
		turn(r);
	}
}

/* Colours and the like that the command left on. */
static void put_undo(struct reader *r)
{
	auto_buf out = { 0 };

	if (!r->filtered || r->closed)
		return;
	terminal_undo(&r->terminal, false, &out);
	(void)!io_write_all(STDOUT_FILENO, buf_text(&out), out.len);
}

static int show(const struct options *o, const struct box_info *box, struct ward_err *e)
{
	struct reader r = { .fd = -1, .filtered = isatty(STDOUT_FILENO) };
	uint64_t lines = 0;
	int status = 0;

	r.terminal.no_input = true;
	r.terminal.bytes_only = r.filtered && !console_knows_utf8(STDOUT_FILENO);
	if (o->tail && units_parse_uint(o->tail, &lines) < 0) {
		ward_fail(e, EINVAL, "--tail %.80s: expected a number of lines", o->tail);
		return ward_remedy(e, "for instance --tail 20");
	}
	r.dir_fd = boxes_open_dir(box->id, e);
	if (r.dir_fd < 0)
		return r.dir_fd;
	if (o->tail)
		status = put_tail(&r, lines, e);
	else
		put_all(&r);
	if (status == 0 && o->follow)
		follow(&r, box->id);
	put_undo(&r);
	own_close_fd(&r.fd);
	close(r.dir_fd);
	return status;
}

int verb_logs(struct options *o)
{
	struct box_info box = { 0 };
	struct ward_err e = { 0 };
	int r = client_find(o->words[0], &box, &e);

	if (r == 0)
		r = show(o, &box, &e);
	box_info_clear(&box);
	return r < 0 ? say_error(&e, o->json,
				 o->tail && e.code == EINVAL ? EXIT_USAGE : EXIT_REFUSED)
		     : EXIT_FINE;
}
