/*
 * The scanner of ward-keys. In: bytes on their way. Out: how many are clean. A match can only cross
 * the border of two pieces if it begins in the last bytes of the first; those are held back, so
 * each call can look at its bytes alone: there is no state but what the caller holds. How many are
 * held back must not depend on the secrets: who can have a server send guesses would see which of
 * them are waited for, and so learn a secret letter by letter. It depends on where the last byte
 * stands that is in no text, of a few that end lines and documents and of those that are in no
 * secret at all, so that what comes in such pieces does not wait. Where a program speaks, and not a
 * server, only what may be the beginning of a text is. Only the part of vectorscan that looks is
 * linked here; the database was compiled by ward-secrets.
 *
 * Bytes are looked at as they are and, where that differs, in other readings (unwrap.h): without
 * the line breaks of encoders, and of heads without escapes. What is held back is enough for both.
 * A scanner that is not there or fails lets nothing pass as clean.
 */
#include "keys/scan.h"

#include <ctype.h>
#include <errno.h>
#include <hs/hs_runtime.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "keys/unwrap.h"
#include "protocol/secrets.h"

#define READING_BYTES 32768 /* of another reading, beside what two texts need */
/* Bytes that are held back because of line breaks in them: less than any window of HTTP/2. */
#define HELD_MAX 24576
/* So many times as many as a text has: the longest break behind each letter. */
#define HELD_BREAKS 16

struct scan {
	hs_database_t *db; /* at the caller's place */
	hs_scratch_t *scratch;
	const struct scan_text *texts;
	uint32_t count, longest;
	/* texts that begin with a byte: order[first[byte]] up to order[first[byte + 1]] */
	uint32_t first[257];
	uint32_t *order;
	bool ends[256];          /* bytes behind which no text goes on */
	struct reading *reading; /* room for one; nothing stays in it */
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

/* What is no ASCII that is printed (creds/source.c), and of these few each one that is in no text;
 * that much can be seen from outside. */
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

static void reading_free(struct reading *r)
{
	if (!r)
		return;
	free(r->bytes);
	free(r->at);
	free(r);
}

static struct reading *reading_new(size_t room)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->room = room;
	r->bytes = malloc(room);
	r->at = malloc(room * sizeof(*r->at));
	if (r->bytes && r->at)
		return r;
	reading_free(r);
	return NULL;
}

int scan_new(const uint8_t *serial, size_t n, void *place, const struct scan_text *texts,
	     size_t text_count, struct scan **ret, struct ward_err *e)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->order = calloc(text_count + 1, sizeof(*s->order));
	s->texts = texts;
	s->count = (uint32_t)text_count;
	for (size_t i = 0; i < text_count; i++)
		s->longest = texts[i].len > s->longest ? texts[i].len : s->longest;
	s->reading = reading_new(READING_BYTES + 2 * (size_t)s->longest);
	if (!s->order || !s->reading ||
	    hs_deserialize_database_at((const char *)serial, n, place) != HS_SUCCESS) {
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
	reading_free(s->reading);
	free(s->order);
	free(s);
}

#define SPANS_MAX 64
#define OVER 'x'

struct looking {
	const struct scan *scan;
	struct scan_for *f;
	const uint8_t *bytes;
	/* open: what begins there or later may go on in the next piece */
	size_t n, open;
	const uint32_t *at; /* of a reading; NULL: these are the bytes themselves */
	size_t origin;      /* where it begins in them */
	uint32_t span_count;
	struct {
		size_t from, to;
		bool begun;
	} spans[SPANS_MAX]; /* to be overwritten */
};

/* All of the text that this is the beginning of: they stand one behind the other (creds/compile.c).
 */
static const struct scan_text *whole_of(const struct scan *s, const struct scan_text *t)
{
	const struct scan_text *before = t > s->texts ? t - 1 : NULL;

	return before && before->id == (t->id & ~(uint32_t)PATTERN_BEGUN) ? before : NULL;
}

