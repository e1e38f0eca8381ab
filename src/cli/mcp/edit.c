/*
 * Text of files for the built-in tools. In: bytes of a file and what a client wants of them. Out:
 * the new text. Pure functions.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cli/mcp/parts.h"

int edit_replace(const struct buf *text, const char *old, const char *new, bool all,
		 struct buf *out)
{
	const char *at = buf_text(text), *end = at + text->len, *hit;
	size_t n = strlen(old);
	int count = 0;

	while (n && (hit = memmem(at, (size_t)(end - at), old, n)) && count < INT_MAX) {
		if (++count > 1 && !all)
			return -EEXIST;
		buf_add(out, at, (size_t)(hit - at));
		buf_puts(out, new);
		at = hit + n;
	}
	buf_add(out, at, (size_t)(end - at));
	return count;
}

size_t edit_lines(const struct buf *text, uint64_t from, uint64_t count, struct buf *out)
{
	const char *at = buf_text(text), *end = at + text->len;
	uint64_t line = 1;
	size_t taken = 0;

	while (at < end && (!count || taken < count)) {
		const char *next = memchr(at, '\n', (size_t)(end - at));

		next = next ? next + 1 : end;
		if (line++ >= from) {
			buf_add(out, at, (size_t)(next - at));
			taken++;
		}
		at = next;
	}
	return taken;
}
