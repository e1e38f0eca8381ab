/* Follows a path the way the kernel does, and names every place on the way. */
#ifndef WARD_GUARD_GUARD_TRAIL_H
#define WARD_GUARD_GUARD_TRAIL_H

#include <sys/stat.h>

#include "base/buf.h"

enum trail_kind {
	TRAIL_LINK,   /* a symbolic link that is followed */
	TRAIL_BACK,   /* a directory that ".." leaves again */
	TRAIL_END,    /* what the path leads to */
	TRAIL_MISSING /* a name that is not there: the path would go on behind it */
};

struct trail_place {
	enum trail_kind kind;
	const char *path; /* absolute; no part of it but the last can be a link */
	const char *text; /* TRAIL_LINK: its target; TRAIL_MISSING: the rest of the path behind the
			     name, "" if none */
	const struct stat *st; /* TRAIL_END only */
};

/* A directory that has a name of its own for the caller: a process that reaches it by another mount
 * is taken back to that name. */
struct trail_root {
	const char *path;
	dev_t device;
	ino_t inode;
};

/* Gets each place in order; anything but 0 stops. */
typedef int trail_fn(void *ctx, const struct trail_place *place);

/* Follows path from the directory `from` (absolute, without links); root may be NULL. Links without
 * end, and directories that cannot be looked into, end the trail without a TRAIL_END. Returns 0, a
 * negative number that fn stopped with, or -ENOMEM. */
must_check int trail_follow(const char *from, const char *path, const struct trail_root *root,
			    trail_fn *fn, void *ctx);

/* The root of a tree whose path is known. */
struct trail_root trail_root_at(const char *path, int fd);

#endif
