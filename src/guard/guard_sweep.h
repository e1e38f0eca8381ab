/* The sweep, with a quarantine that is made only when something goes there. */
#ifndef WARD_GUARD_GUARD_SWEEP_H
#define WARD_GUARD_GUARD_SWEEP_H

#include "guard/guard.h"

void guard_news_clear(struct guard_news *n);

/* Where the sweep puts things. */
struct guard_sink {
	/* The directory of this root's quarantine; called before each move. Borrowed. */
	int (*open)(void *ctx, struct ward_err *e);
	/* Told before each move: the path of the thing in the tree, its path in the quarantine,
	 * why. */
	int (*note)(void *ctx, const char *path, const char *stored, const char *why,
		    struct ward_err *e);
	/* Whether what would be moved is no work of the run's; NULL: all of it is. */
	bool (*spares)(void *ctx, const char *path, int dir_fd, const char *name);
	void *ctx;
	struct guard_news *news; /* borrowed; NULL: nobody wants to know */
};

must_check int guard_sweep_into(const struct guard_root *g, int root_fd,
				const struct guard_sink *sink, struct strv *moved,
				struct ward_err *e);

/* Puts dir_fd/name into the quarantine, as what lay at path; appends "path: why" to *moved. */
must_check int guard_quarantine_one(const struct guard_sink *sink, int dir_fd, const char *name,
				    const char *path, const char *why, struct strv *moved,
				    struct ward_err *e);

#endif
