/*
 * Files of records. In: hostile records (a guest, or a kernel that was taken over and then kept in
 * a checkpoint), checked by tree.c. Out: files beneath the paths of the trees. Runs with the rights
 * of the process that asks for it, in the native sandbox: what that protects refuses, and is lost.
 * Parents are opened beneath the tree through no link, a file is made new without a name, or where
 * that cannot be under one of its own, and then put in its place, so it is old or new and never
 * half.
 */
#include "vm/tree_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/path.h"

#define NEW_NAME ".ward-vm-new"

/* The directory of a name, and the name in it. Files come directory by directory: the last one is
 * kept. */
static int open_parent(struct tree_maker *m, const char *name, const char **ret_base)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;
	struct ward_err e = { 0 };

	*ret_base = slash ? slash + 1 : name;
	if (m->root_fd < 0)
		return m->closed ? -m->closed : -ENOTDIR;
	if (!slash)
		return m->root_fd;
	if (m->dir_fd >= 0 && strlen(m->dir) == len && memcmp(m->dir, name, len) == 0)
		return m->dir_fd;
	own_close_fd(&m->dir_fd);
	memcpy(m->dir, name, len);
	m->dir[len] = '\0';
	m->dir_fd = path_open_nolink(m->root_fd, m->dir, O_PATH | O_DIRECTORY, &e);
	if (m->dir_fd < 0) {
		int r = m->dir_fd;

		m->dir_fd = -1;
		return r;
	}
	return m->dir_fd;
}

static int make_dir(struct tree_maker *m, const char *name, unsigned mode)
{
	const char *base = NULL;
	int dir = open_parent(m, name, &base);

	if (dir < 0)
		return dir;
	return *name && mkdirat(dir, base, (mode & m->how->mode) | 0700) < 0 && errno != EEXIST
		       ? -errno
		       : 0;
}

static int end_dir(struct tree_maker *m, const char *name, const struct tree_head *h)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	struct ward_err e = { 0 };
	auto_fd fd = m->root_fd < 0 ? -(m->closed ? m->closed : ENOTDIR)
				    : path_open_nolink(m->root_fd, *name ? name : ".",
						       O_RDONLY | O_DIRECTORY, &e);

	if (fd < 0)
		return fd;
	if (fchmod(fd, h->mode & m->how->mode) < 0)
		return -errno;
	(void)!futimens(fd, times);
	return 0;
}

static int remove_name(struct tree_maker *m, const char *name)
{
	const char *base = NULL;
	int dir = open_parent(m, name, &base), r;

	if (dir == -ENOENT)
		return 0;
	if (dir < 0 || !*name)
		return dir < 0 ? dir : -EBUSY;
	r = unlinkat(dir, base, 0) < 0 ? -errno : 0;
	if (r == -EISDIR || r == -EPERM)
		r = unlinkat(dir, base, AT_REMOVEDIR) < 0 ? -errno : 0;
	own_close_fd(&m->dir_fd);
	m->dir_fd = -1;
	return r == -ENOENT ? 0 : r;
}

static int give_name(int fd, int dir, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
}

static int open_nameless(int dir)
{
	return openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
}

/* A file that no process sees, and of which nothing is left if we are killed. Not every file system
 * has such, and whether it can get a name later is tried once. */
