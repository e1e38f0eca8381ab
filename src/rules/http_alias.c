/*
 * Other names for the same (http_alias.h). In: names of fields and parameters as a program wrote
 * them. Out: whether a server may take them for the one that a rule or a grant is about. Errs
 * towards "it may". Pure; run by front and by ward-keys.
 */
#include "rules/http_alias.h"

#include <string.h>
#include <strings.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool http_name_like(const char *name, size_t n, const char *word)
{
	if (n != strlen(word))
		return false;
	for (size_t i = 0; i < n; i++) {
		char a = name[i] == '_' ? '-' : lower(name[i]),
		     b = word[i] == '_' ? '-' : lower(word[i]);

		if (a != b)
			return false;
	}
	return true;
}

struct http_text http_field_only(const struct http_fields *f, const char *name, unsigned *ret_count)
{
	struct http_text found = { NULL, 0 };

	*ret_count = 0;
	for (unsigned i = 0; i < f->count; i++) {
		if (!http_name_like(f->items[i].name.s, f->items[i].name.n, name))
			continue;
		if (http_text_is(f->items[i].name, name))
			found = f->items[i].value;
		++*ret_count;
	}
	return *ret_count == 1 ? found : (struct http_text){ NULL, 0 };
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character at *at, without its escape. */
static char next(const char *s, size_t n, size_t *at)
{
	char c = s[(*at)++];

	if (c == '+')
		return ' ';
	if (c != '%' || n - *at < 2 || hex(s[*at]) < 0 || hex(s[*at + 1]) < 0)
		return c;
	c = (char)(hex(s[*at]) << 4 | hex(s[*at + 1]));
	*at += 2;
	return c;
}

/* PHP: spaces in front do not count, and dots and spaces are "_". */
static char plain(char c)
{
	return c == '.' || c == ' ' ? '_' : lower(c);
}

bool http_parameter_like(const char *name, size_t n, const char *word)
{
	size_t at = 0, want = strlen(word), i = 0;
	bool begun = false;

	while (at < n) {
		char c = next(name, n, &at);

		if (!begun && c == ' ')
			continue;
		begun = true;
		if (i == want)
			/* a list of them; the end for a reader that stops at a NUL */
			return c == '[' || c == '\0';
		if (plain(c) != plain(word[i++]))
			return false;
	}
	return i == want;
}

/* The value of a parameter that is so called, by whichever separator. */
static struct http_text parameter(struct http_text query, const char *name, unsigned *which)
{
	for (size_t at = 0; at < query.n;) {
		size_t end = at, sign;

		while (end < query.n && query.s[end] != '&' && query.s[end] != ';')
			end++;
		for (sign = at; sign < end && query.s[sign] != '=';)
			sign++;
		if (http_parameter_like(query.s + at, sign - at, name) && !(*which)--)
			return (struct http_text){ query.s + sign + (sign < end),
						   end - sign - (sign < end) };
		at = end + 1;
	}
	return (struct http_text){ NULL, 0 };
}

struct http_text http_override(const struct http_request *r, unsigned which)
{
	static const char *const names[] = { "x-http-method-override", "x-http-method",
					     "x-method-override" };
	static const char *const parameters[] = { "_method", "_HttpMethod" };

	for (unsigned i = 0; i < r->fields.count; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (http_name_like(r->fields.items[i].name.s, r->fields.items[i].name.n,
					   names[k]) &&
			    !which--)
				return r->fields.items[i].value;
	for (size_t k = 0; k < ARRAY_LEN(parameters); k++) {
		struct http_text value = parameter(r->query, parameters[k], &which);

		if (value.s)
			return value;
	}
	return (struct http_text){ NULL, 0 };
}

bool http_moves_path(const struct http_request *r)
{
	static const char *const names[] = { "x-original-url", "x-rewrite-url" };

	for (unsigned i = 0; i < r->fields.count; i++)
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (http_name_like(r->fields.items[i].name.s, r->fields.items[i].name.n,
					   names[k]))
				return true;
	return false;
}
