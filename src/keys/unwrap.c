/*
 * Readings without line breaks and without escapes (unwrap.h). In: bytes on their way. Out: the
 * bytes that a decoder would see. Base64 is written in lines of 64, 76 or any other number of
 * characters, and the breaks between them are written as they are, as JSON, URLs or HTML escape
 * them, or as soft breaks of mail; the next line may be indented, or begin as lines of an event
 * stream do. Between two characters of an encoded text at most one such break is left out, so that
 * work and what is held back are bounded. Run by ward-keys.
 */
#include "keys/unwrap.h"

#include <string.h>
#include <strings.h>

#define INDENT_MAX 16
#define BREAK_MAX (14 + INDENT_MAX) /* the longest break, with what begins the next line */

/* Longer ones first: each is the beginning of none behind it. */
static const char *const breaks[] = {
	"\\u000d\\u000a",
	"&#13;&#10;",
	"&#xd;&#xa;",
	"\\\\r\\\\n",
	"\\u000a",
	"\\u000d",
	"%0d%0a",
	"\\r\\n",
	"&#10;",
	"&#13;",
	"&#xa;",
	"&#xd;",
	"\\\\n",
	"\\\\r",
	"=\r\n",
	"%0a",
	"%0d",
	"\\n",
	"\\r",
	"\r\n",
	"=\n",
	"\n",
	"\r",
};

/* Whether a character may be one of base64 or hexadecimal, in whichever alphabet. */
static bool is_encoded(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '/' || c == '-' || c == '_';
}

static bool may_break(uint8_t c)
{
	return c == '\n' || c == '\r' || c == '\\' || c == '%' || c == '&' || c == '=';
}

static const char *const marks[] = { "data: ", "data:", "> ", ">" };

/* What a line begins with before its text. */
static size_t line_begin(const uint8_t *bytes, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (n >= strlen(marks[i]) && memcmp(bytes, marks[i], strlen(marks[i])) == 0)
			return strlen(marks[i]);
	while (len < n && len < INDENT_MAX && (bytes[len] == ' ' || bytes[len] == '\t'))
		len++;
	return len;
}

/* How long the break is that these bytes begin with; 0: none. */
static size_t break_length(const uint8_t *bytes, size_t n)
{
	if (!n || !may_break(*bytes))
		return 0;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++) {
		size_t len = strlen(breaks[i]);

		if (n >= len && strncasecmp((const char *)bytes, breaks[i], len) == 0)
			return len + line_begin(bytes + len, n - len);
	}
	return 0;
}

void reading_unwrap(const uint8_t *bytes, size_t n, struct reading *r)
{
	size_t at = 0;

	r->len = 0;
	r->differs = false;
	while (at < n && r->len < r->room) {
		size_t skip = at && may_break(bytes[at]) && is_encoded(bytes[at - 1])
				      ? break_length(bytes + at, n - at)
				      : 0;

		if (skip && at + skip < n && is_encoded(bytes[at + skip])) {
			at += skip;
			r->differs = true;
		}
		r->at[r->len] = (uint32_t)at;
		r->bytes[r->len++] = bytes[at++];
	}
	r->used = at;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void reading_unescape(const uint8_t *bytes, size_t n, struct reading *r)
{
	size_t at = 0;

	r->len = 0;
	r->differs = false;
	while (at < n && r->len < r->room) {
		int high = bytes[at] == '%' && n - at >= 3 ? hex_digit(bytes[at + 1]) : -1,
		    low = high >= 0 ? hex_digit(bytes[at + 2]) : -1;

		r->at[r->len] = (uint32_t)at;
		r->bytes[r->len++] = (uint8_t)(low >= 0 ? high << 4 | low : bytes[at]);
		r->differs |= low >= 0;
		at += low >= 0 ? 3 : 1;
	}
	r->used = at;
}

/* Whether these bytes, all of them, may begin a line before its text. */
static bool may_begin_line(const uint8_t *bytes, size_t n)
{
	if (!n || line_begin(bytes, n) == n)
		return true;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (n < strlen(marks[i]) && memcmp(bytes, marks[i], n) == 0)
			return true;
	return false;
}

/* Whether these bytes, all of them, are a break, or the beginning of one. */
static bool may_be_break(const uint8_t *bytes, size_t n)
{
	if (!may_break(*bytes))
		return false;
	for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++) {
		size_t len = strlen(breaks[i]);

		if (strncasecmp((const char *)bytes, breaks[i], n < len ? n : len) == 0 &&
		    (n < len || may_begin_line(bytes + len, n - len)))
			return true;
	}
	return false;
}

size_t unwrap_end(const uint8_t *bytes, size_t n)
{
	for (size_t len = n && n - 1 < BREAK_MAX ? n - 1 : BREAK_MAX; n && len; len--)
		if (is_encoded(bytes[n - len - 1]) && may_be_break(bytes + n - len, len))
			return n - len;
	return n;
}
