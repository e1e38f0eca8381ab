/* SHA-256 of a stream. */
#ifndef WARD_IMAGE_HASH_H
#define WARD_IMAGE_HASH_H

#include <stddef.h>

#include "base/own.h"
#include "image/manifest.h"

struct evp_md_ctx_st;

struct hash {
	struct evp_md_ctx_st *ctx; /* NULL: out of memory, and every digest is wrong */
};

void hash_begin(struct hash *h);
void hash_add(struct hash *h, const void *bytes, size_t n);
/* Writes the digest in hexadecimal digits and frees; "" when something went wrong. */
void hash_end(struct hash *h, char ret_hex[DIGEST_HEX]);

#endif
