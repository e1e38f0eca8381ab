/*
 * Text for people. In: bytes that a policy file, a path, an argument or a sandbox chose. Out: one
 * line of text that is safe on a terminal. Pure functions, run in every process, no rights. An
 * escape is written \n, \t, \r, \xNN (a byte) or \u{NNNN} (a character).
 */
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_COMPARED 64

size_t text_utf8(const unsigned char *s, unsigned *ret_point)
{
	static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
	unsigned point;

	if (s[0] < 0x80) {
		*ret_point = s[0];
		return 1;
	}
	if (!n)
		return 0;
	point = s[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (s[i] & 0x3f);
	}
	if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret_point = point;
	return n;
}

/* C0, DEL, C1, directional marks and overrides, separators, zero width, variation selectors,
 * tags. */
bool text_is_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned point;
	size_t n = 1;

	for (; *s && n; s += n)
		n = text_utf8(s, &point);
	return n > 0;
}

bool text_acts(unsigned point)
{
	static const struct {
		unsigned first, last;
	} ranges[] = {
		{ 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad }, { 0x061c, 0x061c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return false;
}

/* Appends what s begins with: a run of plain characters, or one other that acts as an escape.
 * Returns how many bytes that was. */
static size_t escape_next(struct buf *out, const unsigned char *s)
{
	size_t plain = 0, n;
	unsigned point = 0;

	while (s[plain] >= 0x20 && s[plain] < 0x7f)
		plain++;
	buf_add(out, s, plain);
	if (plain)
		return plain;
	n = text_utf8(s, &point);
	if (n && !text_acts(point))
		buf_add(out, s, n);
	else if (*s == '\n' || *s == '\t' || *s == '\r')
		buf_puts(out, *s == '\n' ? "\\n" : *s == '\t' ? "\\t" : "\\r");
	else if (n > 1)
		buf_printf(out, "\\u{%04x}", point);
	else
		buf_printf(out, "\\x%02x", *s);
	return n ? n : 1;
}

void text_escape(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s)
		s += escape_next(out, s);
}

#define WRAP_COLUMNS 79 /* of a terminal with 80: the last one stays empty */

void text_wrap(struct buf *out, const char *s, size_t indent)
{
	size_t column = 0;
	auto_buf plain = { 0 };
	const char *at;

	while (column < out->len && out->data[out->len - 1 - column] != '\n')
		column++;
	text_escape(&plain, s);
	for (at = buf_text(&plain); *at;) {
		size_t n = strcspn(at, " ");

		if (column > indent && column + n > WRAP_COLUMNS) {
			while (out->len && out->data[out->len - 1] == ' ')
				out->data[--out->len] = '\0';
			buf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		n += at[n] == ' ';
		buf_add(out, at, n);
		column += n;
		at += n;
	}
}

void text_entities(struct buf *out, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '&':
			buf_puts(out, "&amp;");
			break;
		case '<':
			buf_puts(out, "&lt;");
			break;
		case '>':
			buf_puts(out, "&gt;");
			break;
		case '"':
			buf_puts(out, "&quot;");
			break;
		case '\'':
			buf_puts(out, "&#39;");
			break;
		default:
			buf_add(out, s, 1);
		}
}

void text_escape_lines(struct buf *out, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + n;

	while (s < end) {
		if (*s == '\n' || *s == '\t')
			buf_add(out, s++, 1);
		else
			s += escape_next(out, s);
	}
}

static unsigned least_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned text_distance(const char *a, const char *b)
{
	unsigned rows[3][NAME_MAX_COMPARED + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	size_t la = strnlen(a, NAME_MAX_COMPARED), lb = strnlen(b, NAME_MAX_COMPARED);

	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *oldest = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);

			now[j] = least_of(least_of(last[j], now[j - 1]) + 1,
					  last[j - 1] + (ca != cb));
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				now[j] = least_of(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = oldest;
	}
	return last[lb];
}

void text_nearest(const char *name, const char *candidate, const char **best,
		  unsigned *best_distance)
{
	size_t length = strlen(name);
	unsigned distance = text_distance(name, candidate);
	unsigned limit = length <= 3 ? 1 : length <= 6 ? 2 : 3;

	if (distance > limit && 2 * length > strlen(candidate) &&
	    strncmp(name, candidate, length) == 0)
		distance = limit; /* the end is missing */
	if (distance > limit || distance >= *best_distance || distance >= length)
		return;
	*best = candidate;
	*best_distance = distance;
}

bool text_is_plain(const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-";

	return *s && strspn(s, plain) == strlen(s);
}

bool text_number_after(const char *text, const char *key, unsigned place, long *ret)
{
	const char *at = strstr(text, key);

	*ret = 0;
	at = at ? at + strlen(key) : "";
	for (unsigned i = 0; i <= place; i++) {
		char *end;

		at += strspn(at, "\t ");
		if (*at < '0' || *at > '9')
			return false;
		*ret = strtol(at, &end, 10);
		at = end;
	}
	return true;
}
