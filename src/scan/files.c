/*
 * The files of ward scan. In: descriptors of what the user named, opened before ward-scan locked
 * itself up. Out: every regular file beneath, read to its end in pieces. Symbolic links, pipes,
 * sockets and devices in a tree are left alone; a name that the user gave is read whatever it is,
 * as long as it is a file, a directory or a pipe. Objects of git repositories are compressed and
 * left out. What cannot be read is reported, and the exit code says so.
 */
#include "scan/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/walk.h"

struct tree {
	struct report *report;
	struct detector *detector;
	const char *top; /* as the user named it */
};

int files_scan_fd(struct report *r, struct detector *d, int fd, const char *path,
		  struct ward_err *e)
{
	detector_begin(d);
	r->path = path;
	r->files++;
	for (;;) {
		size_t room;
		uint8_t *to = detector_room(d, &room);
		ssize_t n = read(fd, to, room);
		int result;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			report_failure(r, path, strerror(errno));
			n = 0; /* what was read is still looked at */
		}
		r->bytes += (uint64_t)n;
		result = detector_fill(d, (size_t)n, e);
		if (result < 0 || n == 0)
			return result;
	}
}

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && strcmp(path + n - m, end) == 0;
}

static int at_entry(void *ctx, struct walk_dir *dir, const struct walk_entry *entry)
{
	struct tree *t = ctx;
	struct ward_err e = { 0 };
	auto_buf path = { 0 };
	auto_fd fd = -1;
	struct stat st;

	if (entry->type == DT_DIR)
		return !ends_with(entry->path, ".git/objects");
	if (entry->type != DT_REG)
		return 0;
	buf_printf(&path, "%s%s%s", t->top, ends_with(t->top, "/") ? "" : "/", entry->path);
	fd = openat(dir->fd, entry->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno != ENOENT) /* gone since the directory was read */
			report_failure(t->report, buf_text(&path), strerror(errno));
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	if (files_scan_fd(t->report, t->detector, fd, buf_text(&path), &e) < 0)
		report_failure(t->report, buf_text(&path), e.why);
	return t->report->failed;
}

static int at_unreadable(void *ctx, const struct walk_dir *dir, const struct walk_entry *entry)
{
	struct tree *t = ctx;
	auto_buf path = { 0 };

	(void)dir;
	buf_printf(&path, "%s/%s", t->top, entry->path);
	report_failure(t->report, buf_text(&path), "the directory cannot be opened");
	return 0;
}

static int scan_tree(struct report *r, struct detector *d, int fd, const char *path,
		     struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = at_entry, .unreadable = at_unreadable };
	struct tree t = { r, d, path };

	return walk_tree(fd, &ops, &t, 0, e);
}

int files_scan(struct report *r, struct detector *d, const int *fds, struct ward_err *e)
{
	for (size_t i = 0; i < r->options->count && r->failed == 0; i++) {
		const char *path = r->options->words[i];
		int fd = fds[i] < 0 ? STDIN_FILENO : fds[i], result = 0;
		struct stat st;

		if (fstat(fd, &st) < 0)
			result = ward_fail_errno(e, "cannot look at it");
		else if (S_ISDIR(st.st_mode) && r->options->tracked)
			result = tracked_scan(r, d, fd, r->options->index_fds[i], path, e);
		else if (S_ISDIR(st.st_mode))
			result = scan_tree(r, d, fd, path, e);
		else if (fds[i] < 0 || S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))
			result = files_scan_fd(r, d, fd, fds[i] < 0 ? "-" : path, e);
		else
			result = ward_fail(e, EINVAL, "neither a file nor a directory");
		if (result < 0 && r->failed == 0)
			report_failure(r, path, e->why);
	}
	return 0;
}
