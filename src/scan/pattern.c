/*
 * Patterns of tables/scan.def: compiled once, matched at each place where vectorscan has found one
 * of the row's texts. In: the row's text; bytes of files that anyone may have written. Out: where
 * the match and its secret lie. Pure functions, fuzzed by fuzz/detect.c. A literal text is a set of
 * one byte for each byte, joined where equal, so there is one kind of step to get right.
 */
#include "scan/pattern.h"

#include <string.h>

#define BLANKS_MAX 8
#define CLOSING_MAX 4

static void set_add(uint32_t *set, unsigned byte)
{
	set[byte / 32] |= 1u << (byte % 32);
}

static bool set_has(const uint32_t *set, unsigned byte)
{
	return set[byte / 32] >> (byte % 32) & 1;
}

static void set_add_range(uint32_t *set, unsigned first, unsigned last)
{
	for (unsigned c = first; c <= last; c++)
		set_add(set, c);
}

/* The sets that have a letter. */
static bool set_add_named(uint32_t *set, char name)
{
	static const struct {
		char name;
		const char *ranges; /* pairs */
	} named[] = {
		{ 'a', "azAZ09" },     { 'd', "09" },         { 'h', "09af" },
		{ 'H', "09afAF" },     { 'U', "AZ09" },       { 'w', "azAZ09__" },
		{ 'u', "azAZ09__--" }, { 'b', "azAZ09++//" },
	};

	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (named[i].name == name) {
			for (const char *r = named[i].ranges; *r; r += 2)
				set_add_range(set, (unsigned char)r[0], (unsigned char)r[1]);
			return true;
		}
	return false;
}

/* What stands between [ and ]; behind it, or NULL. */
static const char *read_set(const char *t, uint32_t *set)
{
	bool negated = *t == '^';

	for (t += negated; *t && *t != ']'; t++) {
		if (*t == '#') {
			if (!set_add_named(set, *++t))
				return NULL;
		} else if (t[1] == '-' && t[2] && t[2] != ']') {
			set_add_range(set, (unsigned char)t[0], (unsigned char)t[2]);
			t += 2;
		} else {
			set_add(set, (unsigned char)*t);
		}
	}
	for (int i = 0; negated && i < 8; i++)
		set[i] = ~set[i];
	return *t ? t + 1 : NULL;
}

static const char *read_number(const char *t, unsigned *ret)
{
	const char *first = t;

	for (*ret = 0; *t >= '0' && *t <= '9' && *ret < 100000; t++)
		*ret = *ret * 10 + (unsigned)(*t - '0');
	return t == first ? NULL : t;
}

/* {n} or {n,m}, if there is one; behind it, or NULL. */
static const char *read_counts(const char *t, struct pattern_step *s)
{
	s->least = s->most = 1;
	if (*t != '{')
		return t;
	t = read_number(t + 1, &s->least);
	s->most = s->least;
	if (t && *t == ',')
		t = read_number(t + 1, &s->most);
	return t && *t == '}' && s->most && s->least <= s->most ? t + 1 : NULL;
}

static void add_other_case(uint32_t *set)
{
	for (unsigned c = 'a'; c <= 'z'; c++)
		if (set_has(set, c) || set_has(set, c - 32)) {
			set_add(set, c);
			set_add(set, c - 32);
		}
}

static const char *read_step(const char *t, bool caseless, struct pattern_step *s)
{
	*s = (struct pattern_step){ .what = *t == '%'   ? PATTERN_ASSIGN
					    : *t == '(' ? PATTERN_BEGIN
					    : *t == ')' ? PATTERN_END
							: PATTERN_SET };
	if (s->what != PATTERN_SET)
		return t + 1;
	if (*t == '[') {
		t = read_set(t + 1, s->set);
	} else if (*t == '#') {
		t = set_add_named(s->set, t[1]) ? t + 2 : NULL;
	} else {
		set_add(s->set, (unsigned char)*t++);
	}
	if (caseless)
		add_other_case(s->set);
	return t ? read_counts(t, s) : NULL;
}

bool pattern_compile(const char *text, bool caseless, struct pattern *ret)
{
	bool begun = false, ended = false;

	ret->count = 0;
	while (*text) {
		if (ret->count == PATTERN_STEPS)
			return false;
		struct pattern_step *s = &ret->steps[ret->count++];

		text = read_step(text, caseless, s);
		if (!text)
			return false;
		if ((s->what == PATTERN_BEGIN && begun) ||
		    (s->what == PATTERN_END && (!begun || ended)))
			return false;
		begun |= s->what == PATTERN_BEGIN;
		ended |= s->what == PATTERN_END;
	}
	return ret->count && ret->steps[0].what != PATTERN_ASSIGN && begun == ended;
}

/* -- matching */

static size_t skip(const uint8_t *bytes, size_t n, size_t at, size_t most, const char *of)
{
	size_t count = 0;

	while (count < most && at + count < n && bytes[at + count] && strchr(of, bytes[at + count]))
		count++;
	return at + count;
}

/* "name": "value", name = value, name := `value`, ["name"] => 'value', <name>value */
static bool match_assign(const uint8_t *bytes, size_t n, size_t *at, bool *quoted)
{
	size_t i = skip(bytes, n, *at, CLOSING_MAX, "\\\"'])"), op;

	i = skip(bytes, n, i, BLANKS_MAX, " \t");
	op = i;
	if (i < n && bytes[i] == ',')
		i++;
	else
		i = skip(bytes, n, i, 2, "=:>");
	if (i == op) {
		*at = i;
		return false;
	}
	i = skip(bytes, n, i, BLANKS_MAX, " \t");
	*at = skip(bytes, n, i, 2, "\\\"'`");
	*quoted = *at > i;
	return bytes[op] != ',' || *quoted;
}

bool pattern_match(const struct pattern *p, const uint8_t *bytes, size_t n, size_t at, bool open,
		   struct pattern_match *ret)
{
	struct pattern_match m = { .start = at, .secret_start = at };
	bool more = false, ended = false, fits = true;

	for (size_t i = 0; i < p->count && fits; i++) {
		const struct pattern_step *s = &p->steps[i];
		unsigned count = 0;

		if (s->what == PATTERN_BEGIN) {
			m.secret_start = at;
		} else if (s->what == PATTERN_END) {
			m.secret_end = at;
			ended = true;
		} else if (s->what == PATTERN_ASSIGN) {
			fits = match_assign(bytes, n, &at, &m.quoted);
			m.ran_out |= at == n;
		} else {
			while (count < s->most && at < n && set_has(s->set, bytes[at])) {
				count++;
				at++;
			}
			m.ran_out |= at == n;
			fits = count >= s->least;
			more = s->most > 1 && at < n && set_has(s->set, bytes[at]);
		}
	}
	m.end = at;
	m.secret_end = ended ? m.secret_end : at;
	*ret = m;
	return fits && (open || !more);
}

size_t pattern_back(const struct pattern *p, const uint8_t *bytes, size_t at, size_t most)
{
	size_t count = 0, first = p->steps[0].what == PATTERN_BEGIN && p->count > 1;

	while (count < most && count < at && set_has(p->steps[first].set, bytes[at - count - 1]))
		count++;
	return count;
}