static int make_file(struct tree_maker *m, int dir)
{
	if (!m->probed) {
		auto_fd fd = open_nameless(dir);

		unlinkat(dir, NEW_NAME, 0);
		m->probed = true;
		m->nameless = fd >= 0 && give_name(fd, dir, NEW_NAME) == 0 &&
			      unlinkat(dir, NEW_NAME, 0) == 0;
	}
	if (m->nameless)
		return open_nameless(dir);
	unlinkat(dir, NEW_NAME, 0);
	return openat(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void begin_file(struct tree_maker *m, const struct tree_head *h, const char *name)
{
	int dir = 0;

	m->head = *h;
	memcpy(m->name, name, h->name_len);
	m->name[h->name_len] = '\0';
	m->failure = 0;
	/* one file, which others may have mounted: it keeps its place */
	if (!*name && !m->closed) {
		m->file_fd = open(m->path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	} else {
		dir = open_parent(m, m->name, &m->base);
		m->file_fd = dir < 0 ? dir : make_file(m, dir);
	}
	if (m->file_fd < 0)
		m->failure = dir < 0 ? -dir : errno;
}

static int take_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	struct tree_maker *m = ctx;

	if (!m->failure)
		m->failure = -io_write_at(m->file_fd, bytes, n, offset);
	return 0;
}

/* In one step over what is there. */
static int replace(int dir, const char *base)
{
	int r = renameat(dir, NEW_NAME, dir, base) < 0 ? -errno : 0;

	if (r < 0)
		unlinkat(dir, NEW_NAME, 0);
	return r;
}

static int place_file(const struct tree_maker *m, int dir)
{
	if (!m->nameless)
		return replace(dir, m->base);
	if (give_name(m->file_fd, dir, m->base) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	unlinkat(dir, NEW_NAME, 0);
	return give_name(m->file_fd, dir, NEW_NAME) < 0 ? -errno : replace(dir, m->base);
}

static int take_file_end(void *ctx)
{
	struct tree_maker *m = ctx;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = m->head.mtime_s, .tv_nsec = m->head.mtime_ns } };
	int dir = *m->name && m->file_fd >= 0 ? open_parent(m, m->name, &m->base) : -1;

	if (!m->failure && (ftruncate(m->file_fd, (off_t)m->head.size) < 0 ||
			    fchmod(m->file_fd, m->head.mode & m->how->mode) < 0))
		m->failure = errno;
	if (!m->failure)
		(void)!futimens(m->file_fd, times);
	if (m->failure && dir >= 0 && !m->nameless)
		unlinkat(dir, NEW_NAME, 0);
	if (!m->failure && dir >= 0)
		m->failure = -place_file(m, dir);
	own_close_fd(&m->file_fd);
	m->file_fd = -1;
	return m->failure ? m->how->lose(m, m->name, m->failure) : 0;
}

static int place_link(int dir, const char *base, const char *target, const struct timespec times[2])
{
	const char *name = base;
	int r = symlinkat(target, dir, name) < 0 ? -errno : 0;

	if (r == -EEXIST) {
		name = NEW_NAME;
		unlinkat(dir, name, 0);
		r = symlinkat(target, dir, name) < 0 ? -errno : 0;
	}
	if (r == 0)
		(void)!utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
	return r == 0 && name != base ? replace(dir, base) : r;
}

static int take_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	struct tree_maker *m = ctx;
	const char *base = NULL;
	int dir = *name ? open_parent(m, name, &base) : -EBUSY,
	    r = dir < 0 ? dir : place_link(dir, base, target, times);

	return r < 0 ? m->how->lose(m, name, -r) : 0;
}

static void begin_tree(struct tree_maker *m)
{
	m->path = m->paths[0];
	m->root_fd = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	m->closed = m->root_fd < 0 && errno != ENOTDIR ? errno : 0;
	m->probed = m->nameless = false;
}

static void end_tree(struct tree_maker *m)
{
	own_close_fd(&m->dir_fd);
	own_close_fd(&m->root_fd);
	m->dir_fd = m->root_fd = -1;
	m->paths++;
	if (--m->left)
		begin_tree(m);
}

static int take_head(void *ctx, const struct tree_head *h, const char *name)
{
	struct tree_maker *m = ctx;
	int r = 0;

	if (h->type == TREE_END)
		end_tree(m);
	else if (h->type == TREE_FILE)
		begin_file(m, h, name);
	else if (h->type == TREE_DIR)
		r = make_dir(m, name, h->mode);
	else if (h->type == TREE_DIR_END)
		r = end_dir(m, name, h);
	else if (h->type == TREE_GONE)
		r = remove_name(m, name);
	else if (h->type == TREE_ERROR)
		r = -(int)(h->code & 0xfff);
	else
		return -EPROTO;
	return r < 0 ? m->how->lose(m, name, -r) : 0;
}

static const struct tree_sink sink = {
	.head = take_head, .link = take_link, .chunk = take_chunk, .file_end = take_file_end
};

void tree_make_begin(struct tree_maker *m, const struct tree_maker_how *how, char *const *paths,
		     size_t count, uint64_t bytes_max)
{
	m->how = how;
	m->paths = paths;
	m->left = count;
	m->root_fd = m->dir_fd = m->file_fd = -1;
	m->reader = (struct tree_reader){ .sink = &sink,
					  .ctx = m,
					  .bytes_max = bytes_max,
					  .records_max = how->records_max,
					  .more = count - 1 };
	begin_tree(m);
}

int tree_make_end(struct tree_maker *m)
{
	const char *base = NULL;

	if (m->file_fd >= 0 && *m->name && !m->nameless) {
		int dir = open_parent(m, m->name, &base);

		if (dir >= 0)
			unlinkat(dir, NEW_NAME, 0);
	}
	own_close_fd(&m->file_fd);
	own_close_fd(&m->dir_fd);
	own_close_fd(&m->root_fd);
	return m->reader.at == TREE_AT_END ? 0 : -EPIPE;
}
