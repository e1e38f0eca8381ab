/*
 * The private directories of a sandbox (/tmp, a home that is not kept) on their way into a checkpoint and back. In: their paths, the same and in the same order at both ends. Out: records (vm/tree.h) in frames, each a length and so many bytes, an empty one at the
 * end; or the directories filled again. Runs in the sandbox with the agent's rights (and, in a user namespace of the process's own, over every file of that id), so that what is read here, whoever wrote it, can but become files of the sandbox. No link is followed, no other file
 * system is entered. Sockets and pipes are left out, set-id bits too, and names of one file become files of their own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "gvisor/gvisor.h"
#include "vm/tree.h"

#define FRAME_MAX 65536
#define KEPT_MODE 01777

/* ---- out ---- */

struct sender {
	int out_fd;
	int error;		/* the first, -errno */
	uint64_t sent;
	dev_t dev;		/* of the present tree */
	const char *tree;	/* its path */
	char path[TREE_NAME_MAX + 1];
	size_t len;
	size_t held;		/* in frame */
	char frame[FRAME_MAX], bytes[TREE_CHUNK_MAX];
};

static void flush(struct sender *s)
{
	const uint32_t n = (uint32_t)s->held;

	if (s->error == 0)
		s->error = io_write_all(s->out_fd, &n, sizeof(n));
	if (s->error == 0)
		s->error = io_write_all(s->out_fd, s->frame, s->held);
	s->sent += sizeof(n) + s->held;
	s->held = 0;
}

static void put(struct sender *s, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n && s->error == 0) {
		size_t take = FRAME_MAX - s->held < n ? FRAME_MAX - s->held : n;

		memcpy(s->frame + s->held, at, take);
		s->held += take;
		at += take;
		n -= take;
		if (s->held == FRAME_MAX)
			flush(s);
	}
}

static void fail(struct sender *s)
{
	if (s->error == 0) {
		s->error = -errno;
		gvisor_say("a private file cannot be read: %s/%.200s%s: %s", s->tree, s->path, s->len > 200 ? "..." : "", strerror(-s->error));
	}
}

static void put_head(struct sender *s, enum tree_type type, const struct stat *st, uint64_t size)
{
	const struct tree_head h = { .magic = TREE_MAGIC, .type = (uint16_t)type, .mode = (uint16_t)(st->st_mode & KEPT_MODE), .name_len = (uint32_t)s->len, .size = size,
				     .mtime_s = st->st_mtim.tv_sec, .mtime_ns = (uint32_t)st->st_mtim.tv_nsec };

	put(s, &h, sizeof(h));
	put(s, s->path, s->len);
}

static void put_extent(struct sender *s, int fd, off_t at, off_t end)
{
	while (at < end && s->error == 0) {
		size_t want = end - at < TREE_CHUNK_MAX ? (size_t)(end - at) : TREE_CHUNK_MAX;
		ssize_t n = pread(fd, s->bytes, want, at);
		const struct tree_chunk c = { .offset = (uint64_t)at, .len = (uint32_t)n };

		if (n < 0)
			fail(s);
		if (n <= 0)
			return;
		put(s, &c, sizeof(c));
		put(s, s->bytes, (size_t)n);
		at += n;
	}
}

static void put_file(struct sender *s, int fd, const struct stat *st)
{
	const struct tree_chunk end = { 0 };
	off_t at = 0;

	put_head(s, TREE_FILE, st, (uint64_t)st->st_size);
	while (at < st->st_size && s->error == 0) {
		off_t data = lseek(fd, at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0 || hole < 0)
			fail(s);
		else
			put_extent(s, fd, data, hole < st->st_size ? hole : st->st_size);
		at = hole;
	}
	put(s, &end, sizeof(end));
}

static void put_link(struct sender *s, int dir_fd, const char *name, const struct stat *st)
{
	ssize_t n = readlinkat(dir_fd, name, s->bytes, TREE_NAME_MAX);

	if (n <= 0) {
		fail(s);
		return;
	}
	put_head(s, TREE_LINK, st, (uint64_t)n);
	put(s, s->bytes, (size_t)n);
}

static void put_dir(struct sender *s, int fd, const struct stat *st, unsigned deep);

static void put_entry(struct sender *s, int dir_fd, const char *name, unsigned deep)
{
	size_t len = s->len, n = strlen(name);
	auto_fd fd = -1;
	struct stat st;

	if (len + 1 + n > TREE_NAME_MAX || deep >= TREE_DEEP) {	/* the directory is named then */
		errno = ENAMETOOLONG;
		fail(s);
		return;
	}
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		fail(s);
		return;
	}
	if (st.st_dev != s->dev)
		return;	/* it is mounted there again */
	s->len += (size_t)snprintf(s->path + len, sizeof(s->path) - len, "%s%s", len ? "/" : "", name);
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			fail(s);
		else if (S_ISREG(st.st_mode))
			put_file(s, fd, &st);
		else
			put_dir(s, fd, &st, deep + 1);
	} else if (S_ISLNK(st.st_mode)) {
		put_link(s, dir_fd, name, &st);
	}
	s->len = len;
	s->path[len] = '\0';
}

static void put_dir(struct sender *s, int fd, const struct stat *st, unsigned deep)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);

	if (!list) {
		fail(s);
		own_close_fd(&copy);
		return;
	}
	put_head(s, TREE_DIR, st, 0);
	for (struct dirent *d = readdir(list); d && s->error == 0; d = readdir(list))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			put_entry(s, fd, d->d_name, deep);
	put_head(s, TREE_DIR_END, st, 0);
}

