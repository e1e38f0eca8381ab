/* Fuzzer of base/text and base/json: whatever the bytes, what is printed is one line of UTF-8
 * without a character that acts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_harmless(const struct buf *out)
{
	const unsigned char *s = (const unsigned char *)buf_text(out);

	while (*s) {
		unsigned point = 0;
		size_t length = text_utf8(s, &point);

		if (!length || text_acts(point))
			abort();
		s += length;
	}
}

/* A quoted string ends at its own last byte, and every backslash begins an escape that JSON
 * knows. */
static void check_quoted(const struct buf *out)
{
	const char *s = buf_text(out);

	if (*s++ != '"')
		abort();
	for (; *s && *s != '"'; s++) {
		if (*s != '\\')
			continue;
		s++;
		if (*s == 'u') {
			if (strspn(s + 1, "0123456789abcdef") < 4)
				abort();
			s += 4;
		} else if (*s != '"' && *s != '\\') {
			abort();
		}
	}
	if (strcmp(s, "\"") != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	auto_buf escaped = { 0 }, quoted = { 0 }, lines = { 0 };
	auto_free char *text = malloc(n + 1);
	const char *best = NULL;
	unsigned distance = UINT32_MAX;

	if (!text)
		return 0;
	memcpy(text, bytes, n);
	text[n] = '\0';
	text_escape(&escaped, text);
	check_harmless(&escaped);
	text_escape_lines(&lines, text, n);
	for (size_t i = 0; i < lines.len; i++)
		if (lines.data[i] == '\n' || lines.data[i] == '\t')
			lines.data[i] = ' ';
	check_harmless(&lines);
	json_quote(&quoted, text);
	check_harmless(&quoted);
	check_quoted(&quoted);
	text_nearest(text, "filesystem.host_mounts", &best, &distance);
	if (text_distance(text, text) != 0 ||
	    text_distance(text, "timeout") != text_distance("timeout", text))
		abort();
	return 0;
}
