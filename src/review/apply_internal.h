/* Shared by the files that apply a review. */
#ifndef WARD_REVIEW_APPLY_INTERNAL_H
#define WARD_REVIEW_APPLY_INTERNAL_H

#include "review/apply.h"

#define APPLY_TEMP ".ward-apply-" /* and the token: the one name that an apply uses for a moment */
#define APPLY_NEW "new-"          /* in front of the id: a log that is not complete yet */
#define APPLY_NAME_MAX (sizeof(APPLY_TEMP) + APPLY_TOKEN_MAX)

/* One apply at work. */
struct applying {
	struct review *review;
	const struct apply_request *request;
	struct apply_report *report;
	struct ward_err *e;
	int log_fd;     /* the intent log, owned; -1: a dry run */
	int applied_fd; /* the review's list of what was applied, owned; -1: a dry run */
	char token[APPLY_TOKEN_MAX];
};

/* The intent log: begun before the first change, a line before each, gone at the end. */
must_check int apply_log_begin(struct applying *a);
must_check int apply_log_at(struct applying *a, const char *path);
void apply_log_end(struct applying *a);
/* Opens the directory of the logs; -ENOENT: there is none. */
must_check int apply_open_logs(bool make, struct ward_err *e);

/* Puts one new or changed thing into the workspace. 0; 1: the workspace is not as it was when it
 * was looked at; -errno with *e. */
must_check int apply_put(struct applying *a, const struct change *c, enum apply_outcome how);
/* The pick of a path, NULL: it was not picked. */
const struct apply_pick *apply_find_pick(const struct apply_request *q, const char *path);
/* Removes one thing from the workspace; the same answers. */
must_check int apply_delete(struct applying *a, const struct change *c);
/* Gives a directory the mode that it has in the review; the same answers. */
must_check int apply_dir_mode(struct applying *a, const struct change *c);
/* Takes a change that is in the workspace now out of the review, as far as it can be. */
void apply_drop(const struct review *r, const struct change *c);

#endif
