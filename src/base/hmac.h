/* HMAC with SHA-256 (RFC 2104): a digest that only who has the key can make. Pure functions. */
#ifndef WARD_BASE_HMAC_H
#define WARD_BASE_HMAC_H

#include <stdbool.h>

#include "base/sha256.h"

/* One message in up to three parts; an unused part has length 0. */
struct hmac_part {
	const void *bytes;
	size_t n;
};

void hmac_hex(const void *key, size_t key_n, const struct hmac_part *parts, size_t count,
	      char ret_hex[SHA256_HEX]);
/* Whether two digests are equal, in a time that does not depend on where they differ. */
bool hmac_equal(const char a[SHA256_HEX], const char b[SHA256_HEX]);

#endif
