/* Directories of a review that are shown as one line. */
#ifndef WARD_CLI_REVIEW_FOLD_H
#define WARD_CLI_REVIEW_FOLD_H

#include "cli/review_parts.h"

enum fold_why { FOLD_GIT, FOLD_IGNORED, FOLD_IGNORED_NEW };

/* A directory and how much changed in it. */
struct fold {
	char *path; /* owned */
	enum fold_why why;
	size_t added, changed, deleted;
};

struct folds {
	struct fold *items; /* in the order of the changes */
	size_t len, cap;
	uint32_t *of; /* of each change: the fold it is in, FOLD_NONE: none */
};
#define FOLD_NONE UINT32_MAX

/* Finds the directories that git's data or ignored files are in. What a person must see (protected,
 * refused, in conflict, of effect on tools) is never folded, nor what lies at or beneath a path
 * that was asked for. */
must_check int folds_find(const struct review *r, const struct review_asked *asked,
			  const struct changes *all, struct folds *ret, struct ward_err *e);
void folds_clear(struct folds *f);
/* "A  node_modules/  (2314 files, ignored by git)" */
void folds_put(const struct fold *f, bool colour, struct buf *out);
const char *folds_why(const struct fold *f);

#endif
