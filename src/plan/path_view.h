/* What a plan lets a sandbox do with a path: a pure look at its mounts and guards. */
#ifndef WARD_PLAN_PATH_VIEW_H
#define WARD_PLAN_PATH_VIEW_H

#include "model/plan.h"

struct view {
	/* in the order of mounting; borrowed, as the rest */
	const struct plan_mount *mounts;
	size_t mount_count;
	const struct guard_root *roots;
	size_t root_count;
	/* the root is an image: what no mount covers may be there */
	bool image;
};

enum view_access {
	VIEW_ABSENT,    /* nothing of that name exists inside */
	VIEW_HIDDEN,    /* an empty file of no rights stands there */
	VIEW_READ,      /* it may be read */
	VIEW_PROTECTED, /* the same, in a tree that may be written */
	VIEW_PRIVATE,   /* a private place, empty at first: what the sandbox itself put there */
	VIEW_WRITE
};

struct view view_of(const struct plan *p);
/* Whether path (absolute, cleaned, as the sandbox has it) is there if the host has it, and what may
 * be done with it. *ret_noexec (NULL: nobody asks): nothing there can be executed. Links that the
 * plan itself makes are followed; others are the file system's business. Pure. */
enum view_access view_find(const struct view *w, const char *path, bool *ret_noexec);
/* "it does not exist inside" and the like. Static text. */
const char *view_access_text(enum view_access a);

#endif
