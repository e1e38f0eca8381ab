/*
 * What a sandbox says when files are copied out of it, and where on the host they may go. In:
 * records (protocol/guest.h) that hostile code may have chosen. Out: files beneath one place. Runs
 * with the user's rights. A name is checked before it is used, its parents are opened beneath the
 * place (copy_place.c) through no link, and the file itself is made new: the process that can write
 * there meanwhile (a place in the workspace) gains nothing by turning names around. Links are made
 * only if they stay within the copied tree.
 */
#include "control/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"

#define CHUNK_BYTES 65536
#define FILE_MAX (1ull << 62)

void copy_report_clear(struct copy_report *r)
{
	strv_free(&r->errors);
	*r = (struct copy_report){ 0 };
}

int copy_check_head(const void *bytes, size_t n, struct guest_copy *ret_head)
{
	struct guest_copy h;

	if (n != sizeof(h))
		return -EINVAL;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != GUEST_COPY_MAGIC || h.type < GUEST_COPY_DIR || h.type > GUEST_COPY_END ||
	    h.name_len > GUEST_COPY_NAME_MAX || h.size > FILE_MAX)
		return -EINVAL;
	if (h.type == GUEST_COPY_LINK ? h.size > GUEST_COPY_NAME_MAX
				      : h.size && h.type != GUEST_COPY_FILE)
		return -EINVAL;
	if (h.type == GUEST_COPY_END && h.name_len)
		return -EINVAL;
	h.mode &= 0777;
	*ret_head = h;
	return 0;
}

int copy_check_name(const char *name, size_t n)
{
	size_t begin = 0;

	if (n > GUEST_COPY_NAME_MAX || memchr(name, 0, n))
		return -EINVAL;
	for (size_t i = 0; n && i <= n; i++) {
		size_t len = i - begin;

		if (i < n && name[i] != '/')
			continue;
		if (len == 0 || len > 255 || (len == 1 && name[begin] == '.') ||
		    (len == 2 && name[begin] == '.' && name[begin + 1] == '.'))
			return -EINVAL;
		begin = i + 1;
	}
	return 0;
}

bool copy_link_stays(const char *path, const char *target, size_t target_len)
{
	size_t depth = 0;
	bool down = false;

	if (!target_len || target[0] == '/' || memchr(target, 0, target_len))
		return false;
	for (const char *s = path; *s; s++)
		depth += *s == '/'; /* directories above the link, within the tree */
	for (size_t begin = 0, i = 0; i <= target_len; i++) {
		size_t len = i - begin;

		if (i < target_len && target[i] != '/')
			continue;
		if (len == 2 && target[begin] == '.' && target[begin + 1] == '.') {
			if (down || depth-- == 0)
				/* behind a name it depends on what stands there: that may be a link
				 * up */
				return false;
		} else if (len && !(len == 1 && target[begin] == '.')) {
			down = true;
		}
		begin = i + 1;
	}
	return true;
}

/* ---- records ---- */

struct receiver {
	int in_fd;
	const struct copy_place *place;
	int root_fd; /* the directory that is copied, once it is made; -1: not yet */
	char path[GUEST_COPY_NAME_MAX + 1];
	char *chunk;
	struct copy_report *report;
};

void copy_note(struct copy_report *r, const char *path, const char *why, ...)
{
	char line[1024];
	va_list args;

	if (r->error_count++ >= COPY_ERRORS_KEPT)
		return;
	va_start(args, why);
	vsnprintf(line, sizeof(line), why, args);
	va_end(args);
	strv_addf(&r->errors, "%s: %s", *path ? path : r->root ? r->root : ".", line);
}

