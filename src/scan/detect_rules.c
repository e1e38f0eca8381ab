/*
 * The rows of tables/scan.def, and the judgement about one place. In: bytes that anyone may have
 * written, and a place where vectorscan has found one of the rows' texts. Out: whether the row's
 * pattern matches there and its checks hold. Pure functions, fuzzed by fuzz/detect.c and
 * fuzz/scrub.c.
 *
 * The database of texts comes from two sources: compiled for this processor (detect_compile.c), or
 * compiled when ward was built, for any processor, and only read here: the gateway has no compiler.
 */
#include "scan/detect_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

const struct row detect_rows[ROWS] = {
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

size_t detect_rule_count(void)
{
	return ROWS;
}

const struct detect_rule *detect_rule(size_t i)
{
	return &detect_rows[i].rule;
}

int detect_find_rule(const char *id, size_t n)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(detect_rows[i].rule.id) == n &&
		    memcmp(detect_rows[i].rule.id, id, n) == 0)
			return (int)i;
	return -1;
}

const char *detect_severity(enum severity s)
{
	static const char *const names[] = { "low", "medium", "high" };

	return names[s];
}

/* -- the rules */

static void add_texts(struct detect_rules *r, size_t row)
{
	const char *seek = detect_rows[row].seek;

	if (!*seek)
		r->bare[r->bare_count++] = row;
	while (*seek) {
		size_t n = strcspn(seek, "|");

		r->texts[r->text_count++] =
			(struct detect_text){ seek, (unsigned short)row, (unsigned short)n };
		seek += n + (seek[n] == '|');
	}
}

int detect_rules_prepare(unsigned kinds, struct detect_rules **ret, struct ward_err *e)
{
	struct detect_rules *r = calloc(1, sizeof(*r));
	size_t most = 0;

	for (size_t i = 0; i < ROWS; i++)
		for (const char *s = detect_rows[i].seek; *s; s++)
			most += *s == '|' || !s[1];
	if (r)
		r->texts = calloc(most, sizeof(*r->texts));
	if (!r || !r->texts) {
		free(r);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < ROWS; i++) {
		if (!(detect_rows[i].rule.kind & kinds))
			continue;
		if (!pattern_compile(detect_rows[i].pattern, detect_rows[i].flags & CASELESS,
				     &r->patterns[i])) {
			detect_rules_free(r);
			return ward_fail(e, EINVAL, "the pattern of rule %s is wrong",
					 detect_rows[i].rule.id);
		}
		add_texts(r, i);
	}
	*ret = r;
	return 0;
}

int detect_rules_finish(struct detect_rules *r, struct ward_err *e)
{
	return hs_alloc_scratch(r->database, &r->scratch) == HS_SUCCESS
		       ? 0
		       : ward_fail(e, ENOMEM, "vectorscan has no memory to work in");
}

int detect_rules_load(unsigned kinds, const void *serial, size_t n, struct detect_rules **ret,
		      struct ward_err *e)
{
	struct detect_rules *r = NULL;
	int result = detect_rules_prepare(kinds, &r, e);

	if (result < 0)
		return result;
	if (hs_deserialize_database(serial, n, &r->database) != HS_SUCCESS)
		result = ward_fail(e, EINVAL, "vectorscan cannot use the rules of this build");
	if (result == 0)
		result = detect_rules_finish(r, e);
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
	hs_free_scratch(r->scratch);
	hs_free_database(r->database);
	free(r->texts);
	free(r);
}

/* -- one place */

/* Whether a hit may begin here: not within a word, but behind \n in a string and %3D in a URL. */
bool detect_begins_word(const uint8_t *bytes, size_t at)
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

enum place detect_judge(const struct detect_rules *r, size_t row, const uint8_t *bytes, size_t n,
			size_t at, bool final, struct found *ret)
{
	const struct row *w = &detect_rows[row];
	struct pattern_match m;
	struct part hit, secret;
	bool fits;

	if (w->back)
		at -= pattern_back(&r->patterns[row], bytes, at, w->back);
	if (!(w->flags & INNER) && !detect_begins_word(bytes, at))
		return PLACE_NOTHING;
	fits = pattern_match(&r->patterns[row], bytes, n, at, w->flags & OPEN, &m);
	*ret = (struct found){ row, at, at, at };
	if (m.ran_out && !final)
		return PLACE_UNSURE;
	if (!fits)
		return PLACE_NOTHING;
	hit = (struct part){ bytes + m.start, m.end - m.start };
	secret = (struct part){ bytes + m.secret_start, m.secret_end - m.secret_start };
	if (w->flags & QUOTED && !m.quoted && is_code_behind(bytes, n, m.secret_end))
		return PLACE_NOTHING;
	if (!check_secret(w->check, hit, &secret, m.quoted) || check_entropy(secret) < w->entropy ||
	    (w->check != CHECK_PEM && check_is_placeholder(secret)))
		return PLACE_NOTHING;
	*ret = (struct found){ row, m.secret_start, m.secret_start + secret.n, m.start };
	return PLACE_FOUND;
}

/* Whether a counts rather than b, which has bytes in common with it. */
static bool better(const struct found *a, const struct found *b)
{
	const struct row *x = &detect_rows[a->rule], *y = &detect_rows[b->rule];
	bool general_x = x->flags & QUOTED, general_y = y->flags & QUOTED;

	if (general_x != general_y)
		return general_y;
	if (x->rule.severity != y->rule.severity)
		return x->rule.severity > y->rule.severity;
	return a->end - a->start > b->end - b->start;
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->start != y->start ? (x->start < y->start ? -1 : 1)
	       : x->rule != y->rule ? (x->rule < y->rule ? -1 : 1)
				    : 0;
}

size_t detect_settle(struct found *hits, size_t n)
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
