/*
 * JSON writer. In: keys and values. Out: one line of valid UTF-8 JSON, whatever bytes the strings held, so that
 * nothing a sandbox names can break or forge a line. Runs in every process, no rights.
 */
#include "base/json.h"

#include <inttypes.h>

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
	json_key(j, key);
	buf_printf(j->out, "%" PRIu64, value);
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

/* Length of the valid UTF-8 sequence at s, 0 if it is none (overlong forms and surrogates are none). */
static size_t utf8_sequence(const unsigned char *s)
{
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return (s[1] & 0xc0) == 0x80 ? 2 : 0;
	if (s[0] >= 0xe0 && s[0] <= 0xef) {
		if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80)
			return 0;
		if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
			return 0;
		return 3;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80)
			return 0;
		if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
			return 0;
		return 4;
	}
	return 0;
}

void json_quote(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	buf_puts(out, "\"");
	while (*s) {
		size_t n;

		if (*s == '"' || *s == '\\') {
			buf_printf(out, "\\%c", *s++);
		} else if (*s < 0x20 || *s == 0x7f) {
			buf_printf(out, "\\u%04x", *s++);
		} else if (*s < 0x80) {
			buf_add(out, s++, 1);
		} else if ((n = utf8_sequence(s))) {
			buf_add(out, s, n);
			s += n;
		} else {
			buf_puts(out, "\\ufffd");
			s++;
		}
	}
	buf_puts(out, "\"");
}
