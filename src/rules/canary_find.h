/*
 * Looking for the values of canaries in a stream of bytes, however they are written: as they are,
 * in base64, base32 or hexadecimal, backwards, in capitals, with signs between the letters, in the
 * escapes of URLs and JSON. Pure; nothing is held back, so it costs the stream no time.
 */
#ifndef WARD_RULES_CANARY_FIND_H
#define WARD_RULES_CANARY_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CANARY_TOKEN 20       /* letters and digits of a value that no other run has */
#define CANARY_FOUND 16       /* so many of them, in any form, prove it */
#define CANARY_VALUES_MAX 256 /* of one finder */

struct canary_finder;

/* count values of CANARY_TOKEN bytes each, one behind the other. */
must_check int canary_finder_new(const char *tokens, size_t count, struct canary_finder **ret,
				 struct ward_err *e);
void canary_finder_free(struct canary_finder *f);

/* One way to read the bytes. */
struct canary_reading {
	uint64_t hash;
	uint32_t count;
	uint8_t last[CANARY_FOUND]; /* letters and digits, in small letters; a ring */
};

/* Where a stream has come to; all zero at its beginning. */
struct canary_stream {
	struct canary_reading plain, unescaped;
	uint8_t waiting[6]; /* of an escape that is not whole yet */
	uint8_t waiting_count;
};

/* The number of the first value in the bytes, which continue the stream; -1: none. */
int canary_find(const struct canary_finder *f, struct canary_stream *s, const void *bytes,
		size_t n);

#endif
