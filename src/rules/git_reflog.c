/*
 * Reflogs. In: the bytes of logs/HEAD or a file below logs/refs/. Out: each line's parts, or a
 * refusal. Pure; run by the importer and the sweep, in the supervisor; fuzzed (fuzz/git_ref.c). git
 * reads what it can of a broken line; here a line is what git writes, or the file is refused.
 */
#include "rules/git_reflog.h"

#include <errno.h>
#include <string.h>

static bool is_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return n > 0;
}

/* "NAME <MAIL> SECONDS +ZONE" */
static bool who_ok(const char *s, size_t n)
{
	const char *open = memchr(s, '<', n), *close;
	const char *end = s + n, *zone;

	if (!open || (open > s && open[-1] != ' ') || memchr(s, '>', (size_t)(open - s)))
		return false;
	close = memchr(open, '>', (size_t)(end - open));
	if (!close || memchr(open + 1, '<', (size_t)(end - open - 1)))
		return false;
	if (end - close < 3 || close[1] != ' ')
		return false;
	zone = memchr(close + 2, ' ', (size_t)(end - close - 2));
	return zone && is_digits(close + 2, (size_t)(zone - close - 2)) && zone - close - 2 <= 20 &&
	       end - zone >= 6 && end - zone <= 8 && (zone[1] == '+' || zone[1] == '-') &&
	       is_digits(zone + 2, (size_t)(end - zone - 2));
}

static bool read_line(const char *s, size_t n, unsigned hash, struct git_reflog_line *line)
{
	size_t digits = (size_t)hash * 2, skip = 2 * digits + 2;
	const char *tab;

	if (n <= skip || memchr(s, '\0', n) || memchr(s, '\r', n))
		return false;
	if (!git_is_id(s, digits, hash) || s[digits] != ' ' ||
	    !git_is_id(s + digits + 1, digits, hash) || s[skip - 1] != ' ')
		return false;
	tab = memchr(s + skip, '\t', n - skip);
	*line = (struct git_reflog_line){
		.old_id = s,
		.new_id = s + digits + 1,
		.who = s + skip,
		.who_n = (tab ? (size_t)(tab - s) : n) - skip,
		.message = tab ? tab + 1 : NULL,
		.message_n = tab ? n - (size_t)(tab - s) - 1 : 0,
	};
	return who_ok(line->who, line->who_n);
}

int git_reflog_read(const void *bytes, size_t n, unsigned hash, git_reflog_fn *fn, void *ctx,
		    const char **ret_why)
{
	const char *at = bytes, *end = at + n;
	int status = 0;

	*ret_why = "a reflog has a line that git does not write";
	while (status == 0 && at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct git_reflog_line line;

		if (!stop || !read_line(at, (size_t)(stop - at), hash, &line))
			return -EINVAL;
		if (fn)
			status = fn(ctx, &line);
		at = stop + 1;
	}
	return status;
}
