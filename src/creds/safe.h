/* Memory for secrets: locked, never in a core dump, empty in a child, zeroed when given back. One
 * area a process. */
#ifndef WARD_CREDS_SAFE_H
#define WARD_CREDS_SAFE_H

#include "base/err.h"

struct safe {
	unsigned char *area; /* NULL: none */
	size_t bytes;
	/* a byte a granule: 0 free, 1 goes on, 2 the last of an allocation */
	unsigned char *used;
	size_t granules;
};

/* Takes as much locked memory as there is, from at_most downwards; less than 64 KiB is an error. */
must_check int safe_open(struct safe *s, size_t at_most, struct ward_err *e);
void safe_close(struct safe *s);
/* NULL: there is no room. Zeroed. */
must_check void *safe_take(struct safe *s, size_t n);
/* Gives back what lies behind the first n bytes of a piece, and was never written. */
void safe_shrink(struct safe *s, void *p, size_t n);
/* Zeroes it and gives it back. NULL is fine. */
void safe_give(struct safe *s, void *p);

#endif
