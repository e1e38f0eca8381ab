/*
 * The scanner of ward-keys. In: bytes on their way. Out: how many are clean. A match can only cross the border of two pieces if it begins in the last
 * bytes of the first; those are held back, so each call can look at its bytes alone: there is no state but
 * what the caller holds. How many are held back must not depend on the secrets: who can have a server send guesses would see which of them
 * are waited for, and so learn a secret letter by letter. It depends on where the last byte stands that is in no text, of a few that end lines
 * and documents and of those that are in no secret at all, so that what comes in such pieces does not wait. Where a program speaks, and not a server, only what may be the beginning of a text is. Only the part of vectorscan that looks is linked here; the database was compiled by ward-secrets.
 */
#include "gateway/scan.h"

#include <errno.h>
#include <hs/hs_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "creds/protocol.h"

struct scan {
	hs_database_t *db;		/* at the caller's place */
	hs_scratch_t *scratch;
	const struct scan_text *texts;
	uint32_t count, longest;
	uint32_t first[257];		/* texts that begin with a byte: order[first[byte]] up to order[first[byte + 1]] */
	uint32_t *order;
	bool ends[256];			/* bytes behind which no text goes on */
};

int scan_room(const uint8_t *serial, size_t n, size_t *ret_room, struct ward_err *e)
{
	if (hs_serialized_database_size((const char *)serial, n, ret_room) != HS_SUCCESS)
		return ward_fail(e, EINVAL, "not a scanner's database");
	return 0;
}

static void index_texts(struct scan *s)
{
	uint32_t at = 0;

	for (unsigned byte = 0; byte < 256; byte++) {
		s->first[byte] = at;
		for (uint32_t i = 0; i < s->count; i++)
			if (s->texts[i].bytes[0] == byte)
				s->order[at++] = i;
	}
	s->first[256] = at;
}

/* What is no ASCII that is printed (creds/source.c), and of these few each one that is in no text; that much can be seen from outside. */
static void find_ends(struct scan *s)
{
	static const char some[] = "\n\r\"}]> ";

	for (unsigned byte = 0; byte < 256; byte++)
		s->ends[byte] = byte < ' ' || byte > '~';
	for (size_t i = 0; i < sizeof(some) - 1; i++)
		s->ends[(uint8_t)some[i]] = true;
	for (uint32_t i = 0; i < s->count; i++)
		for (uint32_t k = 0; k < s->texts[i].len; k++)
			s->ends[s->texts[i].bytes[k]] = false;
}

int scan_new(const uint8_t *serial, size_t n, void *place, const struct scan_text *texts, size_t text_count, struct scan **ret, struct ward_err *e)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->order = calloc(text_count + 1, sizeof(*s->order));
	s->texts = texts;
	s->count = (uint32_t)text_count;
	for (size_t i = 0; i < text_count; i++)
		s->longest = texts[i].len > s->longest ? texts[i].len : s->longest;
	if (!s->order || hs_deserialize_database_at((const char *)serial, n, place) != HS_SUCCESS) {
		scan_free(s);
		return ward_fail(e, EINVAL, "the scanner's database cannot be used");
	}
	s->db = place;
	if (hs_alloc_scratch(s->db, &s->scratch) != HS_SUCCESS) {
		scan_free(s);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	index_texts(s);
	find_ends(s);
	*ret = s;
	return 0;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	hs_free_scratch(s->scratch);
	free(s->order);
	free(s);
}

#define SPANS_MAX 64
#define OVER 'x'

struct looking {
	const struct scan *scan;
	struct scan_for *f;
	const uint8_t *bytes;
	size_t n, open;			/* open: what begins there or later may go on in the next piece */
	uint32_t span_count;
	struct {
		size_t from, to;
		bool begun;
	} spans[SPANS_MAX];		/* to be overwritten */
};

static const struct scan_text *text_of(const struct scan *s, uint32_t id)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->texts[i].id == id)
			return &s->texts[i];
	return NULL;
}

/* How much is overwritten where a text begins that a server has cut off: all that may be the rest of it, or who has guesses repeated would see how far they are right. 0: it
 * may still come, and is told then. */
static size_t begun(const struct looking *l, uint32_t id, size_t from, size_t len)
{
	const struct scan_text *whole = text_of(l->scan, id & ~(uint32_t)PATTERN_BEGUN);

	if (l->f->prompt || !whole || from >= l->open)
		return 0;
	if (whole->len <= l->n - from && memcmp(l->bytes + from, whole->bytes, whole->len) == 0)
		return whole->len;	/* that is found, too, if nothing in it is overwritten before: it may begin again in itself */
	while (len < whole->len && from + len < l->n && !l->scan->ends[l->bytes[from + len]])
		len++;
	return len;
}

