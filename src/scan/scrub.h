/*
 * Looking for secrets in bytes that are passed on: requests that leave, standard output. What comes
 * out is as long as what went in; with redact the secrets in it are overwritten. What could be the
 * beginning of a secret is held back until it is known, at most some kilobytes.
 */
#ifndef WARD_SCAN_SCRUB_H
#define WARD_SCAN_SCRUB_H

#include "base/buf.h"
#include "scan/detect.h"

struct scrub;

struct scrub_hit {
	size_t rule;
	uint64_t offset; /* of the secret in the stream */
	size_t bytes;
};

typedef void scrub_found(void *ctx, const struct scrub_hit *hit);

/* rules are borrowed. found may be NULL. */
must_check int scrub_new(const struct detect_rules *rules, bool redact, scrub_found *found,
			 void *ctx, struct scrub **ret, struct ward_err *e);
void scrub_free(struct scrub *s);
/* Takes n bytes and appends what can go on to out (NULL: it is of no interest). final: nothing
 * follows, all goes. -errno: vectorscan failed, or there is no memory. */
must_check int scrub_take(struct scrub *s, const void *bytes, size_t n, bool final, struct buf *out,
			  struct ward_err *e);
/* Gives out what is held back, unfinished as it is: a reader has waited too long for it. */
void scrub_flush(struct scrub *s, struct buf *out);
/* Bytes that are held back. */
size_t scrub_held(const struct scrub *s);
/* Secrets found so far. */
uint64_t scrub_count(const struct scrub *s);

#endif
