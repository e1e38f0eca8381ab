/* A walk over a directory tree by descriptors: never through a link, any depth, few descriptors,
 * one call per directory. */
#ifndef WARD_BASE_WALK_H
#define WARD_BASE_WALK_H

#include <stdint.h>

#include "base/buf.h"

/* A directory that is being read. */
struct walk_dir {
	int fd; /* readable; borrowed, valid during the call only */
	/* relative to the top, "" for the top itself; in entry and enter it goes on behind
	 * path_len */
	const char *path;
	size_t path_len;
	unsigned mark; /* the caller's own; what walk_ops.enter set */
};

struct walk_entry {
	const char *name;
	const char *path; /* relative to the top */
	size_t path_len;
	size_t name_at; /* where the name begins in path */
	uint64_t inode;
	unsigned char type; /* DT_*, never DT_UNKNOWN */
};

/* What the caller does on the way. Each returns a negative number to stop the walk (with its *e
 * filled). Any may be NULL. */
struct walk_ops {
	/* The directory d was opened, nothing of it was read yet. d->mark may be changed. */
	int (*opened)(void *ctx, struct walk_dir *d);
	/* A name that the caller wants to know of before any other of its directory: peek is called
	 * before their entries. */
	const char *peek_name;
	int (*peek)(void *ctx, const struct walk_dir *d);
	/* One entry of d, in the file system's order. Positive: descend into it later if it is a
	 * directory. */
	int (*entry)(void *ctx, struct walk_dir *d, const struct walk_entry *entry);
	/* All entries of d were seen, none of its directories was entered yet. d->mark may be
	 * changed. */
	int (*listed)(void *ctx, struct walk_dir *d);
	/* Before the directory `name` of d is opened. Positive: open it, with *mark (d's at first)
	 * as its mark. */
	int (*enter)(void *ctx, const struct walk_dir *d, const struct walk_entry *entry,
		     unsigned *mark);
	/* The directory `name` of d is done with. */
	int (*leave)(void *ctx, const struct walk_dir *d, const char *name);
	/* The directory `name` of d may not be opened; the walk goes on without it. */
	int (*unreadable)(void *ctx, const struct walk_dir *d, const struct walk_entry *entry);
	/* Give its owner the right to look into a directory that lacks it, and take the right away
	 * again afterwards. */
	bool force;
};

/* Walks what lies beneath root_fd, parents before children. Returns 0 or -errno with *e. */
must_check int walk_tree(int root_fd, const struct walk_ops *ops, void *ctx, unsigned mark,
			 struct ward_err *e);
/* The same; paths begin with prefix (no slash at its end), as if the walk had come from further
 * up. */
must_check int walk_tree_at(int root_fd, const char *prefix, const struct walk_ops *ops, void *ctx,
			    unsigned mark, struct ward_err *e);

/* Opens the directory dir_fd/name for reading although its mode forbids that, for its owner:
 * changes the mode, and sets *ret_mode to the former one. Returns the descriptor or -errno. */
must_check int walk_force_open(int dir_fd, const char *name, unsigned *ret_mode);

#endif
