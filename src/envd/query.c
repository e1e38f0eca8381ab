/*
 * Reading queries and forms (query.h). In: bytes of a client. Out: decoded texts without a NUL, so
 * that no C string ends early. Run by wardd and by ward-envd. Pure.
 */
#include "envd/query.h"

#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool query_decode(const char *text, size_t n, bool plus, struct buf *out)
{
	if (!buf_reserve(out, n + 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '%') {
			int high = n - i >= 3 ? hex(text[i + 1]) : -1,
			    low = n - i >= 3 ? hex(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (!c)
			return false;
		out->data[out->len++] = c;
	}
	out->data[out->len] = '\0';
	return true;
}

static void empty(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

int query_next(const char *query, size_t n, size_t *at, struct buf *name, struct buf *value)
{
	const char *end, *equals;
	size_t len;

	while (*at < n && query[*at] == '&')
		++*at;
	if (*at >= n)
		return 0;
	end = memchr(query + *at, '&', n - *at);
	len = end ? (size_t)(end - (query + *at)) : n - *at;
	equals = memchr(query + *at, '=', len);
	empty(name);
	empty(value);
	if (!query_decode(query + *at, equals ? (size_t)(equals - (query + *at)) : len, true, name))
		return -1;
	if (equals &&
	    !query_decode(equals + 1, len - (size_t)(equals + 1 - (query + *at)), true, value))
		return -1;
	*at += len;
	return 1;
}

int query_get(const char *query, size_t n, const char *name, struct buf *out)
{
	auto_buf key = { 0 }, value = { 0 };
	size_t at = 0;
	int r;

	while ((r = query_next(query, n, &at, &key, &value)) > 0)
		if (strcmp(buf_text(&key), name) == 0) {
			buf_add(out, buf_text(&value), value.len);
			return out->failed ? -1 : 1;
		}
	return r;
}
