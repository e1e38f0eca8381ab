/*
 * JSON writer. In: keys and values. Out: one line of valid UTF-8 JSON, whatever bytes the strings
 * held, so that nothing a sandbox names can break or forge a line, or act on a terminal that shows
 * it. Runs in every process, no rights.
 */
#include "base/json.h"

#include <inttypes.h>

#include "base/text.h"

static void json_key(struct json *j, const char *key)
{
	if (j->comma)
		buf_puts(j->out, ",");
	j->comma = true;
	if (key) {
		json_quote(j->out, key);
		buf_puts(j->out, ":");
	}
}

static void json_open(struct json *j, const char *key, const char *bracket)
{
	json_key(j, key);
	buf_puts(j->out, bracket);
	j->depth++;
	j->comma = false;
}

static void json_close(struct json *j, const char *bracket)
{
	buf_puts(j->out, bracket);
	j->depth--;
	j->comma = true;
}

void json_begin_object(struct json *j, const char *key)
{
	json_open(j, key, "{");
}

void json_end_object(struct json *j)
{
	json_close(j, "}");
}

void json_begin_array(struct json *j, const char *key)
{
	json_open(j, key, "[");
}

void json_end_array(struct json *j)
{
	json_close(j, "]");
}

void json_begin_list(struct json *j, const char *key)
{
	json_begin_object(j, NULL);
	json_begin_array(j, key);
}

void json_end_list(struct json *j)
{
	json_end_array(j);
	json_end_object(j);
	buf_puts(j->out, "\n");
}

void json_string(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	if (value)
		json_quote(j->out, value);
	else
		buf_puts(j->out, "null");
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	char digits[20]; /* of UINT64_MAX */
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	json_key(j, key);
	buf_add(j->out, digits + at, sizeof(digits) - at);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	buf_printf(j->out, "%" PRId64, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	buf_puts(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	json_string(j, key, NULL);
}

/* A character as JSON's escape, in two halves beyond the first plane. */
static void escape_point(struct buf *out, unsigned point)
{
	if (point < 0x10000)
		buf_printf(out, "\\u%04x", point);
	else
		buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
			   0xdc00 + ((point - 0x10000) & 0x3ff));
}

/* Printable ASCII that JSON takes as it is. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_quote(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_puts(out, "\"");
	while (*s) {
		unsigned point = 0;
		size_t n = 0;

		while (is_plain(s[n]))
			n++;
		if (n) {
			buf_add(out, s, n);
			s += n;
			continue;
		}
		n = text_utf8(s, &point);
		if (!n) {
			buf_puts(out, "\\ufffd");
			n = 1;
		} else if (text_acts(point)) {
			escape_point(out, point);
		} else {
			buf_add(out, "\\", *s == '"' || *s == '\\');
			buf_add(out, s, n);
		}
		s += n;
	}
	buf_puts(out, "\"");
}
