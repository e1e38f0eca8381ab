/* Both sides' edits of one text put together: a pure function over bytes. */
#ifndef WARD_BASE_MERGE_H
#define WARD_BASE_MERGE_H

#include "base/buf.h"
#include "base/own.h"

struct merge_text {
	const char *text;
	size_t len;
	const char *label; /* of a marker */
};

/* Appends to out what base became on both sides. Where both changed the same lines, or lines that
 * touch, in different ways, both versions stand there between markers. *ret_conflicts is how often.
 * 0 or -ENOMEM. */
must_check int merge_texts(const struct merge_text *base, const struct merge_text *ours,
			   const struct merge_text *theirs, struct buf *out, size_t *ret_conflicts);

#endif
