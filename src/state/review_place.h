/* Where reviews lie, and whether a run has one. */
#ifndef WARD_STATE_REVIEW_PLACE_H
#define WARD_STATE_REVIEW_PLACE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/own.h"

#define REVIEW_DIR "review"

/* Where reviews may lie: the state directory, or memory where the kernel takes no changes there. */
enum review_place { REVIEW_IN_STATE, REVIEW_IN_MEMORY, REVIEW_PLACES };

/* Opens the directory of reviews of a place, making it where it is missing if make is set. -ENOENT:
 * there is none. Its path goes to *ret_path (the caller frees) unless that is NULL. */
must_check int review_open_place(enum review_place place, bool make, char **ret_path,
				 struct ward_err *e);
/* The sort of word that names a run. A pure function. */
bool review_is_id(const char *word);
/* Whether there is a review of that id, or may be one. */
bool review_exists(const char *id);

#endif
