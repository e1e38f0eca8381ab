/* Shared by the files that show a review. */
#ifndef WARD_CLI_REVIEW_PARTS_H
#define WARD_CLI_REVIEW_PARTS_H

#include "cli/review.h"

#define REVIEW_RENAME_BUDGET (4ull << 30) /* bytes that are read to find renames */

/* One side of a change. */
struct patch_side {
	struct buf bytes;
	uint64_t size;
	int fd; /* of a large one; -1: none; owned */
	bool there, text;
	bool held;       /* bytes has all of it */
	const char *why; /* static text: it cannot be had; NULL: it can */
};

/* Appends the index line and git's binary form of both sides; writes to standard output meanwhile
 * where that is long. */
must_check int review_put_binary(const struct review *r, struct patch_side *a, struct patch_side *b,
				 struct buf *out, struct ward_err *e);
/* Both sides of a change; the new one is the merged one where they merge. The caller clears both,
 * also on failure. -ENOMEM only. */
must_check int review_sides(const struct review *r, const struct changes *all,
			    const struct change *c, struct patch_side *ret_old,
			    struct patch_side *ret_new);
void review_side_clear(struct patch_side *c);
/* Appends one line of a unified text. */
void review_put_line(struct buf *out, char sign, const char *text, size_t n, bool whole,
		     bool terminal, bool colour);
/* Whether git apply takes the change's paths. */
bool review_git_takes(const struct changes *all, const struct change *c);

#endif