int trees_send(int out_fd, char *const *paths, size_t count, uint64_t *ret_bytes)
{
	auto_free struct sender *s = calloc(1, sizeof(*s));
	const struct stat none = { 0 };

	if (!s)
		return -ENOMEM;
	s->out_fd = out_fd;
	for (size_t i = 0; i < count && s->error == 0; i++) {
		auto_fd top = open(paths[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		s->tree = paths[i];
		if (top < 0 || fstat(top, &st) < 0) {
			fail(s);
			break;
		}
		s->dev = st.st_dev;
		put_dir(s, top, &st, 0);
		put_head(s, TREE_END, &none, 0);
	}
	if (s->held)
		flush(s);
	flush(s);	/* an empty frame is the end */
	*ret_bytes = s->sent;
	return s->error;
}

/* ---- and in ---- */

struct taker {
	char *const *paths;	/* of the trees that are still to come */
	int top_fd, file_fd;
	struct tree_head head;	/* of the present file */
	char name[TREE_NAME_MAX + 1];
	struct tree_reader reader;
	char frame[FRAME_MAX];
};

/* The directory that a name is in, through no link (the records may say that one is a directory), and what it is called there. The name has no "..": tree.c has looked. */
static int open_parent(const struct taker *t, const char *name, const char **ret_last)
{
	auto_fd dir = t->top_fd < 0 || !*name ? -1 : fcntl(t->top_fd, F_DUPFD_CLOEXEC, 3);
	const char *slash;

	if (dir < 0)
		return -EPROTO;
	for (; (slash = strchr(name, '/')); name = slash + 1) {
		char part[NAME_MAX + 1];
		int next;

		if (slash - name > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, name, (size_t)(slash - name));
		part[slash - name] = '\0';
		next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(dir);
		dir = next;
	}
	*ret_last = name;
	return take_fd(&dir);
}

static int set_times(const struct taker *t, const char *name, const struct tree_head *h)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	const char *last = name;
	auto_fd dir = -1;
	struct stat st;

	if (!*name)
		return 0;	/* the top is as the plan wants it */
	dir = open_parent(t, name, &last);
	if (dir < 0)
		return dir;
	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || (h->type != TREE_LINK && S_ISLNK(st.st_mode)))
		return -EPROTO;
	if (h->type != TREE_LINK && fchmodat(dir, last, h->mode & KEPT_MODE, 0) < 0)
		return -errno;
	return utimensat(dir, last, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_dir(const struct taker *t, const char *name)
{
	const char *last = name;
	auto_fd dir = open_parent(t, name, &last);

	return dir < 0 ? dir : mkdirat(dir, last, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_file(struct taker *t, const struct tree_head *h, const char *name)
{
	const char *last = name;
	auto_fd dir = open_parent(t, name, &last);

	if (dir < 0)
		return dir;
	t->head = *h;
	memcpy(t->name, name, strlen(name) + 1);
	t->file_fd = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return t->file_fd < 0 || ftruncate(t->file_fd, (off_t)h->size) < 0 ? -errno : 0;
}

static int take_head(void *ctx, const struct tree_head *h, const char *name)
{
	struct taker *t = ctx;

	if (h->type == TREE_END) {
		own_close_fd(&t->top_fd);
		t->top_fd = -1;
		return 0;
	}
	if (t->top_fd < 0) {	/* the next tree; its own name is empty */
		t->top_fd = *name ? -1 : open(*t->paths, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		t->paths++;
		return t->top_fd < 0 ? -EPROTO : 0;
	}
	if (h->type == TREE_DIR)
		return make_dir(t, name);
	if (h->type == TREE_DIR_END)
		return set_times(t, name, h);
	return h->type == TREE_FILE ? make_file(t, h, name) : -EPROTO;
}

static int take_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	const struct taker *t = ctx;
	const char *last = name;
	auto_fd dir = open_parent(t, name, &last);

	if (dir < 0)
		return dir;
	return symlinkat(target, dir, last) < 0 ? -errno : set_times(t, name, h);
}

static int take_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	const struct taker *t = ctx;

	return io_write_at(t->file_fd, bytes, n, offset);
}

static int take_file_end(void *ctx)
{
	struct taker *t = ctx;

	own_close_fd(&t->file_fd);
	t->file_fd = -1;
	return set_times(t, t->name, &t->head);
}

static const struct tree_sink sink = { .head = take_head, .link = take_link, .chunk = take_chunk, .file_end = take_file_end };

int trees_take(int in_fd, char *const *paths, size_t count)
{
	auto_free struct taker *t = calloc(1, sizeof(*t));
	uint32_t n = 0;
	int r = 0;

	if (!t)
		return -ENOMEM;
	t->paths = paths;
	t->top_fd = t->file_fd = -1;
	t->reader = (struct tree_reader){ .sink = &sink, .ctx = t, .bytes_max = UINT64_MAX, .records_max = UINT64_MAX, .more = count ? count - 1 : 0 };
	while (r == 0 && (r = io_read_exactly(in_fd, &n, sizeof(n))) == 0 && n) {
		if (n > FRAME_MAX || !count)
			return -EPROTO;
		r = io_read_exactly(in_fd, t->frame, n);
		if (r == 0)
			r = tree_read(&t->reader, t->frame, n);
	}
	own_close_fd(&t->top_fd);
	own_close_fd(&t->file_fd);
	if (r == -EPIPE)
		return -EPROTO;
	return r == 0 && count && t->reader.at != TREE_AT_END ? -EPROTO : r;
}
