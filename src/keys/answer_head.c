/*
 * Heads of answers (answer_head.h). In: the lines of a head, as of HTTP/1.1. Out: whether what
 * follows can be looked through as it comes. A client may take the last of two fields, or both, or
 * a folded one; so each must be harmless. Run by ward-keys, for both versions of HTTP.
 */
#include "keys/answer_head.h"

#include <string.h>
#include <strings.h>

/* What the value of a field must be: one of these, or nothing. */
static const struct {
	const char *name, *harmless[2];
} codings[] = {
	{ "content-encoding", { "identity", "aws-chunked" } },
	{ "grpc-encoding", { "identity", "identity" } },
	{ "transfer-encoding", { "chunked", "chunked" } },
};

struct text {
	const char *s;
	size_t n;
};

static struct text trim(struct text t)
{
	while (t.n && (*t.s == ' ' || *t.s == '\t'))
		t = (struct text){ t.s + 1, t.n - 1 };
	while (t.n && (t.s[t.n - 1] == ' ' || t.s[t.n - 1] == '\t' || t.s[t.n - 1] == '\r'))
		t.n--;
	return t;
}

static bool is(struct text t, const char *what)
{
	return t.n == strlen(what) && strncasecmp(t.s, what, t.n) == 0;
}

/* The next line without its end; false: there is none. */
static bool next_line(struct text *rest, struct text *ret)
{
	const char *end = rest->n ? memchr(rest->s, '\n', rest->n) : NULL;
	size_t n = end ? (size_t)(end - rest->s) : rest->n;

	if (!rest->n)
		return false;
	*ret = (struct text){ rest->s, n };
	*rest = (struct text){ rest->s + n + (end != NULL), rest->n - n - (end != NULL) };
	if (ret->n && ret->s[ret->n - 1] == '\r')
		ret->n--;
	return true;
}

static bool line_hides(struct text line)
{
	const char *colon = line.n ? memchr(line.s, ':', line.n) : NULL;
	struct text name, value;

	if (!line.n)
		return false;
	if (*line.s == ' ' || *line.s == '\t' ||
	    memchr(line.s, '\r', line.n)) /* it goes on with the line before, or is two */
		return true;
	if (!colon)
		return false;
	name = trim((struct text){ line.s, (size_t)(colon - line.s) });
	value = trim((struct text){ colon + 1, line.n - (size_t)(colon - line.s) - 1 });
	if (is(name, "content-type") && value.n >= 20 &&
	    strncasecmp(value.s, "multipart/byteranges", 20) == 0)
		return true;
	for (size_t i = 0; i < sizeof(codings) / sizeof(*codings); i++)
		if (is(name, codings[i].name))
			return value.n && !is(value, codings[i].harmless[0]) &&
			       !is(value, codings[i].harmless[1]);
	return false;
}

bool answer_hides(const struct buf *lines, bool status)
{
	struct text rest = { lines->data, lines->len }, line;
	bool first = status, hides = false;

	while (!hides && next_line(&rest, &line)) {
		hides = !first && line_hides(line);
		first = false;
	}
	return hides;
}

bool answer_has(const struct buf *lines, const char *name)
{
	struct text rest = { lines->data, lines->len }, line;

	while (next_line(&rest, &line)) {
		const char *colon = line.n ? memchr(line.s, ':', line.n) : NULL;

		if (colon && is(trim((struct text){ line.s, (size_t)(colon - line.s) }), name))
			return true;
	}
	return false;
}
