/* SHA-1, for object names and checksums that git makes with it; nothing of ward's own relies on it.
 * Pure functions. */
#ifndef WARD_BASE_SHA1_H
#define WARD_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

/* A digest of content that comes in pieces. */
struct sha1 {
	uint32_t state[5];
	uint64_t bytes;
	uint8_t block[64]; /* the start of a block that is not complete yet */
};

void sha1_begin(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *bytes, size_t n);
void sha1_end(struct sha1 *s, uint8_t ret[SHA1_BYTES]);

#endif
