/* The directories that the scan saw, so that the sweep needs to read only those that changed
 * since. */
#ifndef WARD_GUARD_GUARD_DIRS_H
#define WARD_GUARD_GUARD_DIRS_H

#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"

#define GUARD_NO_DIR UINT32_MAX

struct guard_dirs;

/* What the list holds of one directory. */
struct guard_dir {
	uint64_t inode, ctime_ns;
	uint32_t parent;  /* GUARD_NO_DIR: the root */
	uint32_t name_at; /* in the list's names */
	uint32_t path_len;
	uint32_t first_child, next_sibling;
	bool is_data; /* git's data: what is beneath it was not recorded */
};

/* A list for the tree at root_fd; NULL when its file system does not stamp directories reliably, or
 * out of memory. */
struct guard_dirs *guard_dirs_create(int root_fd);
void guard_dirs_free(struct guard_dirs *d);
/* Adds a directory; path is relative to the root, st its state. Returns its number; GUARD_NO_DIR:
 * the list is of no use any more. */
uint32_t guard_dirs_add(struct guard_dirs *d, uint32_t parent, const char *path, size_t path_len,
			size_t name_at, const struct stat *st, bool is_data);
/* Whether the list is complete; directories are there parents before children. */
bool guard_dirs_usable(const struct guard_dirs *d);
size_t guard_dirs_count(const struct guard_dirs *d);
const struct guard_dir *guard_dirs_at(const struct guard_dirs *d, uint32_t i);
const char *guard_dirs_name(const struct guard_dirs *d, uint32_t i);
/* Whether the directory i had a child of that name and inode. */
bool guard_dirs_has_child(const struct guard_dirs *d, uint32_t i, const char *name, uint64_t inode);
uint64_t guard_ctime_ns(const struct stat *st);

#endif
