/* The gate: what a sandbox made and what is about to arrive at a place on the host is judged here
 * with the tables and readers of the sweep, by the name that it gets there. */
#ifndef WARD_GUARD_GUARD_GATE_H
#define WARD_GUARD_GUARD_GATE_H

#include "guard/guard_internal.h"

/* What the policy of the sandbox adds. Borrowed. */
struct gate_policy {
	/* its own protected names; a "/" in front counts from a tree's top */
	const struct strv *protect;
	const struct strv *trees; /* directories of the host that the sandbox can write */
};

/* A directory of the host into which things come. */
struct sniff {
	struct guard_root tree; /* the directory itself, with the protected names as rules */
	/* the trees of the policy and the git work tree that it lies in, or the directory that is
	 * copied over: what protected names and git's configuration there lead to; owned */
	struct guard_root *around;
	size_t around_count;
	struct buf closed; /* why nothing may come here at all; empty: something may */
	int dir_fd;        /* of the tree; borrowed */
};

/* Looks at the directory dir_fd, into which something called name comes. policy may be NULL.
 * gate_close() in any case. */
must_check int gate_open(struct sniff *g, int dir_fd, const char *name,
			 const struct gate_policy *policy, struct ward_err *e);
void gate_close(struct sniff *g);

/* Why a thing of that type (DT_*) may not get the name path, relative to the directory; NULL: it
 * may. The text lives as long as the gate. */
const char *gate_refuses(const struct sniff *g, const char *path, unsigned char type);
/* Why the names of the directory from_fd may not join those of the host's directory to_fd, whose
 * path is relative to the gate's; NULL: they may. They may not where that is a git directory, or
 * would become one while it has a configuration or hooks that nothing has judged. */
const char *gate_refuses_union(const char *path, int to_fd, int from_fd);
/* Takes out of the tree at from_fd, which is about to become the gate's directory's, all that a
 * sweep takes out of a workspace; it is moved to refused_fd. Repositories are judged file by file.
 * Appends "PATH: why" to *refused. */
must_check int gate_judge_tree(const struct sniff *g, int from_fd, int refused_fd,
			       struct strv *refused, struct ward_err *e);

#endif