/* The directory that the record's file goes into, and its name there. */
static int open_parent(struct receiver *v, const char **ret_name)
{
	char *slash = strrchr(v->path, '/');
	struct ward_err e = { 0 };
	int fd;

	*ret_name = slash ? slash + 1 : v->path;
	if (!v->path[0]) {
		*ret_name = v->place->name;
		fd = fcntl(v->place->dir_fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	if (v->root_fd < 0)
		return -EINVAL;
	if (!slash) {
		fd = fcntl(v->root_fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	*slash = '\0';
	fd = path_open_nolink(v->root_fd, v->path, O_PATH | O_DIRECTORY, &e);
	*slash = '/';
	return fd;
}

static int make_dir(struct receiver *v, int dir_fd, const char *name, unsigned mode)
{
	int fd;

	if (mkdirat(dir_fd, name, mode | 0700) < 0 && errno != EEXIST)
		return -errno;
	if (v->path[0])
		return 0;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	own_close_fd(&v->root_fd);
	v->root_fd = fd;
	return 0;
}

/* A hole where there is nothing but zeros: a file that only claims to be huge fills no disk. */
static int write_chunk(int fd, const char *bytes, size_t n)
{
	if (bytes[0] || memcmp(bytes, bytes + 1, n - 1) != 0)
		return io_write_all(fd, bytes, n);
	return lseek(fd, (off_t)n, SEEK_CUR) < 0 ? -errno : 0;
}

/* Takes the content out of the stream whatever happens, so that the next record is one; the first
 * failure counts. */
static int take_content(struct receiver *v, int fd, uint64_t size, int *ret_failure)
{
	while (size) {
		size_t want = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;
		int r = io_read_exactly(v->in_fd, v->chunk, want);

		if (r < 0)
			return r;
		if (!*ret_failure)
			*ret_failure = write_chunk(fd, v->chunk, want);
		v->report->bytes += want;
		size -= want;
		progress_step(v->report->progress, "copying");
	}
	return 0;
}

static int make_file(struct receiver *v, int dir_fd, const char *name, const struct guest_copy *h,
		     int *ret_failure)
{
	auto_fd fd = -1;
	int r;

	if (dir_fd >= 0 && unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		*ret_failure = -errno;
	if (dir_fd >= 0 && !*ret_failure) {
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    h->mode & 0777);
		if (fd < 0)
			*ret_failure = -errno;
	}
	v->report->files++;
	r = take_content(v, fd, h->size, ret_failure);
	if (r == 0 && !*ret_failure && ftruncate(fd, (off_t)h->size) < 0)
		*ret_failure = -errno;
	return r;
}

static int make_link(struct receiver *v, int dir_fd, const char *name, const struct guest_copy *h,
		     int *ret_failure)
{
	char target[GUEST_COPY_NAME_MAX + 1];
	int r = io_read_exactly(v->in_fd, target, (size_t)h->size);

	if (r < 0)
		return r;
	target[h->size] = '\0';
	/* the top is never a link: the inner side follows it */
	if (!v->path[0] || !copy_link_stays(v->path, target, (size_t)h->size))
		*ret_failure = -EXDEV;
	else if (dir_fd >= 0 && unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		*ret_failure = -errno;
	else if (dir_fd >= 0 && symlinkat(target, dir_fd, name) < 0)
		*ret_failure = -errno;
	return 0;
}

/* One record; 1 after the last, negative when the stream cannot be trusted any more. */
static int take_record(struct receiver *v)
{
	unsigned char bytes[sizeof(struct guest_copy)];
	struct guest_copy h = { 0 };
	const char *name = "";
	int failure = 0, r = io_read_exactly(v->in_fd, bytes, sizeof(bytes));

	if (r == 0)
		r = copy_check_head(bytes, sizeof(bytes), &h);
	if (r == 0)
		r = io_read_exactly(v->in_fd, v->path, h.name_len);
	if (r == 0)
		r = copy_check_name(v->path, h.name_len);
	if (r < 0)
		return r;
	v->path[h.name_len] = '\0';
	if (h.type == GUEST_COPY_END)
		return 1;
	if (h.type == GUEST_COPY_ERROR) {
		copy_note(v->report, v->path, "%s", strerror((int)(h.error & 0xfff)));
		return 0;
	}
	auto_fd dir = open_parent(v, &name);
	if (dir < 0)
		failure = dir;
	if (h.type == GUEST_COPY_DIR && dir >= 0)
		failure = make_dir(v, dir, name, h.mode);
	else if (h.type == GUEST_COPY_FILE)
		r = make_file(v, dir, name, &h, &failure);
	else if (h.type == GUEST_COPY_LINK)
		r = make_link(v, dir, name, &h, &failure);
	if (failure)
		copy_note(v->report, v->path, "%s",
			  failure == -EXDEV
				  ? "a link that leads out of the copied tree was left out"
				  : strerror(-failure));
	return r;
}

int copy_receive(int in_fd, const struct copy_place *place, struct copy_report *report,
		 struct ward_err *e)
{
	auto_free char *chunk = malloc(CHUNK_BYTES);
	struct receiver v = {
		.in_fd = in_fd, .place = place, .root_fd = -1, .chunk = chunk, .report = report
	};
	int r = chunk ? 0 : -ENOMEM;

	progress_begin(report->progress, 0);
	while (r == 0)
		r = take_record(&v);
	own_close_fd(&v.root_fd);
	if (r > 0)
		return 0;
	ward_fail(e, -r,
		  r == -EPIPE ? "the sandbox stopped during the copy: it is incomplete"
			      : "the sandbox sent malformed data: the copy is incomplete");
	return -e->code;
}

int copy_receive_end(int in_fd, struct ward_err *e)
{
	struct guest_copy h = { 0 };
	char name[GUEST_COPY_NAME_MAX + 1];
	unsigned char bytes[sizeof(h)];
	int r = io_read_exactly(in_fd, bytes, sizeof(bytes));

	if (r == 0)
		r = copy_check_head(bytes, sizeof(bytes), &h);
	if (r == 0)
		r = io_read_exactly(in_fd, name, h.name_len);
	if (r < 0)
		return ward_fail(e, -r, "the sandbox stopped during the copy: it is incomplete");
	name[h.name_len] = '\0';
	if (h.type == GUEST_COPY_ERROR)
		return ward_fail(e, h.error ? (int)(h.error & 0xfff) : EIO, "%.300s inside: %s",
				 *name ? name : "the place", strerror((int)(h.error & 0xfff)));
	return h.type == GUEST_COPY_END
		       ? 0
		       : ward_fail(e, EPROTO, "the sandbox sent a malformed answer");
}
