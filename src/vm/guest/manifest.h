/* What is remembered of a tree that was put into the guest, so that what differs later is all that
 * goes back. */
#ifndef WARD_VM_GUEST_MANIFEST_H
#define WARD_VM_GUEST_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

struct manifest_entry {
	uint32_t name_len;
	/* with the type; 0: here begins another tree, its path is the name */
	uint32_t mode;
	uint64_t inode, size;
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
};

struct manifest_item {
	struct manifest_entry entry;
	const char *name; /* not ended by NUL */
	bool seen;
};

struct manifest {
	char *bytes;
	struct manifest_item *items; /* sorted by name */
	size_t count;
};

/* What follows is of the tree at this path. */
bool manifest_begin(FILE *out, const char *path);
/* Appends what stat says of a name. */
bool manifest_add(FILE *out, const char *name, const struct stat *st);
/* Reads all of the tree at that path; false: out of memory, or it is damaged. Never freed: the
 * process ends. */
bool manifest_load(int fd, const char *path, struct manifest *m);
/* The item of that name, or NULL. */
struct manifest_item *manifest_find(const struct manifest *m, const char *name, size_t n);
/* Whether it is still what it was. */
bool manifest_same(const struct manifest_item *item, const struct stat *st);

#endif
