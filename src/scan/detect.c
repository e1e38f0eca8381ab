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
#include <hs/hs.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "scan/check.h"
#include "scan/pattern.h"

#define AHEAD 9216
#define BEHIND 512
#define FRESH (256 * 1024)
#define WINDOW (BEHIND + AHEAD + FRESH)
#define HITS_MAX 4096
#define BINARY_LOOK 8192

enum { CASELESS = 1, TEXT = 2, QUOTED = 4, INNER = 8, OPEN = 16 };

static const struct {
	struct detect_rule rule;
	const char *seek, *pattern;
	unsigned flags, back, entropy;
	enum check check;
} rows[] = {
#define RULE(id, kind, severity, flags, back, seek, pattern, check, entropy, title, source, date)  \
	{ { id, title, source, date, DETECT_##kind, SEVERITY_##severity },                         \
	  seek,                                                                                    \
	  pattern,                                                                                 \
	  flags,                                                                                   \
	  back,                                                                                    \
	  entropy,                                                                                 \
	  CHECK_##check },
#include "scan.def"
};

struct detect_rules {
	hs_database_t *database;
	struct pattern patterns[ARRAY_LEN(rows)];
	/* of the texts: their row and length, by the number that vectorscan reports */
	size_t text_count;
	struct {
		unsigned short row, bytes;
	} * texts;
	size_t bare[ARRAY_LEN(rows)], bare_count; /* rows without a text */
};

struct found {
	size_t rule, start, end; /* of the secret in the window */
};

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

size_t detect_rule_count(void)
{
	return ARRAY_LEN(rows);
}

const struct detect_rule *detect_rule(size_t i)
{
	return &rows[i].rule;
}

int detect_find_rule(const char *id, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strlen(rows[i].rule.id) == n && memcmp(rows[i].rule.id, id, n) == 0)
			return (int)i;
	return -1;
}

const char *detect_severity(enum severity s)
{
	static const char *const names[] = { "low", "medium", "high" };

	return names[s];
}

/* -- compiling */

/* The lists that vectorscan compiles. */
struct texts {
	struct strv expressions;
	unsigned *flags, *ids;
	size_t count;
};

/* One text as an expression in which nothing is special. */
static void add_text(struct detect_rules *r, struct texts *t, size_t row, const char *text,
		     size_t n)
{
	auto_buf expression = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&expression, "\\x%02x", (unsigned char)text[i]);
	strv_add(&t->expressions, buf_text(&expression));
	t->flags[t->count] = rows[row].flags & CASELESS ? HS_FLAG_CASELESS : 0;
	t->ids[t->count] = (unsigned)t->count;
	r->texts[t->count].row = (unsigned short)row;
	r->texts[t->count].bytes = (unsigned short)n;
	t->count++;
	r->text_count = t->count;
}

static void add_texts(struct detect_rules *r, struct texts *t, size_t row)
{
	const char *seek = rows[row].seek;

	if (!*seek)
		r->bare[r->bare_count++] = row;
	while (*seek) {
		size_t n = strcspn(seek, "|");

		add_text(r, t, row, seek, n);
		seek += n + (seek[n] == '|');
	}
}

static int compile(struct detect_rules *r, const struct texts *t, struct ward_err *e)
{
	hs_compile_error_t *error = NULL;

	if (!t->count || t->expressions.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (hs_compile_multi((const char *const *)t->expressions.items, t->flags, t->ids,
			     (unsigned)t->count, HS_MODE_BLOCK, NULL, &r->database,
			     &error) == HS_SUCCESS)
		return 0;
	ward_fail(e, EINVAL, "vectorscan cannot compile the rules: %.200s",
		  error ? error->message : "unknown error");
	hs_free_compile_error(error);
	return -e->code;
}

int detect_rules_new(unsigned kinds, struct detect_rules **ret, struct ward_err *e)
{
	struct detect_rules *r = calloc(1, sizeof(*r));
	struct texts t = { 0 };
	size_t most = 0;
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (const char *s = rows[i].seek; *s; s++)
			most += *s == '|' || !s[1];
	t.flags = calloc(most, sizeof(*t.flags));
	t.ids = calloc(most, sizeof(*t.ids));
	if (r)
		r->texts = calloc(most, sizeof(*r->texts));
	if (!r || !t.flags || !t.ids || !r->texts)
		result = ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < ARRAY_LEN(rows) && result == 0; i++) {
		if (!(rows[i].rule.kind & kinds))
			continue;
		if (!pattern_compile(rows[i].pattern, rows[i].flags & CASELESS, &r->patterns[i]))
			result = ward_fail(e, EINVAL, "the pattern of rule %s is wrong",
					   rows[i].rule.id);
		add_texts(r, &t, i);
	}
	if (result == 0)
		result = compile(r, &t, e);
	strv_free(&t.expressions);
	free(t.flags);
	free(t.ids);
	if (result < 0)
		detect_rules_free(r);
	else
		*ret = r;
	return result;
}

