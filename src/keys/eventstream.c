/*
 * Messages of AWS's event streams (eventstream.h). In: a body that says that it is one, in pieces.
 * Out: where messages end. Only one whose sum is right has ended: who can have a server send
 * lengths around a secret cannot cut it, since its sum would have to be in the secret. Run by
 * ward-keys.
 */
#include "keys/eventstream.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

#define LENGTH_BYTES 4
#define SUM_BYTES 4
#define LEAST 16 /* two lengths, two sums */
#define MOST (24 * 1024 * 1024)

bool eventstream_is_type(const char *value, size_t n)
{
	static const char type[] = "application/vnd.amazon.eventstream";

	return n >= sizeof(type) - 1 && strncasecmp(value, type, sizeof(type) - 1) == 0;
}

/* One byte of the length. */
static void take_length(struct eventstream *e, uint8_t byte)
{
	e->read = e->read << 8 | byte;
	e->sum = (uint32_t)crc32(e->have ? e->sum : 0, &byte, 1);
	if (++e->have < LENGTH_BYTES)
		return;
	e->bad = e->read < LEAST || e->read > MOST;
	e->left = e->read - LENGTH_BYTES;
	e->read = 0;
}

/* One byte of the sum. True: the message has ended. */
static bool take_sum(struct eventstream *e, uint8_t byte)
{
	e->read = e->read << 8 | byte;
	if (--e->left)
		return false;
	e->bad = e->read != e->sum;
	e->read = e->have = 0;
	return !e->bad;
}

size_t eventstream_take(struct eventstream *e, const uint8_t *bytes, size_t n)
{
	size_t at = 0, end = 0;

	while (at < n && !e->bad) {
		if (e->have < LENGTH_BYTES) {
			take_length(e, bytes[at++]);
		} else if (e->left > SUM_BYTES) {
			size_t some = n - at < e->left - SUM_BYTES ? n - at : e->left - SUM_BYTES;

			e->sum = (uint32_t)crc32(e->sum, bytes + at, (uInt)some);
			e->left -= (uint32_t)some;
			at += some;
		} else if (take_sum(e, bytes[at++])) {
			end = at;
		}
	}
	return end;
}
