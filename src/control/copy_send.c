/*
 * Files on their way into a sandbox. In: a file or directory of the user's, open. Out: records
 * (protocol/guest.h) for the inner side. Runs with the user's rights. The tree may be changed by
 * others while it is read: below the top nothing is opened through a link, links are copied as
 * links, and of each file exactly as many bytes go as were announced.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "control/copy.h"

#define CHUNK_BYTES 65536

struct sender {
	int out_fd;
	char path[GUEST_COPY_NAME_MAX + 1];
	size_t len;
	char *chunk;
	struct copy_report *report;
};

static void note(struct sender *v, const char *why)
{
	if (v->report->error_count++ < COPY_ERRORS_KEPT)
		strv_addf(&v->report->errors, "%s: %s", v->len ? v->path : ".", why);
}

static int put_head(struct sender *v, enum guest_copy_type type, unsigned mode, uint64_t size)
{
	struct guest_copy h = { .magic = GUEST_COPY_MAGIC,
				.type = (uint16_t)type,
				.mode = (uint16_t)(mode & 0777),
				.name_len = (uint32_t)v->len,
				.size = size };
	int r = io_write_all(v->out_fd, &h, sizeof(h));

	return r < 0 ? r : io_write_all(v->out_fd, v->path, v->len);
}

static int put_file(struct sender *v, int fd, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size;
	int r = put_head(v, GUEST_COPY_FILE, st->st_mode, size);

	v->report->files++;
	while (r == 0 && size) {
		size_t want = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;
		ssize_t n = read(fd, v->chunk, want);

		if (n < 0 && errno == EINTR)
			continue;
		/* it became shorter, or cannot be read: sends zeros, and reports it */
		if (n <= 0) {
			if (size == (uint64_t)st->st_size || n < 0)
				note(v, n < 0 ? strerror(errno) : "it shrank during the copy");
			n = (ssize_t)want;
			memset(v->chunk, 0, want);
		}
		r = io_write_all(v->out_fd, v->chunk, (size_t)n);
		size -= (uint64_t)n;
		v->report->bytes += (uint64_t)n;
		progress_step(v->report->progress, "copying");
	}
	return r;
}

static int put_link(struct sender *v, int dir_fd, const char *name)
{
	ssize_t n = readlinkat(dir_fd, name, v->chunk, GUEST_COPY_NAME_MAX);
	int r;

	if (n < 0) {
		note(v, strerror(errno));
		return 0;
	}
	r = put_head(v, GUEST_COPY_LINK, 0777, (uint64_t)n);
	return r < 0 ? r : io_write_all(v->out_fd, v->chunk, (size_t)n);
}

static int put_tree(struct sender *v, int fd, unsigned deep);

static int put_entry(struct sender *v, int dir_fd, const char *name, unsigned deep)
{
	size_t len = v->len, n = strlen(name);
	auto_fd fd = -1;
	int r = 0;

	if (len + 1 + n > GUEST_COPY_NAME_MAX) {
		note(v, "a name in it is too long");
		return 0;
	}
	v->len += (size_t)snprintf(v->path + len, sizeof(v->path) - len, "%s%s", len ? "/" : "",
				   name);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		r = put_tree(v, fd, deep);
	else if (errno == ELOOP)
		r = put_link(v, dir_fd, name);
	else
		note(v, strerror(errno));
	v->len = len;
	v->path[len] = '\0';
	return r;
}

static int put_dir(struct sender *v, int fd, const struct stat *st, unsigned deep)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), r;
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);

	if (!list) {
		own_close_fd(&copy);
		note(v, strerror(errno));
		return 0;
	}
	r = put_head(v, GUEST_COPY_DIR, st->st_mode, 0);
	for (struct dirent *d = readdir(list); d && r == 0; d = readdir(list))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = put_entry(v, fd, d->d_name, deep + 1);
	return r;
}

static int put_tree(struct sender *v, int fd, unsigned deep)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		note(v, strerror(errno));
	else if (S_ISREG(st.st_mode))
		return put_file(v, fd, &st);
	else if (S_ISDIR(st.st_mode) && deep < GUEST_COPY_DEEP)
		return put_dir(v, fd, &st, deep);
	else
		note(v, S_ISDIR(st.st_mode) ? "directories are nested too deeply"
					    : "it is neither a file nor a directory");
	return 0;
}

int copy_send(int out_fd, int source_fd, struct copy_report *report, struct ward_err *e)
{
	auto_free char *chunk = malloc(CHUNK_BYTES);
	struct sender v = { .out_fd = out_fd, .chunk = chunk, .report = report };
	int r = chunk ? 0 : -ENOMEM;

	progress_begin(report->progress, 0);
	if (r == 0)
		r = put_tree(&v, source_fd, 0);
	v.len = 0;
	if (r == 0)
		r = put_head(&v, GUEST_COPY_END, 0, 0);
	return r < 0 ? ward_fail(e, -r, "the copy is incomplete: %s", strerror(-r)) : 0;
}
