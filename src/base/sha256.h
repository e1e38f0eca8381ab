/* SHA-256, for telling one content from another, and for the chain of a journal. Pure functions. */
#ifndef WARD_BASE_SHA256_H
#define WARD_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65 /* 64 digits and a NUL */

#define SHA256_BYTES 32

/* A digest in the making, for content that comes in pieces. */
struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64]; /* what is not yet a whole one */
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES]);
/* The same as lower-case hexadecimal digits. */
void sha256_end_hex(struct sha256 *s, char ret_hex[SHA256_HEX]);

/* Writes the digest of n bytes as lower-case hexadecimal digits. */
void sha256_hex(const void *bytes, size_t n, char ret_hex[SHA256_HEX]);

#endif
