/*
 * The directories that patterns lead through. In: the lines of a gitignore text. Out: a list of
 * patterns that match each parent of what those name. Pure, like ignore.c.
 */
#include <errno.h>
#include <string.h>

#include "policy/ignore.h"

/* "a/b/c" gives "a/b" and "a". */
static int add_parents(struct ignore **ig, const char *line, size_t n)
{
	while (n && line[n - 1] == '/')
		n--;
	for (;;) {
		const char *slash = memrchr(line, '/', n);
		int status;

		if (!slash || slash == line)
			return 0;
		n = (size_t)(slash - line);
		if (n == 2 && memcmp(line, "**", 2) == 0)
			return 0;
		if (!memchr(line, '/', n)) { /* its slash is gone, but it still means the top */
			auto_buf anchored = { 0 };

			buf_puts(&anchored, "/");
			buf_add(&anchored, line, n);
			if (anchored.failed)
				return -ENOMEM;
			return ignore_add(ig, anchored.data, anchored.len);
		}
		status = ignore_add(ig, line, n);
		if (status < 0)
			return status;
	}
}

int ignore_add_parents(struct ignore **ig, const char *text, size_t n)
{
	int status = 0;

	for (size_t at = 0; status >= 0 && at < n;) {
		const char *newline = memchr(text + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - (text + at)) : n - at;

		if (len && text[at] != '!' && text[at] != '#')
			status = add_parents(ig, text + at, len);
		at += len + 1;
	}
	return status;
}
