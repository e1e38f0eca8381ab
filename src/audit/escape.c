/*
 * Escapes of the formats that events are exported in. In: bytes that a sandbox may have chosen.
 * Out: text that stays in its place. Pure functions over (pointer, length), fuzzed (fuzz/export.c):
 * one walk over the characters for all, a row of special characters for each format. Characters
 * that act (control characters, marks that turn or hide text) never come out as they are, whatever
 * the format allows: logs are read in a terminal or a browser.
 */
#include "audit/escape.h"

#include <string.h>

#include "base/text.h"

/* What stands for a character; NULL: itself. */
typedef const char *(*special_fn)(unsigned point);

/* lead: what stands before the digits of a character that acts. */
static void walk(struct buf *out, const char *text, size_t n, special_fn special, const char *lead,
		 bool pairs)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + n;

	while (s < end) {
		unsigned char whole[5] = { 0 };
		unsigned point = 0;
		size_t left = (size_t)(end - s), len = 0;
		const char *instead;

		while (len < left && s[len] >= 0x20 && s[len] < 0x7f && !special(s[len]))
			len++;
		buf_add(out, s, len);
		s += len;
		left -= len;
		if (!left)
			break;
		memcpy(whole, s, left < 4 ? left : 4);
		len = text_utf8(whole, &point);
		instead = len ? special(point) : NULL;
		if (!len || len > left || (!point && !instead))
			buf_puts(out, "\xef\xbf\xbd");
		else if (instead)
			buf_puts(out, instead);
		else if (!text_acts(point))
			buf_add(out, s, len);
		else if (pairs && point >= 0x10000)
			buf_printf(out, "%s%04x%s%04x", lead, 0xd800 + ((point - 0x10000) >> 10),
				   lead, 0xdc00 + ((point - 0x10000) & 0x3ff));
		else
			buf_printf(out, "%s%04x", lead, point);
		s += len && len <= left ? len : 1;
	}
}

static const char *json_special(unsigned point)
{
	return point == '"'    ? "\\\""
	       : point == '\\' ? "\\\\"
	       : point == '\n' ? "\\n"
	       : point == '\t' ? "\\t"
	       : point == '\r' ? "\\r"
	       : point == 0    ? "\\u0000"
			       : NULL;
}

void escape_json(struct buf *out, const char *text, size_t n)
{
	buf_puts(out, "\"");
	walk(out, text, n, json_special, "\\u", true);
	buf_puts(out, "\"");
}

static const char *header_special(unsigned point)
{
	return point == '|'                                      ? "\\|"
	       : point == '\\'                                   ? "\\\\"
	       : point == '\n' || point == '\r' || point == '\t' ? " "
								 : NULL;
}

void escape_cef_header(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, header_special, "\\\\u", false);
}

static const char *value_special(unsigned point)
{
	return point == '='                     ? "\\="
	       : point == '\\'                  ? "\\\\"
	       : point == '\n' || point == '\r' ? "\\n"
	       : point == '\t'                  ? " "
						: NULL;
}

void escape_cef_value(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, value_special, "\\\\u", false);
}

static const char *sd_special(unsigned point)
{
	return point == '"'                                      ? "\\\""
	       : point == '\\'                                   ? "\\\\"
	       : point == ']'                                    ? "\\]"
	       : point == '\n' || point == '\r' || point == '\t' ? " "
								 : NULL;
}

void escape_sd(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, sd_special, "\\\\u", false);
}

static const char *line_special(unsigned point)
{
	return point == '\n' || point == '\r' || point == '\t' ? " " : NULL;
}

void escape_line(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, line_special, "\\u", false);
}

static const char *html_special(unsigned point)
{
	return point == '&'    ? "&amp;"
	       : point == '<'  ? "&lt;"
	       : point == '>'  ? "&gt;"
	       : point == '"'  ? "&quot;"
	       : point == '\'' ? "&#39;"
	       : point == '\n' ? "\\n"
			       : NULL;
}

void escape_html(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, html_special, "\\u", false);
}

static const char *label_special(unsigned point)
{
	return point == '"' ? "\\\"" : point == '\\' ? "\\\\" : point == '\n' ? "\\n" : NULL;
}

void escape_label(struct buf *out, const char *text, size_t n)
{
	walk(out, text, n, label_special, "\\\\u", false);
}
