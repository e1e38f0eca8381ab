/* A review as one page for a browser. */
#ifndef WARD_CLI_REVIEW_WEB_H
#define WARD_CLI_REVIEW_WEB_H

#include "cli/review_fold.h"

/* Writes the page where the options say, prints its path, and opens it where there is a desktop.
 * Returns the exit code. */
int review_web(const struct options *o, const struct review *r, const struct review_asked *asked,
	       const struct changes *all, const struct folds *folds, struct ward_err *e);

/* Appends bytes as text of a page: nothing in them is markup, acts or hides; tabs stay. A pure
 * function. */
void web_put_text(struct buf *out, const char *text, size_t n);
/* Appends the beginning and the end of the page. */
void web_put_head(struct buf *out, const char *title);
void web_put_tail(struct buf *out);
/* Appends the difference of two texts side by side; at most so many rows. Returns 0 or -ENOMEM;
 * *ret_cut says that there are more. */
must_check int web_put_sides(struct buf *out, const struct buf *old_text,
			     const struct buf *new_text, size_t most_rows, bool *ret_cut);

#endif
