/* The judge of one thing that a sandbox made or changed, wherever it arrives: the sweep of a tree
 * that it could write, the gate of ward cp and ward quarantine restore (which runs that sweep), and
 * the changes of a review. */
#ifndef WARD_GUARD_GUARD_ARRIVAL_H
#define WARD_GUARD_GUARD_ARRIVAL_H

#include "guard/guard_internal.h"

/* A thing and its place. All borrowed. */
struct guard_arrival {
	const struct guard_root *g; /* the tree, with its rules and what was there before */
	int root_fd;                /* of the tree */
	const struct walk_dir *d;   /* the directory that holds the thing now, by its path there */
	const struct walk_entry *entry;
	uint64_t since_ns; /* links and version files that are older are not judged */
	bool leaves;       /* out: a link that leads out of the tree */
};

/* 0: it may stay. 1: it may not, and why is appended. -errno, with *e filled. Directories are
 * judged by their names alone. */
must_check int guard_judge_arrival(struct guard_arrival *a, struct buf *why, struct ward_err *e);
/* The part of it that holds in git's own data, too: whether git would go on with something that was
 * not there before the run. */
must_check int guard_judge_task(const struct guard_root *g, const struct walk_dir *d,
				const struct walk_entry *entry, struct buf *why,
				struct ward_err *e);

#endif