/* How much is overwritten where a text begins that a server has cut off: all that may be the rest
 * of it, or who has guesses repeated would see how far they are right. 0: it may still come, and is
 * told then. */
static size_t begun(const struct looking *l, const struct scan_text *t, size_t from)
{
	const struct scan_text *whole = whole_of(l->scan, t);
	size_t len = t->len;

	if (l->f->prompt || !whole || from >= l->open)
		return 0;
	if (whole->len <= l->n - from && memcmp(l->bytes + from, whole->bytes, whole->len) == 0)
		/* that is found, too, if nothing in it is overwritten before: it may begin again in
		 * itself */
		return whole->len;
	while (len < whole->len && from + len < l->n && !l->scan->ends[l->bytes[from + len]])
		len++;
	return len;
}

/* All of a text is there: it was reported for its beginning, and other forms of it begin alike. */
static void drop_begun(struct looking *l, size_t from)
{
	for (uint32_t i = 0; i < l->span_count; i++)
		if (l->spans[i].begun && l->spans[i].from == from && l->spans[i].to > from) {
			l->spans[i].to = from;
			l->f->count--;
		}
}

/* Nothing is left to do there: of a secret that consists of what is written over others there is
 * always more, in every round. */
static bool is_overwritten(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != OVER)
			return false;
	return true;
}

/* number: the text's place in the row of them. */
static int found(unsigned number, unsigned long long unused, unsigned long long to, unsigned flags,
		 void *context)
{
	struct looking *l = context;
	const struct scan_text *t = number < l->scan->count ? &l->scan->texts[number] : NULL;
	uint32_t id = t ? t->id : 0;
	size_t len = t ? t->len : 0, from = len <= to ? (size_t)to - len : 0;

	(void)unused;
	(void)flags;
	if (!t || !(PATTERN_SHOWN(id) ? l->f->shown : l->f->secrets))
		return 0;
	if (PATTERN_IS_BEGUN(id) && !(len = begun(l, t, from)))
		return 0;
	if (!PATTERN_IS_BEGUN(id))
		drop_begun(l, from);
	if (!l->f->count++) {
		l->f->first = id;
		l->f->at = l->origin + (l->at ? l->at[from + len - 1] + 1 : from + len);
	}
	if (!l->f->replace || !len || is_overwritten(l->bytes + from, len))
		return 0;
	l->spans[l->span_count].begun = PATTERN_IS_BEGUN(id);
	l->spans[l->span_count].from = from;
	l->spans[l->span_count++].to = from + len;
	return l->span_count == SPANS_MAX; /* the rest in another round */
}

/* How long the longest end of the bytes is that a text begins with. */
static size_t open_end(const struct scan *s, const uint8_t *bytes, size_t n, void *unused)
{
	(void)unused;
	for (size_t at = n > s->longest - 1 ? n - (s->longest - 1) : 0; at < n; at++)
		for (uint32_t i = s->first[bytes[at]]; i < s->first[bytes[at] + 1]; i++) {
			const struct scan_text *t = &s->texts[s->order[i]];

			if (t->len > n - at && memcmp(t->bytes, bytes + at, n - at) == 0)
				return n - at;
		}
	return 0;
}

/* How many bytes at the end a text may begin in, whatever the texts are. */
static size_t last_bytes(const struct scan *s, const uint8_t *bytes, size_t n, void *unused)
{
	size_t held = 0;

	(void)unused;
	while (held < n && held + 1 < s->longest && !s->ends[bytes[n - held - 1]])
		held++;
	return held;
}

/* How many bytes at the end are held back, or more: of one reading. */
typedef size_t held_back(const struct scan *s, const uint8_t *bytes, size_t n, void *with);

/* Of the last bytes, as they are read without line breaks, how many are held back. stripped:
 * without a break at their end. */
