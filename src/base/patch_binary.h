/* Git's binary patch format: pure functions over bytes. */
#ifndef WARD_BASE_PATCH_BINARY_H
#define WARD_BASE_PATCH_BINARY_H

#include "base/buf.h"

#define PATCH_BINARY_LINE 52

/* One content on its way into a patch. */
struct patch_binary {
	struct buf *out;
	uint64_t left; /* bytes of the content that are still to come */
	size_t in_block;
	uint32_t adler_a, adler_b;
	unsigned char line[PATCH_BINARY_LINE]; /* not written yet */
	size_t line_len;
};

/* Begins content of so many bytes; patch_binary_add() gives them, in pieces; patch_binary_end()
 * stands behind the last. */
void patch_binary_begin(struct patch_binary *p, struct buf *out, uint64_t size);
void patch_binary_add(struct patch_binary *p, const void *bytes, size_t n);
void patch_binary_end(struct patch_binary *p);

/* Appends a name as git quotes it, with "a/" or the like in front. */
void patch_put_name(struct buf *out, const char *prefix, const char *name);

#endif
