/*
 * What changed in a tree, on its way back from the guest. In: records that a hostile guest wrote. Out: files beneath one path. Runs as a
 * process of ward-vm's own inside the native sandbox, with the rights that a command would have there: what the sandbox protects
 * refuses, and that is said, a line for each, and counted. Names are checked (tree.c), parents are opened beneath the
 * tree through no link, a file is made new without a name, or where that cannot be under one of its own, and then put in its place, so it is old or new and never half.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "base/text.h"
#include "vm/disk.h"
#include "vm/server.h"
#include "vm/tree.h"

#define LINES_MAX 100
#define RECORDS_MAX (1u << 24)
#define NEW_NAME ".ward-vm-new"

struct taker {
	char *const *paths;	/* of the trees that are still to come, the present one first */
	size_t left;
	const char *path;	/* of the present one */
	int root_fd;		/* -1: the tree is one file, or closed */
	int closed;		/* why it cannot be opened out here: nothing of it comes back */
	int dir_fd;		/* parent of the present record; -1: none */
	char dir[TREE_NAME_MAX + 1];	/* its name */
	int file_fd;
	bool probed, nameless;	/* whether files can be made without a name, once that was tried */
	const char *base;	/* the present file's name in it */
	struct tree_head head;
	char name[TREE_NAME_MAX + 1];
	int failure;		/* of the present file */
	uint64_t lost;
	struct tree_reader reader;
};

static const char *why(int error)
{
	return error == EROFS || error == EBUSY || error == EACCES || error == EPERM ? "it is protected" : strerror(error);
}

static void lose(struct taker *t, const char *name, int error)
{
	auto_buf line = { 0 };

	if (t->lost++ >= LINES_MAX)
		return;
	if (t->closed || !*name)
		text_escape(&line, t->path);
	if (t->closed && *name)
		buf_puts(&line, "/");
	text_escape(&line, name);
	dprintf(2, "ward-vm: %s: %s: its change inside did not come back\n", buf_text(&line), why(error));
}

/* The directory of a name, and the name in it. Files come directory by directory: the last one is kept. */
static int open_parent(struct taker *t, const char *name, const char **ret_base)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;
	struct ward_err e = { 0 };

	*ret_base = slash ? slash + 1 : name;
	if (t->root_fd < 0)
		return t->closed ? -t->closed : -ENOTDIR;
	if (!slash)
		return t->root_fd;
	if (t->dir_fd >= 0 && strlen(t->dir) == len && memcmp(t->dir, name, len) == 0)
		return t->dir_fd;
	own_close_fd(&t->dir_fd);
	memcpy(t->dir, name, len);
	t->dir[len] = '\0';
	t->dir_fd = path_open_nolink(t->root_fd, t->dir, O_PATH | O_DIRECTORY, &e);
	if (t->dir_fd < 0) {
		int r = t->dir_fd;

		t->dir_fd = -1;
		return r;
	}
	return t->dir_fd;
}

static int make_dir(struct taker *t, const char *name, unsigned mode)
{
	const char *base = NULL;
	int dir = open_parent(t, name, &base);

	if (dir < 0)
		return dir;
	return *name && mkdirat(dir, base, (mode & 0777) | 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int end_dir(struct taker *t, const char *name, const struct tree_head *h)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	struct ward_err e = { 0 };
	auto_fd fd = t->root_fd < 0 ? -(t->closed ? t->closed : ENOTDIR) : path_open_nolink(t->root_fd, *name ? name : ".", O_RDONLY | O_DIRECTORY, &e);

	if (fd < 0)
		return fd;
	if (fchmod(fd, h->mode & 0777) < 0)
		return -errno;
	(void)!futimens(fd, times);
	return 0;
}

static int remove_name(struct taker *t, const char *name)
{
	const char *base = NULL;
	int dir = open_parent(t, name, &base), r;

	if (dir == -ENOENT)
		return 0;
	if (dir < 0 || !*name)
		return dir < 0 ? dir : -EBUSY;
	r = unlinkat(dir, base, 0) < 0 ? -errno : 0;
	if (r == -EISDIR || r == -EPERM)
		r = unlinkat(dir, base, AT_REMOVEDIR) < 0 ? -errno : 0;
	own_close_fd(&t->dir_fd);
	t->dir_fd = -1;
	return r == -ENOENT ? 0 : r;
}

static int give_name(int fd, int dir)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, NEW_NAME, AT_SYMLINK_FOLLOW);
}

static int open_nameless(int dir)
{
	return openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
}

