/*
 * Allow lists and baselines. In: the text of a file that the user has named; never one that merely
 * lies in the scanned tree, because whoever planted a secret there could write it, too. Out: what
 * is not counted. Pure functions, fuzzed by fuzz/allow.c. One line is one permission with its
 * reason:
 *
 *	fingerprint 0123456789abcdef REASON	that secret, by that rule, wherever it is
 *	path GLOB REASON			everything in these files
 *	rule ID GLOB REASON			one rule in these files
 *
 * Empty lines and those that begin with # are skipped; anything else is an error: a line that is
 * misread would hide a secret.
 */
#include "scan/allow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan/detect.h"

#define LINES_MAX 1000000

void allow_free(struct allow *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->lines[i].glob);
	free(a->lines);
	*a = (struct allow){ 0 };
}

/* The next word of the line; false: there is none. */
static bool next_word(const char **text, const char *end, const char **ret, size_t *ret_bytes)
{
	const char *t = *text;

	while (t < end && (*t == ' ' || *t == '\t'))
		t++;
	*ret = t;
	while (t < end && *t != ' ' && *t != '\t')
		t++;
	*ret_bytes = (size_t)(t - *ret);
	*text = t;
	return *ret_bytes;
}

static bool is(const char *word, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(word, text, n) == 0;
}

static const char *read_fingerprint(const char *word, size_t n, struct allow_line *l)
{
	if (n != FINGERPRINT_DIGITS || strspn(word, "0123456789abcdef") < n)
		return "a fingerprint has 16 digits of 0-9a-f";
	memcpy(l->fingerprint, word, n);
	return NULL;
}

/* Why the line is wrong; NULL: it is right. *l owns its glob either way. */
static const char *read_line(const char *text, const char *end, struct allow_line *l)
{
	const char *kind, *word;
	size_t kind_bytes, n;
	bool rule;

	if (!next_word(&text, end, &kind, &kind_bytes) || !next_word(&text, end, &word, &n))
		return "expected fingerprint, path or rule, and what it allows";
	rule = is(kind, kind_bytes, "rule");
	if (rule) {
		l->rule = detect_find_rule(word, n);
		if (l->rule < 0)
			return "no such rule; see ward scan --rules";
		if (!next_word(&text, end, &word, &n))
			return "expected a path behind the rule";
	}
	if (is(kind, kind_bytes, "fingerprint")) {
		const char *why = read_fingerprint(word, n, l);
		if (why)
			return why;
	} else if (rule || is(kind, kind_bytes, "path")) {
		l->glob = strndup(word, n);
		if (!l->glob)
			return "out of memory";
	} else {
		return "expected fingerprint, path or rule";
	}
	return next_word(&text, end, &word, &n) ? NULL : "the reason is missing";
}

static struct allow_line *add_line(struct allow *a)
{
	if (a->count == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 64;
		struct allow_line *more = realloc(a->lines, cap * sizeof(*more));

		if (!more || cap > LINES_MAX)
			return NULL;
		a->lines = more;
		a->cap = cap;
	}
	a->lines[a->count] = (struct allow_line){ .rule = -1 };
	return &a->lines[a->count++];
}

int allow_read(struct allow *a, const char *name, const char *text, size_t n, struct ward_err *e)
{
	const char *end = text + n;

	for (size_t number = 1; text < end; number++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text)), *why = NULL;
		struct allow_line *l;

		stop = stop ? stop : end;
		if (memchr(text, 0, (size_t)(stop - text)))
			return ward_fail(e, EINVAL,
					 "%.200s:%zu: this line has a NUL byte, so it is not a "
					 "list of findings",
					 name, number);
		if (stop > text && *text != '#') {
			l = add_line(a);
			why = l ? read_line(text, stop, l) : "out of memory";
		}
		if (why) {
			ward_fail(e, EINVAL, "%.200s:%zu: %s", name, number, why);
			return ward_remedy(e, "write: fingerprint HEX REASON, path GLOB REASON, or "
					      "rule ID GLOB REASON");
		}
		text = stop + (stop < end);
	}
	return 0;
}

/* Steps that a glob may take on one path, so that no glob takes for ever. */
#define GLOB_STEPS 20000

static bool glob_here(const char *g, const char *p, unsigned *steps)
{
	for (; *g; g++, p++) {
		if (++*steps > GLOB_STEPS)
			return false;
		if (*g == '*') {
			bool deep = g[1] == '*';

			g += 1 + deep;
			for (;; p++) {
				if (glob_here(g, p, steps))
					return true;
				if (!*p || (*p == '/' && !deep) || *steps > GLOB_STEPS)
					return false;
			}
		}
		if (!*p || (*g == '?' ? *p == '/' : *g != *p))
			return false;
	}
	return !*p;
}

bool allow_glob(const char *glob, const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned steps = 0;

	if (strncmp(path, "./", 2) == 0)
		path += 2;
	return glob_here(glob, strchr(glob, '/') || !name ? path : name + 1, &steps);
}

bool allow_covers(const struct allow *a, const char *fingerprint, int rule, const char *path)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct allow_line *l = &a->lines[i];

		if ((!l->fingerprint[0] || strcmp(l->fingerprint, fingerprint) == 0) &&
		    (l->rule < 0 || l->rule == rule) && (!l->glob || allow_glob(l->glob, path)))
			return true;
	}
	return false;
}