static size_t held_broken(const struct scan *s, const uint8_t *bytes, size_t n, bool stripped,
			  held_back *of, void *with)
{
	size_t most = HELD_BREAKS * (size_t)s->longest < HELD_MAX ? HELD_BREAKS * (size_t)s->longest
								  : HELD_MAX,
	       from;
	size_t end, held;
	struct reading *r = s->reading;

	most = most > 2 * (size_t)s->longest ? most : 2 * (size_t)s->longest;
	from = n > most ? n - most : 0;
	end = stripped ? unwrap_end(bytes + from, n - from) : n - from;
	if (stripped && end == n - from)
		return 0;
	reading_unwrap(bytes + from, end, r);
	held = r->differs || stripped ? of(s, r->bytes, r->len, with) : 0;
	held = held ? n - from - r->at[r->len - held] : 0;
	explicit_bzero(r->bytes, r->len);
	return held;
}

/* How many bytes at the end are held back, of the bytes themselves and without line breaks,
 * whichever is more. */
static size_t held_of(const struct scan *s, const uint8_t *bytes, size_t n, held_back *of,
		      void *with)
{
	size_t held = of(s, bytes, n, with), whole = held_broken(s, bytes, n, false, of, with),
	       stripped = held_broken(s, bytes, n, true, of, with);

	held = held > whole ? held : whole;
	return held > stripped ? held : stripped;
}

/* What is not known to be clean: everything is something that was found. */
static void found_all(uint8_t *bytes, size_t n, struct scan_for *f)
{
	if (!f->count++) {
		f->first = 0;
		f->at = n;
	}
	if (f->replace)
		memset(bytes, OVER, n);
}

/* Overwrites what was found, where it stands in the bytes. */
static void overwrite(const struct looking *l, uint8_t *bytes)
{
	for (uint32_t i = 0; i < l->span_count; i++)
		for (size_t k = l->spans[i].from; k < l->spans[i].to; k++) {
			size_t here = l->at ? l->at[k] : k;
			bool escape = l->at && bytes[here] == '%' && l->bytes[k] != '%';

			memset(bytes + here, OVER, escape ? 3 : 1);
		}
}

/* Looks through what is in l, and overwrites it in the bytes and in their reading (NULL: there is
 * none). False: the scanner has failed. */
static bool look(struct looking *l, uint8_t *bytes, uint8_t *reading)
{
	const struct scan *s = l->scan;
	hs_error_t error;

	do {
		l->span_count = 0;
		error = hs_scan(s->db, (const char *)l->bytes, (unsigned)l->n, 0, s->scratch, found,
				l);
		overwrite(l, bytes);
		for (uint32_t i = 0; reading && i < l->span_count; i++)
			memset(reading + l->spans[i].from, OVER, l->spans[i].to - l->spans[i].from);
	} while (error == HS_SCAN_TERMINATED && l->span_count == SPANS_MAX);
	return error == HS_SUCCESS;
}

/* The bytes in another reading, in pieces that have as much in common as the longest text. False:
 * the scanner has failed. */
static bool look_again(const struct scan *s, reading_make *make, uint8_t *bytes, size_t n,
		       size_t open, struct scan_for *f)
{
	struct reading *r = s->reading;
	bool fine = true;

	for (size_t from = 0; fine && from < n;) {
		struct looking l = {
			.scan = s, .f = f, .bytes = r->bytes, .at = r->at, .origin = from
		};
		size_t used;

		make(bytes + from, n - from, r);
		used = r->used;
		for (l.n = r->len; l.open < l.n && from + r->at[l.open] < open; l.open++)
			;
		if (r->differs)
			fine = look(&l, bytes + from, r->bytes);
		explicit_bzero(r->bytes, r->len);
		from += from + used < n ? r->at[r->len - s->longest] : used;
	}
	return fine;
}