/* A file that nobody sees, and of which nothing is left if we are killed. Not every file system has such, and whether it can get a name later is tried once. */
static int make_file(struct taker *t, int dir)
{
	unlinkat(dir, NEW_NAME, 0);
	if (!t->probed) {
		auto_fd fd = open_nameless(dir);

		t->probed = true;
		t->nameless = fd >= 0 && give_name(fd, dir) == 0 && unlinkat(dir, NEW_NAME, 0) == 0;
	}
	return t->nameless ? open_nameless(dir) : openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void begin_file(struct taker *t, const struct tree_head *h, const char *name)
{
	int dir = 0;

	t->head = *h;
	memcpy(t->name, name, h->name_len);
	t->name[h->name_len] = '\0';
	t->failure = 0;
	if (!*name && !t->closed) {	/* one file, which others may have mounted: it keeps its place */
		t->file_fd = open(t->path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	} else {
		dir = open_parent(t, t->name, &t->base);
		t->file_fd = dir < 0 ? dir : make_file(t, dir);
	}
	if (t->file_fd < 0)
		t->failure = dir < 0 ? -dir : errno;
}

static int take_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	struct taker *t = ctx;

	if (!t->failure)
		t->failure = -io_write_at(t->file_fd, bytes, n, offset);
	return 0;
}

static int take_file_end(void *ctx)
{
	struct taker *t = ctx;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = t->head.mtime_s, .tv_nsec = t->head.mtime_ns } };
	int dir = *t->name && t->file_fd >= 0 ? open_parent(t, t->name, &t->base) : -1;

	if (!t->failure && (ftruncate(t->file_fd, (off_t)t->head.size) < 0 || fchmod(t->file_fd, t->head.mode & 0777) < 0))
		t->failure = errno;
	if (!t->failure)
		(void)!futimens(t->file_fd, times);
	if (!t->failure && dir >= 0 && t->nameless && give_name(t->file_fd, dir) < 0)
		t->failure = errno;
	if (!t->failure && dir >= 0 && renameat(dir, NEW_NAME, dir, t->base) < 0)
		t->failure = errno;
	if (t->failure && dir >= 0)
		unlinkat(dir, NEW_NAME, 0);
	own_close_fd(&t->file_fd);
	t->file_fd = -1;
	if (t->failure)
		lose(t, t->name, t->failure);
	return 0;
}

static int take_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	struct taker *t = ctx;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	const char *base = NULL;
	int dir = *name ? open_parent(t, name, &base) : -EBUSY, r = dir < 0 ? dir : 0;

	if (r == 0)
		unlinkat(dir, NEW_NAME, 0);
	if (r == 0 && symlinkat(target, dir, NEW_NAME) < 0)
		r = -errno;
	if (r == 0) {
		(void)!utimensat(dir, NEW_NAME, times, AT_SYMLINK_NOFOLLOW);
		r = renameat(dir, NEW_NAME, dir, base) < 0 ? -errno : 0;
		if (r < 0)
			unlinkat(dir, NEW_NAME, 0);
	}
	if (r < 0)
		lose(t, name, -r);
	return 0;
}

static void begin_tree(struct taker *t)
{
	t->path = t->paths[0];
	t->root_fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->closed = t->root_fd < 0 && errno != ENOTDIR ? errno : 0;
	t->probed = t->nameless = false;
}

static void end_tree(struct taker *t)
{
	own_close_fd(&t->dir_fd);
	own_close_fd(&t->root_fd);
	t->dir_fd = t->root_fd = -1;
	t->paths++;
	if (--t->left)
		begin_tree(t);
}

static int take_head(void *ctx, const struct tree_head *h, const char *name)
{
	struct taker *t = ctx;
	int r = 0;

	if (h->type == TREE_END)
		end_tree(t);
	else if (h->type == TREE_FILE)
		begin_file(t, h, name);
	else if (h->type == TREE_DIR)
		r = make_dir(t, name, h->mode);
	else if (h->type == TREE_DIR_END)
		r = end_dir(t, name, h);
	else if (h->type == TREE_GONE)
		r = remove_name(t, name);
	else if (h->type == TREE_ERROR)
		r = -(int)(h->code & 0xfff);
	else
		return -EPROTO;
	if (r < 0)
		lose(t, name, -r);
	return 0;
}

static const struct tree_sink sink = { .head = take_head, .link = take_link, .chunk = take_chunk, .file_end = take_file_end };

/* A file that was begun and never ended is not there. */
static void forget(struct taker *t)
{
	const char *base = NULL;

	if (t->file_fd >= 0 && *t->name) {
		int dir = open_parent(t, t->name, &base);

		if (dir >= 0)
			unlinkat(dir, NEW_NAME, 0);
	}
	own_close_fd(&t->file_fd);
	own_close_fd(&t->dir_fd);
	own_close_fd(&t->root_fd);
}

static int take_records(void *ctx, const void *bytes, size_t n)
{
	return tree_read(ctx, bytes, n);
}

static int take_all(struct taker *t, const struct tree_way *way, struct ward_err *e)
{
	int r;

	begin_tree(t);
	r = disk_read_all(way->in_fd, way->out_fd, way->disk_fd, take_records, &t->reader);
	if (r == 0 && t->reader.at != TREE_AT_END)
		r = -EPIPE;
	forget(t);
	if (t->lost > LINES_MAX)
		dprintf(2, "ward-vm: %llu more did not come back\n", (unsigned long long)(t->lost - LINES_MAX));
	if (r == -E2BIG)
		return ward_fail(e, E2BIG, "it is more than may come back");
	return r < 0 ? ward_fail(e, -r, r == -EPIPE ? "the guest stopped in the middle" : "the guest sent something that is no copy") : 0;
}

int tree_take(const struct tree_way *way, char *const *paths, size_t count, uint64_t bytes_max, uint64_t *ret_lost, struct ward_err *e)
{
	struct taker *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return ward_fail(e, ENOMEM, "no memory");
	t->paths = paths;
	t->left = count;
	t->root_fd = t->dir_fd = t->file_fd = -1;
	t->reader = (struct tree_reader){ .sink = &sink, .ctx = t, .bytes_max = bytes_max ? bytes_max : UINT64_MAX, .records_max = RECORDS_MAX, .more = count - 1 };
	r = take_all(t, way, e);
	*ret_lost = t->lost;
	free(t);
	return r;
}
