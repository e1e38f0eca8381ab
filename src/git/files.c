/*
 * Files of a git directory. In: descriptors of directories. Out: bytes in memory, or replaced
 * files. Runs in ward-git with the rights of the repository's owner. The sandbox may change a view
 * at any moment: every path is walked through no link, beneath its directory, and only regular
 * files are read.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/io.h"
#include "base/path.h"

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

bool files_any_beneath(const struct files *f, const char *dir)
{
	auto_buf start = { 0 };
	bool found;
	size_t i;

	buf_printf(&start, "%s/", dir);
	if (start.failed)
		return false;
	i = find_place(f, start.data, &found);
	return i < f->len && strncmp(f->items[i].path, start.data, start.len) == 0;
}

/* Room for one more. */
static int make_room(struct files *f)
{
	size_t cap = f->cap ? f->cap * 2 : 64;
	struct file *grown =
		f->len < f->cap ? f->items : reallocarray(f->items, cap, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	f->cap = f->len < f->cap ? f->cap : cap;
	f->items = grown;
	return 0;
}

static char *copy_bytes(const void *bytes, size_t n)
{
	char *copy = malloc(n + 1);

	if (copy && n)
		memcpy(copy, bytes, n);
	if (copy)
		copy[n] = '\0';
	return copy;
}

int files_set(struct files *f, const char *path, const void *bytes, size_t n)
{
	bool found;
	size_t i = find_place(f, path, &found);
	auto_free char *copy = copy_bytes(bytes, n), *name = found ? NULL : strdup(path);

	if (!copy || (!found && (!name || make_room(f) < 0)))
		return -ENOMEM;
	if (found) {
		free(f->items[i].bytes);
		f->items[i].bytes = take_ptr(copy);
		f->items[i].n = n;
		return 0;
	}
	memmove(&f->items[i + 1], &f->items[i], (f->len - i) * sizeof(*f->items));
	f->len++;
	f->items[i] = (struct file){ take_ptr(name), take_ptr(copy), n };
	return 0;
}

int files_add(struct files *f, const char *path, const void *bytes, size_t n)
{
	auto_free char *copy = copy_bytes(bytes, n), *name = strdup(path);

	if (!copy || !name || make_room(f) < 0)
		return -ENOMEM;
	f->items[f->len++] = (struct file){ take_ptr(name), take_ptr(copy), n };
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static void free_file(struct file *f)
{
	free(f->path);
	free(f->bytes);
}

void files_sort(struct files *f)
{
	size_t kept = 0;

	if (f->len)
		qsort(f->items, f->len, sizeof(*f->items), compare_paths);
	for (size_t i = 0; i < f->len; i++)
		if (kept && strcmp(f->items[kept - 1].path, f->items[i].path) == 0)
			free_file(&f->items[i]);
		else
			f->items[kept++] = f->items[i];
	f->len = kept;
}

void files_drop_all(struct files *f, const char *prefix)
{
	size_t n = strlen(prefix), kept = 0;

	for (size_t i = 0; i < f->len; i++)
		if (strncmp(f->items[i].path, prefix, n) == 0)
			free_file(&f->items[i]);
		else
			f->items[kept++] = f->items[i];
	f->len = kept;
}

void files_drop(struct files *f, const char *path)
{
	bool found;
	size_t i = find_place(f, path, &found);

	if (!found)
		return;
	free_file(&f->items[i]);
	f->len--;
	memmove(&f->items[i], &f->items[i + 1], (f->len - i) * sizeof(*f->items));
}

void files_clear(struct files *f)
{
	for (size_t i = 0; i < f->len; i++)
		free_file(&f->items[i]);
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
	int at = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;

	while (at >= 0) {
		size_t n = strcspn(path, "/");
		auto_free char *name = strndup(path, n);
		int next;

		if (!path[n]) {
			*ret_name = path;
			return at;
		}
		if (!name || strcmp(name, "..") == 0 || !n) {
			close(at);
			return name ? -EINVAL : -ENOMEM;
		}
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT &&
		    (mkdirat(at, name, 0777) == 0 || errno == EEXIST))
			next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		failed = next < 0 ? -errno : 0;
		close(at);
		at = next;
		path += n + 1;
	}
	return failed ? failed : -errno;
}

static int open_lock(int parent, const char *lock, int *wait_ms)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };

	for (;;) {
		int fd = openat(parent, lock, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				0666);

		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
		if (!wait_ms || *wait_ms <= 0)
			return -EBUSY;
		*wait_ms -= LOCK_PAUSE_MS;
		nanosleep(&pause, NULL);
	}
}

static int replace(int parent, const char *name, const char *lock, int fd, const void *bytes,
		   size_t n)
{
	int status = io_write_all(fd, bytes, n);

	if (status == 0 && renameat(parent, lock, parent, name) < 0) {
		/* an empty directory of a branch that was deleted: a/b, then a */
		status = -errno;
		if ((status == -EISDIR || status == -EEXIST || status == -ENOTEMPTY) &&
		    unlinkat(parent, name, AT_REMOVEDIR) == 0)
			status = renameat(parent, lock, parent, name) < 0 ? -errno : 0;
	}
	if (status < 0)
		unlinkat(parent, lock, 0);
	return status;
}

int file_write(int dir_fd, const char *path, const void *bytes, size_t n, int *wait_ms)
{
	const char *name = NULL;
	auto_fd parent = open_parent(dir_fd, path, &name), fd = -1;
	auto_buf lock = { 0 };
	sigset_t end, old;
	int status;

	if (parent < 0)
		return parent;
	if (!bytes)
		return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	buf_printf(&lock, "%s.lock", name);
	if (lock.failed)
		return -ENOMEM;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, &old); /* a process that is asked to end leaves no lock */
	fd = open_lock(parent, lock.data, wait_ms);
	status = fd < 0 ? fd : replace(parent, name, lock.data, fd, bytes, n);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return status;
}