size_t scan_run(const struct scan *s, uint8_t *bytes, size_t n, bool final, struct scan_for *f)
{
	struct looking l = { .scan = s, .f = f, .bytes = bytes, .n = n };
	bool known = f->count && !f->replace; /* one more would change nothing */
	size_t held;

	if (!n)
		return 0;
	if (!s || !s->count) {
		found_all(bytes, n, f);
		return n;
	}
	/* an end that is held back is looked at again with what follows: matches in it are whole
	 * only then, or were reported before */
	held = final ? 0 : held_of(s, bytes, n, f->prompt ? open_end : last_bytes, NULL);
	l.open = n - held;
	if (!look(&l, bytes, NULL) ||
	    (!known && !look_again(s, reading_unwrap, bytes, n, l.open, f)))
		found_all(bytes, n, f);
	return n - held;
}

/* -- names of fields */

/* Whether a text stands at the beginning of those characters, in whichever case; how many are
 * overwritten then. */
static size_t name_begins(const struct scan *s, const char *name, size_t n,
			  const struct scan_for *f, uint32_t *ret_id)
{
	for (int upper = 0; upper < 2; upper++) {
		uint8_t c = (uint8_t)(upper ? toupper((unsigned char)*name)
					    : tolower((unsigned char)*name));

		if (upper && c == (uint8_t)tolower((unsigned char)*name))
			break;
		for (uint32_t i = s->first[c]; i < s->first[c + 1]; i++) {
			const struct scan_text *t = &s->texts[s->order[i]];

			if (!(PATTERN_SHOWN(t->id) ? f->shown : f->secrets) || t->len > n ||
			    strncasecmp((const char *)t->bytes, name, t->len) != 0)
				continue;
			*ret_id = t->id;
			return PATTERN_IS_BEGUN(t->id) ? n : t->len;
		}
	}
	return 0;
}

/* HTTP/2 makes the letters of a name small, and servers do not mind their case: so does this. */
static void look_at_names(const struct scan *s, char *lines, size_t n, struct scan_for *f)
{
	for (char *line = lines, *end = lines + n, *next; line < end; line = next) {
		char *line_end = memchr(line, '\n', (size_t)(end - line)), *name_end;

		next = line_end ? line_end + 1 : end;
		name_end = memchr(line, ':', (size_t)(next - line));
		for (char *at = line; name_end && at < name_end; at++) {
			uint32_t id = 0;
			size_t len = name_begins(s, at, (size_t)(name_end - at), f, &id);

			if (!len || is_overwritten((uint8_t *)at, len))
				continue;
			if (!f->count++) {
				f->first = id;
				f->at = (size_t)(at - lines) + len;
			}
			if (f->replace)
				memset(at, OVER, len);
		}
	}
}

void scan_head(const struct scan *s, uint8_t *bytes, size_t n, struct scan_for *f)
{
	if (!n)
		return;
	(void)scan_run(s, bytes, n, true, f);
	if (!s || !s->count)
		return;
	if (!look_again(s, reading_unescape, bytes, n, n, f))
		found_all(bytes, n, f);
	look_at_names(s, (char *)bytes, n, f);
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

static size_t begun_at_end(const struct scan *s, const uint8_t *bytes, size_t n, void *with)
{
	struct scan_for *f = with;

	for (size_t at = n > s->longest - 1 ? n - (s->longest - 1) : 0; at + SCAN_SEEN_MAX < n;
	     at++)
		for (uint32_t i = s->first[bytes[at]]; i < s->first[bytes[at] + 1]; i++) {
			const struct scan_text *t = &s->texts[s->order[i]];

			if (PATTERN_SHOWN(t->id) || t->len <= n - at ||
			    memcmp(t->bytes, bytes + at, n - at) != 0 ||
			    n - at <= known_of(s, t) + SCAN_SEEN_MAX)
				continue;
			if (!f->count++)
				f->first = t->id;
			return n - at;
		}
	return 0;
}

size_t scan_begun(const struct scan *s, const uint8_t *bytes, size_t n, struct scan_for *f)
{
	return s && s->count ? held_of(s, bytes, n, begun_at_end, f) : n;
}

size_t scan_longest(const struct scan *s)
{
	return s ? s->longest : 0;
}
