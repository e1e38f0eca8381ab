/*
 * What gVisor's kernel answers over its control socket. In: bytes of a stream, as far as they have
 * come. Out: one answer. A pure function: no I/O. An attacker who took over the kernel chooses
 * these bytes: a length is bounded, a number lies in its range, and a text is only ever printed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gvisor/gvisor.h"

#define NUMBER_DIGITS 10

/* How many bytes the object at the beginning has; 0: it has not come to its end. */
static size_t object_length(const char *bytes, size_t n)
{
	size_t depth = 0;
	bool text = false;

	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];

		if (text && c == '\\')
			i++;
		else if (c == '"')
			text = !text;
		else if (!text && (c == '{' || c == '['))
			depth++;
		else if (!text && (c == '}' || c == ']') && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* Moves *at behind the word if it is there. */
static bool skip(const char **at, const char *end, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0)
		return false;
	*at += n;
	return true;
}

/* The text up to its closing quote, as it is written there; what is too long is cut. */
static bool read_error(const char **at, const char *end, struct answer *a)
{
	size_t len = 0;

	for (; *at < end && **at != '"'; (*at)++) {
		char c = **at;

		if (c == '\\' && ++*at == end)
			return false;
		if (len + 1 < sizeof(a->error))
			a->error[len++] = c == '\\' || c < ' ' || c > '~' ? ' ' : c;
	}
	a->error[len] = '\0';
	return skip(at, end, "\"");
}

int answer_parse(const char *bytes, size_t n, struct answer *ret_answer)
{
	const char *at = bytes, *end;
	struct answer a = { .result = -1 };
	size_t len, digits = 0;

	if (n == 0)
		return -EAGAIN;
	if (bytes[0] != '{')
		return -EINVAL;
	len = object_length(bytes, n);
	if (!len)
		return n < ANSWER_MAX ? -EAGAIN : -EINVAL;
	end = bytes + len;
	if (!skip(&at, end, "{\"success\":"))
		return -EINVAL;
	a.success = skip(&at, end, "true");
	if ((!a.success && !skip(&at, end, "false")) || !skip(&at, end, ",\"err\":\"") ||
	    !read_error(&at, end, &a))
		return -EINVAL;
	if (skip(&at, end, ",\"result\":") && *at >= '0' && *at <= '9') {
		int64_t value = 0;

		for (; *at >= '0' && *at <= '9' && digits <= NUMBER_DIGITS; digits++)
			value = 10 * value + (*at++ - '0');
		if (digits > NUMBER_DIGITS || *at != '}')
			return -EINVAL;
		a.result = value;
	}
	*ret_answer = a;
	return 0;
}

uint64_t answer_count_threads(const char *bytes, size_t n)
{
	static const char key[] = "\"threads\":[";
	uint64_t count = 0;
	bool text = false, list = false;

	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];

		if (text) { /* names of programs are the command's to choose */
			i += c == '\\';
			text = c != '"';
		} else if (n - i >= sizeof(key) - 1 &&
			   memcmp(bytes + i, key, sizeof(key) - 1) == 0) {
			i += sizeof(key) - 2;
			list = true;
			count += i + 1 < n && bytes[i + 1] != ']';
		} else if (c == '"') {
			text = true;
		} else if (c == ']') {
			list = false;
		} else if (c == ',') {
			count += list;
		}
	}
	return count;
}
