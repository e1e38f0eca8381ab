/* Which deleted files are added ones under another name: pure, over sizes, hashes and names. */
#ifndef WARD_BASE_RENAME_H
#define WARD_BASE_RENAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RENAME_NONE SIZE_MAX

struct rename_file {
	uint64_t size, hash;
	const char *name; /* the last component of its path; borrowed */
	size_t index;     /* the caller's own */
	bool deleted;     /* else added */
	size_t twin;      /* out: index (the caller's) of the other end, or RENAME_NONE */
};

/* Keeps the files whose size a file of the other sort has too, in the order of sizes; returns how
 * many. */
size_t rename_narrow(struct rename_file *files, size_t n);
/* Pairs files of the same size and hash, those of the same name first. Sorts the files. Each is in
 * one pair at most. */
void rename_pair(struct rename_file *files, size_t n);

#endif
