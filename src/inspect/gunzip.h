/* A compressed body of a request, inflated to be looked into before it is sent: one gzip stream and
 * nothing behind it, bounded. Pure, fuzzed (fuzz/git_push.c). */
#ifndef WARD_INSPECT_GUNZIP_H
#define WARD_INSPECT_GUNZIP_H

#include "base/buf.h"

struct gunzip;

must_check struct gunzip *gunzip_new(void);
void gunzip_free(struct gunzip *g);
/* Inflates n bytes more and appends what comes out, up to `most` bytes in out. False: it is not
 * such a stream, or there is more. */
must_check bool gunzip_take(struct gunzip *g, const uint8_t *bytes, size_t n, size_t most,
			    struct buf *out);
/* Whether the stream is whole. */
bool gunzip_is_done(const struct gunzip *g);

#endif