void detect_rules_free(struct detect_rules *r)
{
	if (!r)
		return;
	hs_free_database(r->database);
	free(r->texts);
	free(r);
}

/* -- one place */

/* Whether a hit may begin here: not within a word, but behind \n in a string and %3D in a URL. */
static bool begins_word(const uint8_t *bytes, size_t at)
{
	uint8_t before = at ? bytes[at - 1] : 0;

	if (!isalnum(before) && before != '_')
		return true;
	return (at >= 2 && bytes[at - 2] == '\\') ||
	       (at >= 3 && bytes[at - 3] == '%' && isxdigit(bytes[at - 2]) && isxdigit(before));
}

/* A call, a member or a variable behind the value: it is code. */
static bool is_code_behind(const uint8_t *bytes, size_t n, size_t at)
{
	return at < n && (bytes[at] == '(' || bytes[at] == '[' || bytes[at] == '<');
}

static bool judge(const struct detect_rules *r, size_t row, const uint8_t *bytes, size_t n,
		  size_t at, struct found *ret)
{
	struct pattern_match m;
	struct part hit, secret;

	if (rows[row].back)
		at -= pattern_back(&r->patterns[row], bytes, at, rows[row].back);
	if (!(rows[row].flags & INNER) && !begins_word(bytes, at))
		return false;
	if (!pattern_match(&r->patterns[row], bytes, n, at, rows[row].flags & OPEN, &m))
		return false;
	hit = (struct part){ bytes + m.start, m.end - m.start };
	secret = (struct part){ bytes + m.secret_start, m.secret_end - m.secret_start };
	if (rows[row].flags & QUOTED && !m.quoted && is_code_behind(bytes, n, m.secret_end))
		return false;
	if (!check_secret(rows[row].check, hit, &secret, m.quoted) ||
	    check_entropy(secret) < rows[row].entropy ||
	    (rows[row].check != CHECK_PEM && check_is_placeholder(secret)))
		return false;
	*ret = (struct found){ row, m.secret_start, m.secret_start + secret.n };
	return true;
}

static void try_row(struct detector *d, size_t row, size_t at)
{
	struct found f;

	if (d->hit_count == HITS_MAX || (d->binary && rows[row].flags & TEXT))
		return;
	if (judge(d->rules, row, d->window, d->used, at, &f) && d->offset + f.start >= d->reported)
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
		if (!begins_word(d->window, at))
			continue;
		for (size_t i = 0; i < d->rules->bare_count; i++)
			try_row(d, d->rules->bare[i], at);
	}
}

/* Whether a counts rather than b, which has bytes in common with it. */
static bool better(const struct found *a, const struct found *b)
{
	unsigned general_a = rows[a->rule].flags & QUOTED, general_b = rows[b->rule].flags & QUOTED;

	if (!general_a != !general_b)
		return !general_a;
	if (rows[a->rule].rule.severity != rows[b->rule].rule.severity)
		return rows[a->rule].rule.severity > rows[b->rule].rule.severity;
	return a->end - a->start > b->end - b->start;
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1)
	       : x->rule != y->rule ? (x->rule < y->rule ? -1 : 1)
				    : 0;
}

/* Drops what overlaps something better; the number that is left. */
static size_t settle(struct found *hits, size_t n)
{
	size_t kept = 0;

	qsort(hits, n, sizeof(*hits), by_place);
	for (size_t i = 0; i < n; i++) {
		if (kept && hits[i].start < hits[kept - 1].end) {
			if (better(&hits[i], &hits[kept - 1]))
				hits[kept - 1] = hits[i];
		} else {
			hits[kept++] = hits[i];
		}
	}
	return kept;
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
	size_t n = settle(d->hits, d->hit_count), counted = 0;
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
