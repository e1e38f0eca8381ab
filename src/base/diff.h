/* The difference of two texts, line by line: pure functions over bytes. */
#ifndef WARD_BASE_DIFF_H
#define WARD_BASE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define DIFF_CONTEXT 3
#define DIFF_BYTES_MAX (8u << 20) /* of one side that is still compared by lines */

/* The callbacks. Each returns a negative number to stop. */
struct diff_ops {
	/* A hunk begins: first line (from 1, or the line before if there is none) and number of
	 * lines on each side. */
	int (*hunk)(void *ctx, size_t old_line, size_t old_count, size_t new_line,
		    size_t new_count);
	/* A line of it: ' ', '-' or '+'; without its newline; whole is false when the text ends
	 * without one. */
	int (*line)(void *ctx, char sign, const char *text, size_t n, bool whole);
};

struct diff_counts {
	size_t added, removed; /* lines */
};

/* Whether the bytes look like text: no zero byte. */
bool diff_is_text(const char *bytes, size_t n);
/* Tells the hunks of the difference between two texts (ops NULL: only counts). 0, -ENOMEM, or what
 * a callback returned. The time is bounded: where the texts have too little in common, the rest is
 * reported as replaced. */
must_check int diff_texts(const char *old_text, size_t old_len, const char *new_text,
			  size_t new_len, const struct diff_ops *ops, void *ctx,
			  struct diff_counts *ret_counts);

/* One place where two texts differ: lines [old_from, old_to) became [new_from, new_to); one of both
 * may be empty. */
struct diff_region {
	size_t old_from, old_to, new_from, new_to;
};

/* All of them in order, and where each line begins: starts[count] is the length of the text. */
struct diff_regions {
	struct diff_region *items;
	size_t len;
	size_t *old_starts, *new_starts;
	size_t old_count, new_count;
};

/* Finds the places. 0 or -ENOMEM. The caller frees with diff_regions_clear(). */
must_check int diff_find_regions(const char *old_text, size_t old_len, const char *new_text,
				 size_t new_len, struct diff_regions *ret);
void diff_regions_clear(struct diff_regions *r);

#endif
