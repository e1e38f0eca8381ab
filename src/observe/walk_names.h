/* A name, step by step from a root: where it leads, or the first name on the way that is not
 * there. */
#ifndef WARD_OBSERVE_WALK_NAMES_H
#define WARD_OBSERVE_WALK_NAMES_H

#include <limits.h>
#include <stdbool.h>

enum walk_end {
	WALK_THERE,  /* it exists */
	WALK_ABSENT, /* it does not; ret says by which name */
	/* not looked at: the kernel's own file systems, automounts, loops, what is too long or not
	 * permitted */
	WALK_REFUSED,
};

/*
 * Walks the absolute path from root_fd (borrowed), following links in the middle, and the last one
 * if follow is set. ret[PATH_MAX]: the name without the links that were followed, complete also
 * when a part of it is absent. Nothing is opened but for its place (O_PATH), no automount is
 * started.
 */
enum walk_end walk_names(int root_fd, const char *path, bool follow, char *ret);

#endif
