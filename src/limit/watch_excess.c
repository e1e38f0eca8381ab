/*
 * What a sandbox left beyond its disk limit, in directories that are ward's own: the layer of a
 * review, caches, a kept home. In: their roots, when the run began, how many bytes are too many.
 * Out: the files that were changed last are gone, until the rest is within the limit. Runs in the
 * supervisor once every process of the sandbox is dead.
 *
 * Only files that were born during the run are removed: what was there before, in a kept home or
 * in a review that goes on, stays. Another run may have the same cache, so a name that was found is
 * no promise: the directory is opened again beneath the root without following any link, and what
 * has that name must be the file that was found.
 */
#include "limit/watch_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define BLOCK 512
#define MAX_DEPTH 200
#define MAX_FILES (1u << 17)

struct candidate {
	int root_fd; /* borrowed */
	char *path;  /* beneath it; owned */
	uint64_t ino, bytes;
	struct statx_timestamp changed;
};

struct candidates {
	struct candidate *items;
	size_t len, cap;
};

static bool is_since(const struct timespec *since, struct statx_timestamp t)
{
	return t.tv_sec > since->tv_sec ||
	       (t.tv_sec == since->tv_sec && t.tv_nsec >= since->tv_nsec);
}

static void add(struct candidates *c, int root_fd, const char *dir, const char *name,
		const struct statx *st)
{
	uint64_t bytes = st->stx_blocks * BLOCK / (st->stx_nlink ? st->stx_nlink : 1);
	struct candidate *items;
	char *path = NULL;

	if (!bytes || c->len >= MAX_FILES)
		return;
	if (c->len == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 256;

		items = reallocarray(c->items, cap, sizeof(*items));
		if (!items)
			return;
		c->items = items;
		c->cap = cap;
	}
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return;
	c->items[c->len++] = (struct candidate){ root_fd, path, st->stx_ino, bytes, st->stx_ctime };
}

/* Takes fd, the directory at path beneath the root. */
static void collect(struct candidates *c, int root_fd, int fd, const char *path,
		    const struct timespec *since, unsigned depth)
{
	auto_dir dir = fdopendir(fd);
	const struct dirent *entry;

	if (!dir)
		own_close_fd(&fd);
	while (dir && (entry = readdir(dir))) {
		auto_free char *below = NULL;
		struct statx st;
		int child;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    statx(fd, entry->d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			  STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
			continue;
		if (S_ISREG(st.stx_mode) &&
		    is_since(since, st.stx_mask & STATX_BTIME ? st.stx_btime : st.stx_ctime))
			add(c, root_fd, path, entry->d_name, &st);
		if (!S_ISDIR(st.stx_mode) || depth >= MAX_DEPTH ||
		    asprintf(&below, "%s/%s", path, entry->d_name) < 0)
			continue;
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child >= 0)
			collect(c, root_fd, child, below, since, depth + 1);
	}
}

/* The last change first. */
static int compare(const void *a, const void *b)
{
	const struct statx_timestamp *x = &((const struct candidate *)a)->changed,
				     *y = &((const struct candidate *)b)->changed;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec > y->tv_sec ? -1 : 1;
	return x->tv_nsec == y->tv_nsec ? 0 : x->tv_nsec > y->tv_nsec ? -1 : 1;
}

/* True: the file is gone. */
static bool remove_one(const struct candidate *c)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	char *slash = strrchr(c->path, '/');
	auto_fd dir_fd = -1;
	struct stat st;

	*slash = '\0'; /* every path begins with "./" */
	dir_fd = (int)syscall(SYS_openat2, c->root_fd, c->path, &how, sizeof(how));
	return dir_fd >= 0 && fstatat(dir_fd, slash + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == c->ino && S_ISREG(st.st_mode) && unlinkat(dir_fd, slash + 1, 0) == 0;
}

uint64_t disk_remove_excess(const int *root_fds, size_t count, const struct timespec *since,
			    uint64_t excess, size_t *ret_files)
{
	struct candidates c = { 0 };
	uint64_t removed = 0;

	*ret_files = 0;
	for (size_t i = 0; i < count; i++) {
		int fd = openat(root_fds[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			collect(&c, root_fds[i], fd, ".", since, 0);
	}
	if (c.len)
		qsort(c.items, c.len, sizeof(*c.items), compare);
	for (size_t i = 0; i < c.len; i++) {
		if (removed < excess && remove_one(&c.items[i])) {
			removed += c.items[i].bytes;
			++*ret_files;
		}
		free(c.items[i].path);
	}
	free(c.items);
	return removed;
}
