/*
 * Secrets in bytes that are passed on. In: a stream, piece by piece, that anyone may have written.
 * Out: the same stream, with secrets overwritten where that is wanted, and a call for each secret.
 * Runs in ward-scan (standard output) and in front (requests), each confined; fuzz/scrub.c checks
 * that nothing is lost, however the stream is cut into pieces.
 *
 * The bytes in hand are those that were given out last (context: a hit may not begin within a
 * word), those that are held back, and new ones. All of them are looked through at once. A place
 * where the pattern runs into the end is unsure: everything from there on is held back, and so is
 * the beginning of a text that vectorscan would look for. A pattern is bounded, so what is held
 * back is, too: AHEAD bytes.
 *
 * What could be known of a place does not change with what follows, so a stream cut anywhere gives
 * the same hits. A flood of more than HITS_MAX hits in one piece holds back the rest of it.
 */
#include "scan/scrub.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan/detect_internal.h"

#define PIECE 16384
#define HITS_MAX 128
#define INK '*'

struct scrub {
	const struct detect_rules *rules;
	scrub_found *found;
	void *ctx;
	bool redact, final;
	uint64_t offset; /* of bytes[0] in the stream */
	uint64_t count;
	size_t used, given; /* bytes in hand; those of them that were given out */
	size_t hold;        /* from there on they are held back */
	size_t hit_count;
	struct found hits[HITS_MAX];
	uint8_t bytes[BEHIND + AHEAD + PIECE];
};

int scrub_new(const struct detect_rules *rules, bool redact, scrub_found *found, void *ctx,
	      struct scrub **ret, struct ward_err *e)
{
	struct scrub *s = malloc(sizeof(*s));

	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->rules = rules;
	s->found = found;
	s->ctx = ctx;
	s->redact = redact;
	s->offset = s->count = 0;
	s->used = s->given = s->hold = s->hit_count = 0;
	*ret = s;
	return 0;
}

void scrub_free(struct scrub *s)
{
	if (!s)
		return;
	explicit_bzero(s->bytes, sizeof(s->bytes));
	free(s);
}

/* -- what is unsure */

static void hold_from(struct scrub *s, size_t at)
{
	s->hold = at < s->hold ? at : s->hold;
}

static bool begins_alike(const uint8_t *bytes, const char *text, size_t n, bool caseless)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != (uint8_t)text[i] &&
		    (!caseless || tolower(bytes[i]) != tolower((unsigned char)text[i])))
			return false;
	return true;
}

/* What the bytes end with may be the beginning of a text, or stand in front of one. */
static void hold_beginnings(struct scrub *s)
{
	for (size_t t = 0; t < s->rules->text_count; t++) {
		const struct detect_text *x = &s->rules->texts[t];
		const struct row *w = &detect_rows[x->row];
		size_t begun = x->bytes - 1u < s->used ? x->bytes - 1u : s->used, at;

		while (begun && !begins_alike(s->bytes + s->used - begun, x->text, begun,
					      w->flags & CASELESS))
			begun--;
		at = s->used - begun;
		if (w->back)
			at -= pattern_back(&s->rules->patterns[x->row], s->bytes, at, w->back);
		hold_from(s, at);
	}
}

/* -- one piece */

static void try_row(struct scrub *s, size_t row, size_t at)
{
	struct found f;

	switch (detect_judge(s->rules, row, s->bytes, s->used, at, s->final, &f)) {
	case PLACE_NOTHING:
		break;
	case PLACE_UNSURE:
		hold_from(s, f.from);
		break;
	case PLACE_FOUND:
		if (s->hit_count < HITS_MAX)
			s->hits[s->hit_count++] = f;
		else
			hold_from(s, f.from);
		break;
	}
}

static int at_text(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
		   void *ctx)
{
	struct scrub *s = ctx;

	(void)from;
	(void)flags;
	if (to > s->given)
		try_row(s, s->rules->texts[id].row, (size_t)to - s->rules->texts[id].bytes);
	return 0;
}

static void try_bare(struct scrub *s)
{
	for (size_t at = s->given; at < s->used; at++) {
		uint8_t c = s->bytes[at];

		if ((!isdigit(c) && !isupper(c) && c != '+' && c != '(') ||
		    !detect_begins_word(s->bytes, at))
			continue;
		for (size_t i = 0; i < s->rules->bare_count; i++)
			try_row(s, s->rules->bare[i], at);
	}
}

/* A hit counts when all of it can go; until then it has to be found again, so the text that it was
 * found by must not go either. True: what is unsure overlaps more than may be held back. */
static bool keep_whole(struct scrub *s)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < s->hit_count; i++)
			if (s->hits[i].end > s->hold && s->hits[i].from < s->hold) {
				s->hold = s->hits[i].from;
				changed = true;
			}
	}
	if (s->hold < s->given)
		s->hold = s->given;
	if (s->used - s->hold <= AHEAD)
		return false;
	s->hold = s->used - AHEAD;
	return true;
}

static void report(struct scrub *s, bool forced)
{
	size_t n = detect_settle(s->hits, s->hit_count);

	for (size_t i = 0; i < n; i++) {
		const struct found *f = &s->hits[i];
		size_t start = f->start < s->given ? s->given : f->start;

		if (f->end <= s->given || f->start >= s->hold || (f->end > s->hold && !forced))
			continue;
		s->count++;
		if (s->found)
			s->found(s->ctx, &(struct scrub_hit){ f->rule, s->offset + f->start,
							      f->end - f->start });
		if (s->redact)
			memset(s->bytes + start, INK, f->end - start);
	}
}

static void give_out(struct scrub *s, struct buf *out)
{
	size_t drop;

	if (out && s->hold > s->given)
		buf_add(out, s->bytes + s->given, s->hold - s->given);
	s->given = s->hold;
	drop = s->given > BEHIND ? s->given - BEHIND : 0;
	memmove(s->bytes, s->bytes + drop, s->used - drop);
	s->used -= drop;
	s->given -= drop;
	s->hold = s->given;
	s->offset += drop;
}

static int look(struct scrub *s, struct buf *out, struct ward_err *e)
{
	s->hold = s->used;
	s->hit_count = 0;
	if (s->used && hs_scan(s->rules->database, (const char *)s->bytes, (unsigned)s->used, 0,
			       s->rules->scratch, at_text, s) != HS_SUCCESS)
		return ward_fail(e, EIO, "vectorscan failed");
	if (s->rules->bare_count)
		try_bare(s);
	if (!s->final)
		hold_beginnings(s);
	report(s, keep_whole(s));
	give_out(s, out);
	return out && out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int scrub_take(struct scrub *s, const void *bytes, size_t n, bool final, struct buf *out,
	       struct ward_err *e)
{
	const uint8_t *at = bytes;
	int result = 0;

	do {
		size_t some = n < PIECE ? n : PIECE;

		if (some)
			memcpy(s->bytes + s->used, at, some);
		s->used += some;
		at += some;
		n -= some;
		s->final = final && !n;
		result = look(s, out, e);
	} while (result == 0 && (n || (s->final && s->used > s->given)));
	return result;
}

void scrub_flush(struct scrub *s, struct buf *out)
{
	s->hold = s->used;
	give_out(s, out);
}

size_t scrub_held(const struct scrub *s)
{
	return s->used - s->given;
}

uint64_t scrub_count(const struct scrub *s)
{
	return s->count;
}
