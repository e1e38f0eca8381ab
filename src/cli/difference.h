/* A change of a text as people read it. */
#ifndef WARD_CLI_DIFFERENCE_H
#define WARD_CLI_DIFFERENCE_H

#include "base/buf.h"

/* Appends the difference of two texts as a unified diff, with everything escaped that a terminal
 * would take for more than text. */
must_check int difference_put(const char *old_name, const struct buf *old, const char *new_name,
			      const struct buf *new, struct buf *out);

#endif
