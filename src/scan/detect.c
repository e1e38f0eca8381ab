/*
 * The engine of ward scan. In: a stream of bytes that anyone may have written, window by window.
 * Out: hits of the rows of tables/scan.def, in order. Runs in ward-scan, which is locked up before
 * it reads the first byte; the fuzzer fuzz/detect.c feeds it in pieces of any length.
 *
 * Two steps. Vectorscan looks for the short texts of all rows at once, at some gigabytes a second,
 * and says where they end. Only there the row's pattern is tried (pattern.c), and its checks
 * (check.c). Rows without a text, of personal data, are tried at the beginning of each word that
 * could be a number.
 *
 * A window is what was kept, and new bytes behind it. A text that ends less than AHEAD bytes before
 * the end of the window waits for the next one; BEHIND bytes in front of the first that waits are
 * kept, too. So each text is tried once, with all that a pattern may need around it.
 *
 * Several rows may match the same bytes: the more specific one counts, see better(). A window
 * reports at most HITS_MAX hits: the further ones of a flood are left out, never all of them.
 */
#include "scan/detect.h"

#include <ctype.h>
#include <emmintrin.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan/detect_internal.h"

#define FRESH (256 * 1024)
#define WINDOW (BEHIND + AHEAD + FRESH)
#define HITS_MAX 4096
#define BINARY_LOOK 8192

struct detector {
	const struct detect_rules *rules;
	hs_scratch_t *scratch;
	detect_found *found;
	void *ctx;
	size_t used;       /* bytes in the window */
	size_t done;       /* those before this were tried */
	uint64_t offset;   /* of the window in the stream */
	uint64_t lines;    /* line ends before the window */
	uint64_t reported; /* the end of the last secret in the stream */
	bool begun, binary, final;
	size_t hit_count;
	struct found hits[HITS_MAX];
	uint8_t window[WINDOW];
};

static void try_row(struct detector *d, size_t row, size_t at)
{
	struct found f;

	if (d->hit_count == HITS_MAX || (d->binary && detect_rows[row].flags & TEXT))
		return;
	if (detect_judge(d->rules, row, d->window, d->used, at, true, &f) == PLACE_FOUND &&
	    d->offset + f.start >= d->reported)
		d->hits[d->hit_count++] = f;
}

/* -- one window */

static size_t limit_of(const struct detector *d)
{
	return d->final ? d->used : d->used > AHEAD ? d->used - AHEAD : 0;
}

static int at_text(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
		   void *ctx)
{
	struct detector *d = ctx;

	(void)from;
	(void)flags;
	if (to > d->done && to <= limit_of(d))
		try_row(d, d->rules->texts[id].row, (size_t)to - d->rules->texts[id].bytes);
	return 0;
}

static void try_bare(struct detector *d)
{
	for (size_t at = d->done; at < limit_of(d); at++) {
		uint8_t c = d->window[at];

		if (!isdigit(c) && !isupper(c) && c != '+' && c != '(')
			continue;
		if (!detect_begins_word(d->window, at))
			continue;
		for (size_t i = 0; i < d->rules->bare_count; i++)
			try_row(d, d->rules->bare[i], at);
	}
}

/* Line ends in n bytes. */
static uint64_t count_lines(const uint8_t *bytes, size_t n)
{
	const __m128i end = _mm_set1_epi8('\n');
	uint64_t lines = 0;

	for (; n >= 16; n -= 16, bytes += 16) {
		__m128i piece = _mm_loadu_si128((const __m128i *)(const void *)bytes);
		int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(piece, end));

		lines += (unsigned)__builtin_popcount((unsigned)equal);
	}
	for (; n; n--)
		lines += *bytes++ == '\n';
	return lines;
}

static void report(struct detector *d)
{
	size_t n = detect_settle(d->hits, d->hit_count), counted = 0;
	uint64_t line = d->lines + 1;

	for (size_t i = 0; i < n; i++) {
		const struct found *f = &d->hits[i];
		size_t begin = f->start;
		struct detect_hit hit = { .rule = f->rule,
					  .offset = d->offset + f->start,
					  .secret = d->window + f->start,
					  .secret_bytes = f->end - f->start };

		line += count_lines(d->window + counted, f->start - counted);
		counted = f->start;
		while (begin && d->window[begin - 1] != '\n')
			begin--;
		hit.line = line;
		hit.column = f->start - begin + 1;
		d->reported = d->offset + f->end;
		d->found(d->ctx, &hit);
	}
	d->hit_count = 0;
}

/* Keeps what the next window needs, at the front of the window. */
static void slide(struct detector *d)
{
	size_t limit = limit_of(d), keep = limit > BEHIND ? limit - BEHIND : 0;

	d->lines += count_lines(d->window, keep);
	memmove(d->window, d->window + keep, d->used - keep);
	d->used -= keep;
	d->done = limit - keep;
	d->offset += keep;
}

/* -- the stream */

int detector_new(const struct detect_rules *r, detect_found *found, void *ctx,
		 struct detector **ret, struct ward_err *e)
{
	struct detector *d = malloc(sizeof(*d));

	if (!d)
		return ward_fail(e, ENOMEM, "out of memory");
	d->scratch = NULL;
	d->rules = r;
	d->found = found;
	d->ctx = ctx;
	if (hs_alloc_scratch(r->database, &d->scratch) != HS_SUCCESS) {
		free(d);
		return ward_fail(e, ENOMEM, "vectorscan has no memory to work in");
	}
	detector_begin(d);
	*ret = d;
	return 0;
}

void detector_free(struct detector *d)
{
	if (!d)
		return;
	hs_free_scratch(d->scratch);
	explicit_bzero(d->window, sizeof(d->window));
	free(d);
}

void detector_begin(struct detector *d)
{
	d->used = d->done = d->hit_count = 0;
	d->offset = d->lines = d->reported = 0;
	d->begun = d->binary = d->final = false;
}

bool detector_is_binary(const struct detector *d)
{
	return d->binary;
}

uint8_t *detector_room(struct detector *d, size_t *ret_bytes)
{
	*ret_bytes = sizeof(d->window) - d->used;
	return d->window + d->used;
}

int detector_fill(struct detector *d, size_t bytes, struct ward_err *e)
{
	size_t look;

	d->used += bytes;
	d->final = bytes == 0;
	if (!d->final && d->used < sizeof(d->window))
		return 0; /* full windows only: bytes near their ends are read twice */
	if (!d->begun && d->used) {
		look = d->used < BINARY_LOOK ? d->used : BINARY_LOOK;
		d->binary = memchr(d->window, 0, look);
		d->begun = true;
	}
	if (d->used && hs_scan(d->rules->database, (const char *)d->window, (unsigned)d->used, 0,
			       d->scratch, at_text, d) != HS_SUCCESS)
		return ward_fail(e, EIO, "vectorscan failed");
	if (d->rules->bare_count && !d->binary)
		try_bare(d);
	report(d);
	slide(d);
	return 0;
}
