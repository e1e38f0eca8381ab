/* Messages of application/vnd.amazon.eventstream: where each ends. One whose sum is right is looked
 * through and goes, without waiting for the next one. Pure, in constant memory; fuzzed
 * (fuzz/part.c). */
#ifndef WARD_KEYS_EVENTSTREAM_H
#define WARD_KEYS_EVENTSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eventstream {
	bool bad;           /* it is none: nothing ends any more */
	uint8_t have;       /* bytes of the length */
	uint32_t left;      /* bytes to come; the last four are the sum */
	uint32_t read, sum; /* the number in the reading; the sum so far */
};

/* Whether the value of a content-type says that it is one. */
bool eventstream_is_type(const char *value, size_t n);
/* Takes the next n bytes; returns behind which of them a message ends last, 0: none does. */
size_t eventstream_take(struct eventstream *e, const uint8_t *bytes, size_t n);

#endif