/* All of a text is there: it was told for its beginning, and other forms of it begin alike. */
static void drop_begun(struct looking *l, size_t from)
{
	for (uint32_t i = 0; i < l->span_count; i++)
		if (l->spans[i].begun && l->spans[i].from == from && l->spans[i].to > from) {
			l->spans[i].to = from;
			l->f->count--;
		}
}

/* Nothing is left to do there: of a secret that consists of what is written over others there is always more, in every round. */
static bool is_overwritten(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != OVER)
			return false;
	return true;
}

static int found(unsigned id, unsigned long long unused, unsigned long long to, unsigned flags, void *context)
{
	struct looking *l = context;
	const struct scan_text *t = text_of(l->scan, id);
	size_t len = t ? t->len : 0, from = len <= to ? (size_t)to - len : 0;

	(void)unused;
	(void)flags;
	if (!(PATTERN_SHOWN(id) ? l->f->shown : l->f->secrets))
		return 0;
	if (PATTERN_IS_BEGUN(id) && !(len = begun(l, id, from, len)))
		return 0;
	if (!PATTERN_IS_BEGUN(id))
		drop_begun(l, from);
	if (!l->f->count++) {
		l->f->first = id;
		l->f->at = from + len;
	}
	if (!l->f->replace || !len || is_overwritten(l->bytes + from, len))
		return 0;
	l->spans[l->span_count].begun = PATTERN_IS_BEGUN(id);
	l->spans[l->span_count].from = from;
	l->spans[l->span_count++].to = from + len;
	return l->span_count == SPANS_MAX;	/* the rest in another round */
}

/* How long the longest end of the bytes is that a text begins with. */
static size_t open_end(const struct scan *s, const uint8_t *bytes, size_t n)
{
	for (size_t at = n > s->longest - 1 ? n - (s->longest - 1) : 0; at < n; at++)
		for (uint32_t i = s->first[bytes[at]]; i < s->first[bytes[at] + 1]; i++) {
			const struct scan_text *t = &s->texts[s->order[i]];

			if (t->len > n - at && memcmp(t->bytes, bytes + at, n - at) == 0)
				return n - at;
		}
	return 0;
}

/* How many bytes at the end a text may begin in, whatever the texts are. */
static size_t last_bytes(const struct scan *s, const uint8_t *bytes, size_t n)
{
	size_t held = 0;

	while (held < n && held + 1 < s->longest && !s->ends[bytes[n - held - 1]])
		held++;
	return held;
}

size_t scan_run(const struct scan *s, uint8_t *bytes, size_t n, bool final, struct scan_for *f)
{
	struct looking l = { .scan = s, .f = f, .bytes = bytes, .n = n };
	hs_error_t error;
	size_t held;

	if (!s || !s->count || !n)
		return n;
	/* an end that is held back is looked at again with what follows: matches in it are whole only then, or were told before */
	held = final ? 0 : f->prompt ? open_end(s, bytes, n) : last_bytes(s, bytes, n);
	l.open = n - held;
	do {
		l.span_count = 0;
		error = hs_scan(s->db, (const char *)bytes, (unsigned)n, 0, s->scratch, found, &l);
		for (uint32_t i = 0; i < l.span_count; i++)
			memset(bytes + l.spans[i].from, OVER, l.spans[i].to - l.spans[i].from);
	} while (error == HS_SCAN_TERMINATED && l.span_count == SPANS_MAX);
	if (error != HS_SUCCESS)
		f->count++;	/* what cannot be looked through does not pass as clean */
	return n - held;
}

/* How much of a text everybody inside knows: a placeholder of its grant begins with it. */
static uint32_t known_of(const struct scan *s, const struct scan_text *t)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct scan_text *shown = &s->texts[i];
		uint32_t same = 0;

		if (!PATTERN_SHOWN(shown->id) || PATTERN_GRANT(shown->id) != PATTERN_GRANT(t->id))
			continue;
		while (same < t->len && same < shown->len && t->bytes[same] == shown->bytes[same])
			same++;
		most = same > most ? same : most;
	}
	return most;
}

size_t scan_begun(const struct scan *s, const uint8_t *bytes, size_t n, struct scan_for *f)
{
	if (!s || !s->count)
		return 0;
	for (size_t at = n > s->longest - 1 ? n - (s->longest - 1) : 0; at + SCAN_SEEN_MAX < n; at++)
		for (uint32_t i = s->first[bytes[at]]; i < s->first[bytes[at] + 1]; i++) {
			const struct scan_text *t = &s->texts[s->order[i]];

			if (PATTERN_SHOWN(t->id) || t->len <= n - at || memcmp(t->bytes, bytes + at, n - at) != 0 || n - at <= known_of(s, t) + SCAN_SEEN_MAX)
				continue;
			if (!f->count++)
				f->first = t->id;
			return n - at;
		}
	return 0;
}

size_t scan_longest(const struct scan *s)
{
	return s ? s->longest : 0;
}
