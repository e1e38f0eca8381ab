/* The end of a stream of bytes. */
#ifndef WARD_RUN_TAIL_H
#define WARD_RUN_TAIL_H

#include <stddef.h>

#include "base/buf.h"

#define TAIL_BYTES 8192

/* Zeroed: empty. */
struct tail {
	struct buf kept; /* at most twice TAIL_BYTES */
};

/* Keeps the last bytes of what was added, TAIL_BYTES at least. Without memory it keeps less. */
void tail_add(struct tail *t, const void *data, size_t n);
/* Whether its last line has no end. */
bool tail_is_open(const struct tail *t);
void tail_free(struct tail *t);

#endif
