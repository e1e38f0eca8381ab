/*
 * Normal paths (http_path.h). In: bytes of a request's target. Out: the form that is decided about
 * and forwarded. Pure, no allocation; run by front for rules that say something about paths.
 */
#include "rules/http_path.h"

#include <stdint.h>
#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

/* What may stand in a path as it is. */
static bool is_plain(uint8_t c)
{
	return is_unreserved(c) || (c && strchr("!$&'()*+,;=:@/", c));
}

/* Sequences of UTF-8 that say in more bytes what less could say, or nothing. */
static bool is_overlong(uint8_t before, uint8_t c)
{
	return c == 0xc0 || c == 0xc1 || c >= 0xf5 || (before == 0xe0 && c < 0xa0) ||
	       (before == 0xf0 && c < 0x90);
}

/* "%25" is the sign itself: a server that decodes twice would see what stands behind it. */
static bool hides_an_escape(const char *s, size_t n)
{
	static const char *const hidden[] = { "2e", "2f", "5c", "00", "25" };

	for (size_t i = 0; n >= 2 && i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (s[0] == hidden[i][0] && (s[1] | 0x20) == (hidden[i][1] | 0x20))
			return true;
	return false;
}

static bool put(struct http_path *p, uint8_t c, bool escaped)
{
	static const char digits[] = "0123456789ABCDEF";

	if (p->len + (escaped ? 3 : 1) > sizeof(p->text))
		return false;
	if (escaped) {
		p->text[p->len++] = '%';
		p->text[p->len++] = digits[c >> 4];
		p->text[p->len++] = digits[c & 15];
	} else {
		p->text[p->len++] = (char)c;
	}
	return true;
}

/* One spelling for every character. */
static bool respell(const char *s, size_t n, struct http_path *p)
{
	uint8_t before = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)s[i];
		bool escaped = c == '%';

		if (escaped) {
			if (i + 2 >= n || hex(s[i + 1]) < 0 || hex(s[i + 2]) < 0)
				return false;
			c = (uint8_t)(hex(s[i + 1]) << 4 | hex(s[i + 2]));
			i += 2;
			p->two |= c == '/' || c == '\\';
		} else if (c == '\\' || c == '#' || c == '?') {
			return false;
		}
		if (c < ' ' || c == 0x7f || is_overlong(before, c))
			return false;
		if (!put(p, c, escaped ? !is_unreserved(c) : !is_plain(c)))
			return false;
		before = c;
	}
	return true;
}

static bool has_hidden(const struct http_path *p)
{
	for (size_t i = 0; i + 3 < p->len; i++)
		if (memcmp(p->text + i, "%25", 3) == 0 &&
		    hides_an_escape(p->text + i + 3, p->len - i - 3))
			return true;
	return false;
}

/* "..;x" is ".." to some. */
static size_t dots(const char *s, size_t n)
{
	size_t k = 0;

	while (k < n && s[k] == '.')
		k++;
	return (k == 1 || k == 2) && (k == n || s[k] == ';') ? k : 0;
}

/* Resolves "." and "..", drops empty segments; in place. strict: anything to resolve is refused. */
static bool resolve(char *text, size_t *len, bool strict)
{
	size_t out = 0, n = *len;
	bool directory = false;

	for (size_t i = 0; i < n;) {
		size_t begin = i + 1, end = begin, k;

		while (end < n && text[end] != '/')
			end++;
		k = dots(text + begin, end - begin);
		directory = k || begin == end;
		if ((k && (strict || k != end - begin)) || (strict && begin == end && end < n))
			return false;
		if (k == 2) {
			if (!out)
				return false; /* beyond the root */
			while (text[--out] != '/')
				;
		} else if (!directory) {
			text[out++] = '/';
			memmove(text + out, text + begin, end - begin);
			out += end - begin;
		}
		i = end;
	}
	if (directory || !out)
		text[out++] = '/';
	*len = out;
	return true;
}

/* The same with escaped slashes taken for slashes. */
static bool read_other(struct http_path *p)
{
	for (size_t i = 0; i < p->len; i++) {
		bool slash =
			i + 2 < p->len && p->text[i] == '%' &&
			(memcmp(p->text + i, "%2F", 3) == 0 || memcmp(p->text + i, "%5C", 3) == 0);

		p->other[p->other_len++] = slash ? '/' : p->text[i];
		i += slash ? 2 : 0;
	}
	return resolve(p->other, &p->other_len, true);
}

bool http_path_read(const char *s, size_t n, struct http_path *ret)
{
	size_t len;

	ret->len = ret->other_len = 0;
	ret->two = false;
	if (!n || s[0] != '/' || !respell(s, n, ret) || has_hidden(ret))
		return false;
	len = ret->len;
	if (!resolve(ret->text, &ret->len, false))
		return false;
	ret->resolved = ret->len != len;
	return !ret->two || read_other(ret);
}

/* 1 where "\\*" stands, a star that is meant. */
static size_t is_escape(const char *pattern, size_t n, size_t at)
{
	return pattern[at] == '\\' && at + 1 < n && pattern[at + 1] == '*';
}

bool http_glob(const char *pattern, size_t pattern_len, const char *s, size_t n)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < n) {
		if (p < pattern_len && pattern[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < pattern_len &&
			   pattern[p + is_escape(pattern, pattern_len, p)] == s[i]) {
			p += 1 + is_escape(pattern, pattern_len, p);
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern_len && pattern[p] == '*')
		p++;
	return p == pattern_len;
}
