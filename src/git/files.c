/*
 * Files of a git directory. In: descriptors of directories. Out: bytes in memory, or replaced files. Runs in ward-git with the
 * rights of the repository's owner. The sandbox may change a view at any moment: every path is walked through no link, beneath
 * its directory, and only regular files are read.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"

#define LOCK_TRIES 40
#define LOCK_PAUSE_MS 50

static size_t find_place(const struct files *f, const char *path, bool *ret_found)
{
	size_t low = 0, high = f->len;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(f->items[middle].path, path);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct file *files_find(const struct files *f, const char *path)
{
	bool found;
	size_t i = find_place(f, path, &found);

	return found ? &f->items[i] : NULL;
}

int files_set(struct files *f, const char *path, const void *bytes, size_t n)
{
	bool found;
	size_t i = find_place(f, path, &found);
	char *copy = malloc(n + 1), *name = found ? f->items[i].path : strdup(path);

	if (!copy || !name) {
		free(copy);
		if (!found)
			free(name);
		return -ENOMEM;
	}
	if (n)
		memcpy(copy, bytes, n);
	copy[n] = '\0';
	if (!found && f->len == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 64;
		struct file *grown = reallocarray(f->items, cap, sizeof(*grown));

		if (!grown) {
			free(copy);
			free(name);
			return -ENOMEM;
		}
		f->items = grown;
		f->cap = cap;
	}
	if (found) {
		free(f->items[i].bytes);
	} else {
		memmove(&f->items[i + 1], &f->items[i], (f->len - i) * sizeof(*f->items));
		f->len++;
	}
	f->items[i] = (struct file){ name, copy, n };
	return 0;
}

void files_drop(struct files *f, const char *path)
{
	bool found;
	size_t i = find_place(f, path, &found);

	if (!found)
		return;
	free(f->items[i].path);
	free(f->items[i].bytes);
	f->len--;
	memmove(&f->items[i], &f->items[i + 1], (f->len - i) * sizeof(*f->items));
}

void files_clear(struct files *f)
{
	for (size_t i = 0; i < f->len; i++) {
		free(f->items[i].path);
		free(f->items[i].bytes);
	}
	free(f->items);
	*f = (struct files){ 0 };
}

bool files_equal(const struct file *a, const struct file *b)
{
	if (!a || !b)
		return !a && !b;
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

int file_read(int dir_fd, const char *path, size_t max, struct buf *bytes)
{
	struct ward_err e = { 0 };
	auto_fd fd = path_open_nolink(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &e);
	struct stat st;

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? io_read_all(fd, max, bytes) : -EINVAL;
}

/* Opens the directory of path's last component, making what is missing. */
static int open_parent(int dir_fd, const char *path, const char **ret_name)
{
	int at = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0) {
		size_t n = strcspn(path, "/");
		auto_free char *name = strndup(path, n);
		int next;

		if (!path[n]) {
			*ret_name = path;
			return at;
		}
		if (!name || strcmp(name, "..") == 0 || !n)
			next = -1;
		else if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
			next = -1;
		else
			next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += n + 1;
	}
	return errno ? -errno : -EINVAL;
}

static int open_lock(int parent, const char *lock)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };

	for (int i = 0; i < LOCK_TRIES; i++) {
		int fd = openat(parent, lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}

int file_write(int dir_fd, const char *path, const void *bytes, size_t n)
{
	const char *name = NULL;
	auto_fd parent = open_parent(dir_fd, path, &name), fd = -1;
	auto_buf lock = { 0 };
	int status;

	if (parent < 0)
		return parent;
	if (!bytes)
		return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	buf_printf(&lock, "%s.lock", name);
	if (lock.failed)
		return -ENOMEM;
	fd = open_lock(parent, lock.data);
	if (fd < 0)
		return fd;
	status = io_write_all(fd, bytes, n);
	if (status == 0)
		(void)unlinkat(parent, name, AT_REMOVEDIR);	/* an empty directory of a branch that was deleted: a/b, then a */
	if (status == 0 && renameat(parent, lock.data, parent, name) < 0)
		status = -errno;
	if (status < 0)
		unlinkat(parent, lock.data, 0);
	return status;
}
