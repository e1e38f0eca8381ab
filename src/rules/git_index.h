/* The index (DIRC, versions 2 to 4). Pure functions. */
#ifndef WARD_RULES_GIT_INDEX_H
#define WARD_RULES_GIT_INDEX_H

#include "base/buf.h"
#include "rules/git_name.h"

#define GIT_MODE_FILE 0100644u
#define GIT_MODE_PROGRAM 0100755u
#define GIT_MODE_LINK 0120000u
#define GIT_MODE_GITLINK 0160000u
#define GIT_MODE_TREE 0040000u /* a directory that a sparse index does not list */

/* One entry, valid during the call. */
struct git_index_entry {
	uint32_t mode;     /* one of the above */
	const uint8_t *id; /* as many bytes as the repository's ids have */
	unsigned stage;    /* 0, or 1 to 3 in a conflict */
	bool assume_unchanged, skip_worktree, intent_to_add;
	const char *path; /* NUL-terminated; "" where a split index replaces an entry of its shared
			     one */
	size_t path_n;
	/* of the file when the entry was made, the low 32 bits of each */
	uint32_t ctime_s, ctime_ns, mtime_s, mtime_ns, size;
	const uint8_t *bytes; /* the entry as it stands, n bytes with what fills it up */
	size_t n;
};

/* What an index says beside its entries. */
struct git_index_info {
	unsigned version;
	uint32_t entries;
	bool sparse; /* it has the extension sdir */
	bool split;  /* it has the extension link: sharedindex.BASE is a part of it and is judged
		       alike */
	uint8_t base[GIT_HASH_MAX]; /* all zero: there is none */
	uint32_t hidden; /* entries with assume-unchanged or skip-worktree: changes of those files
			    do not show */
	uint32_t gitlinks;
};

/* Gets each entry in order; anything but 0 stops the reading. */
typedef int git_index_fn(void *ctx, const struct git_index_entry *entry);

/* Reads an index. The trailer must be the right hash (git ignores a wrong one), every path one that
 * git may write (git_path_refused), the order strict, no entry lie below another one, and every
 * extension known and whole. fn may be NULL; it may have got entries of an index that is refused
 * later. Returns 0, what fn stopped with, or -EINVAL with static text in *ret_why. */
int git_index_read(const uint8_t *bytes, size_t n, unsigned hash, git_index_fn *fn, void *ctx,
		   struct git_index_info *ret, const char **ret_why);

/* Writes the index anew, with skip-worktree on each entry for which `which` returns 1 (not on
 * directories of a sparse index, which have it). Returns how many there are (0: *out has nothing),
 * -EINVAL with static text in *ret_why (a split index is refused, too), -ENOMEM, or what `which`
 * failed with. */
int git_index_skip(const uint8_t *bytes, size_t n, unsigned hash, git_index_fn *which, void *ctx,
		   struct buf *out, const char **ret_why);

#endif
