/*
 * Directories as the scan saw them. In: each directory's inode and change time. Out: the same for
 * the sweep, which passes over what did not change. In the supervisor's memory only: a process that
 * finishes a killed run reads everything.
 *
 * Making, removing or renaming a name in a directory sets the directory's change time, and no call
 * sets it back. That is true of the file systems in the list below; on others, and where a tree
 * spans several, everything is read.
 */
#include "guard/guard_dirs.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#define DIRS_MAX (1u << 28)
#define NAME_TABLE_MAX (1u << 31)
#define PATH_LEN_MAX 4000 /* the sweep looks at them by path */

struct guard_dirs {
	struct guard_dir *items;
	uint32_t len, cap;
	struct buf names;
	dev_t device;
	bool broken;
};

static bool is_reliable(int root_fd)
{
	static const unsigned long types[] = { EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC,
					       BTRFS_SUPER_MAGIC,    TMPFS_MAGIC,
					       F2FS_SUPER_MAGIC,     OVERLAYFS_SUPER_MAGIC,
					       0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */ };
	struct statfs st;

	if (fstatfs(root_fd, &st) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((unsigned long)st.f_type == types[i])
			return true;
	return false;
}

struct guard_dirs *guard_dirs_create(int root_fd)
{
	struct guard_dirs *d;
	struct stat st;

	if (!is_reliable(root_fd) || fstat(root_fd, &st) < 0)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (d)
		d->device = st.st_dev;
	return d;
}

void guard_dirs_free(struct guard_dirs *d)
{
	if (!d)
		return;
	free(d->items);
	buf_free(&d->names);
	free(d);
}

uint64_t guard_ctime_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

static bool grow(struct guard_dirs *d)
{
	uint32_t cap = d->cap ? d->cap * 2 : 256;
	struct guard_dir *grown;

	if (d->len < d->cap)
		return true;
	grown = cap > DIRS_MAX ? NULL : reallocarray(d->items, cap, sizeof(*grown));
	if (!grown)
		return false;
	d->items = grown;
	d->cap = cap;
	return true;
}

uint32_t guard_dirs_add(struct guard_dirs *d, uint32_t parent, const char *path, size_t path_len,
			size_t name_at, const struct stat *st, bool is_data)
{
	struct guard_dir dir = { .inode = st->st_ino,
				 .ctime_ns = guard_ctime_ns(st),
				 .parent = parent,
				 .first_child = GUARD_NO_DIR,
				 .next_sibling = GUARD_NO_DIR,
				 .is_data = is_data };

	if (d->broken || st->st_dev != d->device || path_len > PATH_LEN_MAX ||
	    d->names.len > NAME_TABLE_MAX || !grow(d)) {
		d->broken = true;
		return GUARD_NO_DIR;
	}
	dir.name_at = (uint32_t)d->names.len;
	dir.path_len = (uint32_t)path_len;
	buf_add(&d->names, path + name_at, path_len - name_at + 1);
	d->broken = d->names.failed;
	if (parent != GUARD_NO_DIR) {
		dir.next_sibling = d->items[parent].first_child;
		d->items[parent].first_child = d->len;
	}
	d->items[d->len] = dir;
	return d->len++;
}

bool guard_dirs_usable(const struct guard_dirs *d)
{
	return d && !d->broken && d->len;
}

size_t guard_dirs_count(const struct guard_dirs *d)
{
	return d->len;
}

const struct guard_dir *guard_dirs_at(const struct guard_dirs *d, uint32_t i)
{
	return &d->items[i];
}

const char *guard_dirs_name(const struct guard_dirs *d, uint32_t i)
{
	return d->names.data + d->items[i].name_at;
}

bool guard_dirs_has_child(const struct guard_dirs *d, uint32_t i, const char *name, uint64_t inode)
{
	for (uint32_t c = d->items[i].first_child; c != GUARD_NO_DIR; c = d->items[c].next_sibling)
		if (d->items[c].inode == inode && strcmp(guard_dirs_name(d, c), name) == 0)
			return true;
	return false;
}
