/*
 * Looking for secrets in a stream of bytes. All forms of all secrets and placeholders are looked
 * for at once (vectorscan); the last bytes of a piece are held back, as many as a secret could
 * begin in (or does, where it cannot be seen), so nothing is missed between two pieces.
 */
#ifndef WARD_KEYS_SCAN_H
#define WARD_KEYS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scan;

/* One text that is looked for. Borrowed for the life of the scanner. */
struct scan_text {
	uint32_t id; /* protocol/secrets.h: PATTERN_ID */
	uint32_t len;
	const uint8_t *bytes;
};

/* A scanner of a serialised database that lies at place (borrowed, writable, at least scan_room()
 * bytes, aligned to 64). */
must_check int scan_room(const uint8_t *serial, size_t n, size_t *ret_room, struct ward_err *e);
must_check int scan_new(const uint8_t *serial, size_t n, void *place, const struct scan_text *texts,
			size_t text_count, struct scan **ret, struct ward_err *e);
void scan_free(struct scan *s);

/* Which of the found texts count, and what is done with them. */
struct scan_for {
	bool secrets, shown; /* secrets; placeholders */
	bool replace;        /* they are overwritten, as long as they are */
	bool prompt;         /* only what may be the beginning of one is held back */
	uint32_t count;      /* found so far */
	uint32_t first;      /* id of the first; valid where count is not 0 */
	size_t at;           /* where that ends in the bytes it was found in */
};

/* Looks through n bytes: what was held back before, and new ones behind it. Returns how many of
 * them can go on; the rest is to be held back and comes first in the next call. final: nothing
 * follows, all can go. What is found is counted in *f. Texts that an encoder has broken into lines
 * (unwrap.h) are found, too. Without a scanner, and where it fails, everything counts as found. */
size_t scan_run(const struct scan *s, uint8_t *bytes, size_t n, bool final, struct scan_for *f);

/* The same for a head or trailers, all of it: also behind escapes of URLs, and in names of fields
 * whatever their case. */
void scan_head(const struct scan *s, uint8_t *bytes, size_t n, struct scan_for *f);

/* How many bytes at the end of those are the beginning of a secret, and more of it than any process
 * may see who waits: SCAN_SEEN_MAX behind what its placeholder begins with, too. Counted in *f. */
#define SCAN_SEEN_MAX 8
size_t scan_begun(const struct scan *s, const uint8_t *bytes, size_t n, struct scan_for *f);

/* How long the longest text is that is looked for. */
size_t scan_longest(const struct scan *s);

#endif
