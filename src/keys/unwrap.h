/*
 * Other readings of bytes on their way: what stands there without the line breaks that encoders put
 * into long texts, and without the escapes of URLs. A reading is only looked at; what is found in
 * it is overwritten where it really stands. Pure functions, fuzzed (fuzz/unwrap.c).
 */
#ifndef WARD_KEYS_UNWRAP_H
#define WARD_KEYS_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of such a reading. at: where each byte stands in what was read. */
struct reading {
	uint8_t *bytes;
	uint32_t *at;
	size_t room;  /* at least UNWRAP_ROOM_LEAST */
	size_t len;   /* bytes that were read, */
	size_t used;  /* from so many */
	bool differs; /* it is not what stands there */
};
#define UNWRAP_ROOM_LEAST 64

typedef void reading_make(const uint8_t *bytes, size_t n, struct reading *r);

/* Without line breaks inside of what may be encoded: one break, however it is written, and what
 * begins the next line. */
reading_make reading_unwrap;
/* %XX as the byte that it stands for. */
reading_make reading_unescape;

/* How many of the bytes are left if a line break at their end, or the beginning of one, is cut off
 * behind which an encoded text may go on. */
size_t unwrap_end(const uint8_t *bytes, size_t n);

#endif
