/*
 * A tree on its way into the guest. In: a path as the native sandbox shows it. Out: records (tree.h). Runs as a process of ward-vm's own
 * inside that sandbox: what is hidden there cannot be read, and stands in the guest as a file that cannot be read either. No link is
 * followed below the top; a directory that is a tree of its own is empty in the one around it. What cannot be read for another reason is said and left out; so are sockets and pipes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/text.h"
#include "vm/disk.h"
#include "vm/server.h"
#include "vm/tree.h"

struct sender {
	struct disk_writer out;
	char *const *paths;	/* of all trees */
	size_t count;
	const char *top;	/* the present tree */
	char path[TREE_NAME_MAX + 1];
	size_t len;
	char chunk[TREE_CHUNK_MAX];
};

static void put(struct sender *v, const void *bytes, size_t n)
{
	disk_put(&v->out, bytes, n);	/* whether it went well is looked at once, at the end */
}

static void put_head(struct sender *v, enum tree_type type, const struct stat *st, uint64_t size)
{
	struct tree_head h = { .magic = TREE_MAGIC, .type = (uint16_t)type, .mode = (uint16_t)(st->st_mode & 0777),
			       .name_len = (uint32_t)v->len, .size = size, .mtime_s = st->st_mtim.tv_sec,
			       .mtime_ns = (uint32_t)st->st_mtim.tv_nsec };

	put(v, &h, sizeof(h));
	put(v, v->path, v->len);
}

static void say(const struct sender *v, int error)
{
	auto_buf line = { 0 };

	text_escape(&line, v->len ? v->path : v->top);
	dprintf(2, "ward-vm: %s: %s: it is not in the guest\n", buf_text(&line), strerror(error));
}

static void put_extent(struct sender *v, int fd, off_t at, off_t end)
{
	while (at < end) {
		size_t want = end - at < TREE_CHUNK_MAX ? (size_t)(end - at) : TREE_CHUNK_MAX;
		ssize_t n = pread(fd, v->chunk, want, at);
		struct tree_chunk c = { .offset = (uint64_t)at, .len = (uint32_t)n };

		if (n <= 0) {	/* it became shorter meanwhile: a hole */
			if (n < 0)
				say(v, errno);
			return;
		}
		put(v, &c, sizeof(c));
		put(v, v->chunk, (size_t)n);
		at += n;
	}
}

static void put_file(struct sender *v, int fd, const struct stat *st)
{
	struct tree_chunk end = { 0 };
	off_t at = 0;

	put_head(v, TREE_FILE, st, (uint64_t)st->st_size);
	while (at < st->st_size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0 || hole < 0 || hole > st->st_size) {	/* a file system without holes */
			data = data < 0 ? at : data;
			hole = st->st_size;
		}
		put_extent(v, fd, data, hole);
		at = hole;
	}
	put(v, &end, sizeof(end));
}

static void put_link(struct sender *v, int dir_fd, const char *name)
{
	ssize_t n = readlinkat(dir_fd, name, v->chunk, TREE_NAME_MAX);
	struct stat st;

	if (n <= 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		say(v, n == 0 ? EINVAL : errno);
		return;
	}
	put_head(v, TREE_LINK, &st, (uint64_t)n);
	put(v, v->chunk, (size_t)n);
}

static void put_tree(struct sender *v, int fd, unsigned deep);

/* It could not be opened. What nobody here may read is there all the same. */
static void put_closed(struct sender *v, int dir_fd, const char *name, int error)
{
	struct stat st;

	if (error == ELOOP)
		put_link(v, dir_fd, name);
	else if ((error == EACCES || error == EPERM) && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
		put_head(v, TREE_CLOSED, &st, 0);
	else if (error != ENXIO && error != ENOENT)	/* a socket; one that is gone again */
		say(v, error);
}

static void put_entry(struct sender *v, int dir_fd, const char *name, unsigned deep)
{
	size_t len = v->len, n = strlen(name);
	auto_fd fd = -1;

	if (len + 1 + n > TREE_NAME_MAX) {
		say(v, ENAMETOOLONG);
		return;
	}
	v->len += (size_t)snprintf(v->path + len, sizeof(v->path) - len, "%s%s", len ? "/" : "", name);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		put_tree(v, fd, deep);
	else
		put_closed(v, dir_fd, name, errno);
	v->len = len;
	v->path[len] = '\0';
}

/* Whether another tree stands here: it goes on its own. */
static bool is_other_tree(const struct sender *v)
{
	size_t n = strlen(v->top);

	for (size_t i = 0; i < v->count && v->len; i++)
		if (strncmp(v->paths[i], v->top, n) == 0 && v->paths[i][n] == '/' && strcmp(v->paths[i] + n + 1, v->path) == 0)
			return true;
	return false;
}

static void put_dir(struct sender *v, int fd, const struct stat *st, unsigned deep)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);

	if (!list) {
		own_close_fd(&copy);
		say(v, errno);
		return;
	}
	put_head(v, TREE_DIR, st, 0);
	for (struct dirent *d = is_other_tree(v) ? NULL : readdir(list); d && !v->out.error; d = readdir(list))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			put_entry(v, fd, d->d_name, deep + 1);
	put_head(v, TREE_DIR_END, st, 0);
}

static void put_tree(struct sender *v, int fd, unsigned deep)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		say(v, errno);
	else if (S_ISREG(st.st_mode))
		put_file(v, fd, &st);
	else if (S_ISDIR(st.st_mode) && deep < TREE_DEEP)
		put_dir(v, fd, &st, deep);
	else if (S_ISDIR(st.st_mode))
		say(v, ELOOP);
	else if (S_ISCHR(st.st_mode))
		put_head(v, TREE_CLOSED, &st, 0);
}

static int send_one(struct sender *v, const char *path, struct ward_err *e)
{
	auto_fd source = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct stat none = { 0 };

	if (source < 0)
		return ward_fail_errno(e, "opening %s", path);
	v->top = path;
	put_tree(v, source, 0);
	v->len = 0;
	put_head(v, TREE_END, &none, 0);
	return 0;
}

int tree_send(const struct tree_way *way, char *const *paths, size_t count, struct ward_err *e)
{
	auto_free struct sender *v = calloc(1, sizeof(*v));
	int r = 0;

	if (!v || disk_writer_begin(&v->out, way->out_fd, way->in_fd, way->disk_fd) < 0)
		return ward_fail(e, ENOMEM, "no memory");
	v->paths = paths;
	v->count = count;
	for (size_t i = 0; i < count && r == 0; i++)
		r = send_one(v, paths[i], e);
	if (r < 0)
		return r;	/* the guest finds that it is not complete */
	r = disk_writer_end(&v->out);
	return r < 0 ? ward_fail(e, -r, "the guest does not take it: %s", strerror(-r)) : 0;
}
