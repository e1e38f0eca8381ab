/*
 * Secrets at the edges of a part. In: the bytes of an answer that is a part of something larger (206), and where in it they stand. Out: the same, with what
 * may be the rest of a secret at its beginning, the beginning of one at its end, or a piece out of the middle overwritten. Else whoever asks for a file in
 * parts gets a secret in pieces of which none is one. Less than EDGE_LEAST bytes tell too little to know: at an edge they pass, and a part that
 * is no longer than that is overwritten as a whole. Pure; run by ward-keys.
 */
#include "gateway/scan.h"

#include <string.h>

#include "creds/protocol.h"

#define EDGE_LEAST 4

/* How many bytes at the beginning are the end of a text. */
static size_t rest_of(const struct scan_text *t, const uint8_t *bytes, size_t n)
{
	for (size_t len = t->len - 1 < n ? t->len - 1 : n; len >= EDGE_LEAST; len--)
		if (memcmp(t->bytes + t->len - len, bytes, len) == 0)
			return len;
	return 0;
}

/* How many bytes at the end are the beginning of a text. */
static size_t beginning_of(const struct scan_text *t, const uint8_t *bytes, size_t n)
{
	for (size_t len = t->len - 1 < n ? t->len - 1 : n; len >= EDGE_LEAST; len--)
		if (memcmp(t->bytes, bytes + n - len, len) == 0)
			return len;
	return 0;
}

static void cover(uint8_t *bytes, size_t n, const struct scan_text *t, struct scan_for *f)
{
	if (!n)
		return;
	memset(bytes, 'x', n);
	if (!f->count++)
		f->first = t->id;
}

void scan_part_edges(const struct scan_text *texts, size_t count, uint8_t *bytes, size_t n, bool first, bool last, struct scan_for *f)
{
	size_t covered = 0, from = n;
	const struct scan_text *at_first = NULL, *at_last = NULL;

	if (first && last && n < EDGE_LEAST) {
		memset(bytes, 'x', n);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct scan_text *t = &texts[i];
		size_t len;

		if (PATTERN_SHOWN(t->id))
			continue;
		len = first ? rest_of(t, bytes, n) : 0;
		if (first && last && n < t->len && memmem(t->bytes, t->len, bytes, n))
			len = n;
		if (len > covered) {
			covered = len;
			at_first = t;
		}
		len = last ? beginning_of(t, bytes, n) : 0;
		if (n - len < from) {
			from = n - len;
			at_last = t;
		}
	}
	cover(bytes, covered, at_first, f);
	cover(bytes + from, n - from, at_last, f);
}
