/* What a protected name leads to, inside the tree: guarded together with every link and directory
 * on the way. */
#ifndef WARD_GUARD_GUARD_FOLLOW_H
#define WARD_GUARD_GUARD_FOLLOW_H

#include "guard/guard_internal.h"
#include "guard/guard_trail.h"

enum follow_how {
	FOLLOW_PROTECT, /* what the path ends at becomes read-only, and its ways immovable */
	FOLLOW_PIN,     /* it becomes immovable: a git directory, in which git writes */
	FOLLOW_NAMED /* read-only, but the directories that links on the way lie in may be moved: a
			word of a command line */
};

struct follow {
	struct guard_root *g;
	int root_fd;
	struct trail_root root;
	struct guard_hardlinks *twins;
	struct ward_err *e;
	struct strv queue;   /* links that are still to be followed, relative */
	struct strv dirs;    /* directories that became read-only, to be looked through for links,
			     relative */
	struct strv callers; /* files that may name others to run, relative */
	struct strv seen;    /* places that were guarded already, relative */
	size_t queue_done, dirs_done; /* how many of them were looked at */
	enum follow_how how;          /* of the path that is being followed */
	const char *origin;           /* where it was read, for notes */
	char *above; /* the top of a worktree that the tree is a part of; NULL: none; owned */
	bool found;  /* something of the tree was guarded */
};

/* Begins; g and the rest are borrowed. */
struct follow follow_begin(struct guard_root *g, int root_fd, struct guard_hardlinks *twins,
			   struct ward_err *e);
/* Queues the link at the relative path. */
must_check int follow_link(struct follow *f, const char *path);
/* Notes a protected file that may name others to run (guard_calls.c). */
must_check int follow_caller(struct follow *f, const char *path);
/* Guards what path leads to from the directory `from` (absolute, without links). origin says where
 * it was read. */
must_check int follow_path(struct follow *f, const char *from, const char *path,
			   enum follow_how how, const char *origin);
/* Follows all that is queued, and the links in directories that became read-only by it. */
must_check int follow_all(struct follow *f);
void follow_end(struct follow *f);

/* The same for a place of another tree's links, once all trees are known (guard_root.beyond). */
must_check int guard_add_beyond(struct guard_root *g, const struct guard_root *other,
				struct ward_err *e);

#endif
