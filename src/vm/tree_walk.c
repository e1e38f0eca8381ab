/*
 * A tree as records. In: a descriptor of its top. Out: bytes, by put(). No link is followed below
 * the top, sockets and pipes are left out, holes stay holes. Runs with the rights of the process
 * that asks for it: ward-vm's sender inside the native sandbox, and ward-gvisor when it makes a
 * checkpoint; what they cannot read is theirs to judge (fail()).
 */
#include "vm/tree_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void put(struct tree_walk *w, const void *bytes, size_t n)
{
	if (w->error == 0)
		w->error = w->how->put(w->ctx, bytes, n);
}

static void fail(struct tree_walk *w, int error)
{
	if (w->error == 0)
		w->error = w->how->fail(w, error);
}

static void put_mount(struct tree_walk *w, enum tree_type type, const struct stat *st,
		      uint64_t size, enum tree_mount mount)
{
	const struct tree_head h = { .magic = TREE_MAGIC,
				     .type = (uint16_t)type,
				     .mode = (uint16_t)(st->st_mode & w->how->mode),
				     .name_len = (uint32_t)w->len,
				     .size = size,
				     .code = mount,
				     .mtime_s = st->st_mtim.tv_sec,
				     .mtime_ns = (uint32_t)st->st_mtim.tv_nsec };

	put(w, &h, sizeof(h));
	put(w, w->path, w->len);
}

static void put_head(struct tree_walk *w, enum tree_type type, const struct stat *st, uint64_t size)
{
	put_mount(w, type, st, size, TREE_NO_MOUNT);
}

/* Hidden files are mounts, too. */
static void put_closed_file(struct tree_walk *w, const struct stat *st)
{
	put_mount(w, TREE_CLOSED, st, 0, w->how->mounts ? TREE_READ_ONLY : TREE_NO_MOUNT);
}

static bool is_read_only(const struct tree_walk *w, int fd)
{
	struct statvfs fs;

	return w->how->mounts && fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

static enum tree_mount mount_of(const struct tree_walk *w, bool read_only)
{
	return read_only == w->read_only ? TREE_NO_MOUNT
	       : read_only               ? TREE_READ_ONLY
					 : TREE_WRITABLE;
}

static void put_extent(struct tree_walk *w, int fd, off_t at, off_t end)
{
	while (at < end && w->error == 0) {
		size_t want = end - at < TREE_CHUNK_MAX ? (size_t)(end - at) : TREE_CHUNK_MAX;
		ssize_t n = pread(fd, w->chunk, want, at);
		const struct tree_chunk c = { .offset = (uint64_t)at, .len = (uint32_t)n };

		if (n < 0)
			fail(w, errno);
		if (n <= 0) /* it became shorter meanwhile: a hole */
			return;
		put(w, &c, sizeof(c));
		put(w, w->chunk, (size_t)n);
		at += n;
	}
}

static void put_file(struct tree_walk *w, int fd, const struct stat *st)
{
	const struct tree_chunk end = { 0 };
	off_t at = 0;

	put_mount(w, TREE_FILE, st, (uint64_t)st->st_size, mount_of(w, is_read_only(w, fd)));
	while (at < st->st_size && w->error == 0) {
		off_t data = lseek(fd, at, SEEK_DATA),
		      hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

		if (data < 0 && errno == ENXIO)
			break;
		/* a file system without holes */
		if (data < 0 || hole < 0 || hole > st->st_size) {
			data = data < 0 ? at : data;
			hole = st->st_size;
		}
		put_extent(w, fd, data, hole);
		at = hole;
	}
	put(w, &end, sizeof(end));
}

static void put_link(struct tree_walk *w, int dir_fd, const char *name)
{
	ssize_t n = readlinkat(dir_fd, name, w->chunk, TREE_NAME_MAX);
	struct stat st;

	if (n <= 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		fail(w, n == 0 ? EINVAL : errno);
		return;
	}
	put_head(w, TREE_LINK, &st, (uint64_t)n);
	put(w, w->chunk, (size_t)n);
}

static void put_any(struct tree_walk *w, int fd, unsigned deep);

/* It could not be opened. What no process here may read is there all the same. */
static void put_closed(struct tree_walk *w, int dir_fd, const char *name, int error)
{
	struct stat st;

	if (error == ELOOP)
		put_link(w, dir_fd, name);
	else if (w->how->closed && (error == EACCES || error == EPERM) &&
		 fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
		put_closed_file(w, &st);
	else if (error != ENXIO && error != ENOENT) /* a socket; one that is gone again */
		fail(w, error);
}

static void put_entry(struct tree_walk *w, int dir_fd, const char *name, unsigned deep)
{
	size_t len = w->len, n = strlen(name);
	auto_fd fd = -1;

	if (len + 1 + n > TREE_NAME_MAX) {
		fail(w, ENAMETOOLONG); /* the directory is named then */
		return;
	}
	w->len += (size_t)snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "",
				   name);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		put_any(w, fd, deep);
	else
		put_closed(w, dir_fd, name, errno);
	w->len = len;
	w->path[len] = '\0';
}

static void put_dir(struct tree_walk *w, int fd, const struct stat *st, unsigned deep)
{
	enum tree_part part = w->how->enter(w, st);
	int copy = part == TREE_LEFT_OUT ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	auto_dir list = copy < 0 ? NULL : fdopendir(copy);
	bool outer = w->read_only, inner = part == TREE_EMPTY ? outer : is_read_only(w, fd);

	if (part == TREE_LEFT_OUT)
		return;
	if (!list) {
		fail(w, errno);
		own_close_fd(&copy);
		return;
	}
	put_mount(w, TREE_DIR, st, 0, mount_of(w, inner));
	w->read_only = inner;
	for (struct dirent *d = part == TREE_EMPTY ? NULL : readdir(list); d && w->error == 0;
	     d = readdir(list))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			put_entry(w, fd, d->d_name, deep + 1);
	w->read_only = outer;
	put_head(w, TREE_DIR_END, st, 0);
}

static void put_any(struct tree_walk *w, int fd, unsigned deep)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		fail(w, errno);
	else if (S_ISREG(st.st_mode))
		put_file(w, fd, &st);
	else if (S_ISDIR(st.st_mode) && deep < TREE_DEEP)
		put_dir(w, fd, &st, deep);
	else if (S_ISDIR(st.st_mode))
		fail(w, ENAMETOOLONG);
	else if (S_ISCHR(st.st_mode) && w->how->closed)
		put_closed_file(w, &st);
}

int tree_walk(struct tree_walk *w, int fd)
{
	const struct stat none = { 0 };

	w->len = 0;
	w->read_only = false;
	w->path[0] = '\0';
	put_any(w, fd, 0);
	put_head(w, TREE_END, &none, 0);
	return w->error;
}
