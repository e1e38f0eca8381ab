/*
 * Finding the kept /etc. In: the state directory, the host's /etc. Out: a directory that holds what
 * every sandbox sees of /etc, if nothing that it was made of has changed since: each file and
 * directory has the same number, size, times and mode as it had then. Runs in the supervisor with
 * the user's rights, on the start path; changes nothing. etc_make.c makes it, the child mounts it,
 * read-only.
 *
 * A process that uses it holds a lock on its list, which is removed before the rest and only by a
 * process that has the whole lock: with the lock on a list that still has a name the directory
 * stays as it is. No sandbox can write to the state directory (store_record.c refuses that).
 */
#include "plan/etc_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "root-table.h"
#include "state/store.h"

static uint64_t moment(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

void etc_check_fill(struct etc_check *c, const struct stat *st)
{
	c->dev = st->st_dev;
	c->ino = st->st_ino;
	c->mode = st->st_mode;
	c->size = (uint64_t)st->st_size;
	c->mtime = moment(&st->st_mtim);
	c->ctime = moment(&st->st_ctim);
}

/* Whether no part of a relative path leads back, or nowhere. */
static bool leads_down(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static bool are_paths_fit(const char *list, const struct etc_check *checks, size_t check_count,
			  const struct etc_entry *entries, size_t entry_count)
{
	for (size_t i = 0; i < check_count; i++)
		if (strcmp(list + checks[i].path, ".") != 0 && !leads_down(list + checks[i].path))
			return false;
	for (size_t i = 0; i < entry_count; i++)
		if (strncmp(list + entries[i].target, "/etc/", 5) != 0 ||
		    !leads_down(list + entries[i].target + 5))
			return false;
	return true;
}

bool etc_list_check(const void *bytes, size_t n, const struct etc_head **ret_head)
{
	const struct etc_head *head = bytes;
	const struct etc_check *checks = (const void *)(head + 1);
	const struct etc_entry *entries;
	uint64_t size;

	if (n <= sizeof(*head) || ((const char *)bytes)[n - 1] != '\0' ||
	    strncmp(head->magic, ETC_CACHE_MAGIC, sizeof(head->magic)) != 0 ||
	    strncmp(head->table, ROOT_TABLE, sizeof(head->table)) != 0)
		return false;
	if (!head->id[0] || head->id[sizeof(head->id) - 1] || strchr(head->id, '/') ||
	    head->id[0] == '.' || head->boot[sizeof(head->boot) - 1])
		return false;
	size = sizeof(*head) + (uint64_t)head->check_count * sizeof(*checks) +
	       (uint64_t)head->entry_count * sizeof(*entries);
	if (size > n)
		return false;
	entries = (const void *)(checks + head->check_count);
	for (size_t i = 0; i < head->check_count; i++)
		if (checks[i].path < size || checks[i].path >= n)
			return false;
	for (size_t i = 0; i < head->entry_count; i++)
		if (entries[i].target < size || entries[i].target >= n || entries[i].link >= n ||
		    (entries[i].link && entries[i].link < size))
			return false;
	*ret_head = head;
	return are_paths_fit(bytes, checks, head->check_count, entries, head->entry_count);
}

static bool is_this_boot(const char *boot)
{
	return boot[0] && strcmp(boot, io_boot_id()) == 0;
}

/* Whether everything is as it was. */
static bool is_unchanged(const char *list, const struct etc_head *head)
{
	const struct etc_check *checks = (const void *)(head + 1);
	auto_fd etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < head->check_count && etc >= 0; i++) {
		struct etc_check now = { .path = checks[i].path };
		struct stat st;

		if (fstatat(etc, list + checks[i].path, &st, 0) < 0)
			return false;
		etc_check_fill(&now, &st);
		if (memcmp(&now, &checks[i], sizeof(now)) != 0)
			return false;
	}
	return etc >= 0;
}

/* The directory of the newest one, which no other process can change. */
static int open_newest(const char *state)
{
	char path[4096];
	auto_fd fd = -1;
	struct stat st;

	if (strlen(state) + sizeof("/" ETC_CACHE_DIR "/" ETC_CACHE_NOW) > sizeof(path))
		return -1;
	stpcpy(stpcpy(path, state), "/" ETC_CACHE_DIR "/" ETC_CACHE_NOW);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return -1;
	return take_fd(&fd);
}

/* The list, held; the caller frees it. NULL: there is none, or it is being removed. */
static char *read_list(int dir_fd, int *ret_lock, size_t *ret_n)
{
	auto_fd fd = openat(dir_fd, ETC_CACHE_LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_free char *list = NULL;
	struct stat st;

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size > ETC_CACHE_LIST_MAX)
		return NULL;
	list = malloc((size_t)st.st_size + 1);
	if (!list || read(fd, list, (size_t)st.st_size) != st.st_size)
		return NULL;
	*ret_n = (size_t)st.st_size;
	*ret_lock = take_fd(&fd);
	return take_ptr(list);
}

int etc_cache_open_tree(const struct etc_cache *k)
{
	return (int)syscall(SYS_open_tree, k->dir_fd, ETC_CACHE_ROOT,
			    AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* Where a sandbox finds it. */
static bool take_place(const char *state, const char *id, bool as_root, struct etc_cache *k)
{
	if (asprintf(&k->path, "%s/" ETC_CACHE_DIR "/%s/" ETC_CACHE_ROOT, state, id) < 0) {
		k->path = NULL;
		return false;
	}
	if (!as_root)
		return true;
	k->tree_fd = etc_cache_open_tree(k);
	k->refused = k->tree_fd < 0 && errno == EPERM;
	return k->tree_fd >= 0;
}

bool etc_cache_find(bool as_root, struct etc_cache *ret_kept)
{
	struct etc_cache k = ETC_CACHE_NONE;
	const struct etc_head *head = NULL;
	auto_free char *state = NULL;
	struct ward_err ignored = { 0 };
	size_t n;

	*ret_kept = k;
	if (state_dir_path(&state, &ignored) < 0)
		return false;
	k.dir_fd = open_newest(state);
	k.list = k.dir_fd < 0 ? NULL : read_list(k.dir_fd, &k.lock_fd, &n);
	if (!k.list || !etc_list_check(k.list, n, &head) || !is_this_boot(head->boot) ||
	    !is_unchanged(k.list, head) || !take_place(state, head->id, as_root, &k)) {
		ret_kept->refused = k.refused;
		etc_cache_release(&k);
		return false;
	}
	k.entries = (const void *)((const struct etc_check *)(head + 1) + head->check_count);
	k.entry_count = head->entry_count;
	*ret_kept = k;
	return true;
}

void etc_cache_release(struct etc_cache *k)
{
	free(k->list);
	free(k->path);
	if (k->lock_fd >= 0)
		close(k->lock_fd);
	if (k->dir_fd >= 0)
		close(k->dir_fd);
	if (k->tree_fd >= 0)
		close(k->tree_fd);
	*k = (struct etc_cache)ETC_CACHE_NONE;
}
