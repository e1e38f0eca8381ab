/*
 * Quoting for policy documents. In: any text, also one that a sandbox has chosen (a file's name).
 * Out: a double-quoted scalar of YAML. Pure.
 *
 * What is not plain is written as \uXXXX: raw, YAML would fold some characters (U+0085, U+2028)
 * into spaces, refuse others (U+007F, U+FFFE), and people could not see those that turn or hide
 * text. Letters beyond ASCII stay as they are where they only show.
 */
#include "policy/quote.h"

#include "base/text.h"

static void put_escape(struct buf *out, unsigned point)
{
	buf_printf(out, point > 0xffff ? "\\U%08x" : "\\u%04x", point);
}

/* Whether it may stand as it is: what only shows. */
static bool is_plain(unsigned point)
{
	if (point < 0xa1)
		return point >= 0x20 && point < 0x7f && point != '"' && point != '\\';
	return (point < 0xd800 || point > 0xffff) && !(point >= 0x2000 && point < 0x2070) &&
	       !text_acts(point);
}

bool policy_quote(struct buf *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (!text_is_utf8(text))
		return false;
	buf_puts(out, "\"");
	while (*at) {
		unsigned point = 0;
		size_t n = text_utf8(at, &point);

		if (is_plain(point))
			buf_add(out, at, n);
		else if (point == '"' || point == '\\')
			buf_printf(out, "\\%c", (char)point);
		else
			put_escape(out, point);
		at += n;
	}
	buf_puts(out, "\"");
	return true;
}
