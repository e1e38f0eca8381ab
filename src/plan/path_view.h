/* What a plan lets a sandbox do with a path: a pure look at its mounts and guards. */
#ifndef WARD_PLAN_PATH_VIEW_H
#define WARD_PLAN_PATH_VIEW_H

#include "model/plan.h"

struct path_view {
	/* in the order of mounting; borrowed, as the rest */
	const struct plan_mount *mounts;
	size_t mount_count;
	const struct guard_root *roots;
	size_t root_count;
	/* the root is an image: what no mount covers may be there */
	bool image;
	/* there are no mounts (isolation level landlock): no place is private but this one */
	bool unmounted;
	char own_tmp[64];
};

enum path_view_access {
	PATH_VIEW_ABSENT,    /* nothing of that name exists inside */
	PATH_VIEW_HIDDEN,    /* an empty file of no rights stands there */
	PATH_VIEW_READ,      /* it may be read */
	PATH_VIEW_PROTECTED, /* the same, in a tree that may be written */
	PATH_VIEW_PRIVATE, /* a private place, empty at first: what the sandbox itself put there */
	PATH_VIEW_WRITE
};

struct path_view path_view_of(const struct plan *p);
/* Whether path (absolute, cleaned, as the sandbox has it) is there if the host has it, and what may
 * be done with it. *ret_noexec (NULL: not wanted): nothing there can be executed. Links that the
 * plan itself makes are followed; others are the file system's business. Pure. */
enum path_view_access path_view_find(const struct path_view *w, const char *path, bool *ret_noexec);
/* Whether the host's file of that path is not what the sandbox has there: nothing is, or a private
 * place with whatever the sandbox itself put there. Pure. */
static inline bool path_view_is_elsewhere(const struct path_view *w, const char *path)
{
	enum path_view_access a = path_view_find(w, path, NULL);

	return a == PATH_VIEW_ABSENT || a == PATH_VIEW_PRIVATE;
}

/* The mount that has the path, and in *ret_at the path when links of the plan's own were followed,
 * which the caller frees. NULL: none. */
const struct plan_mount *path_view_mount(const struct path_view *w, const char *path,
					 char **ret_at);
/* "it does not exist inside" and the like. Static text. */
const char *path_view_access_text(enum path_view_access a);

#endif
