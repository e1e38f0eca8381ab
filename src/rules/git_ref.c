/*
 * Refs. In: the bytes of a ref's file, of HEAD, packed-refs or FETCH_HEAD. Out: ids and names, or a
 * refusal. Pure; run by the importer and the sweep, in the supervisor; fuzzed (fuzz/git_ref.c).
 *
 * git reads more than it writes: it skips blanks behind "ref:", stops at a blank behind an id,
 * takes CR and NUL, and follows a branch that is named like an option. Here only what git writes
 * passes.
 */
#include "rules/git_ref.h"

#include <errno.h>
#include <string.h>

bool git_ref_component_ok(const char *s, size_t n)
{
	if (!n || *s == '-' || *s == '.' || s[n - 1] == '.' || (n == 1 && *s == '@'))
		return false;
	if (n >= 5 && memcmp(s + n - 5, ".lock", 5) == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c <= 0x20 || c == 0x7f || strchr("~^:?*[\\/", c))
			return false;
		if (i && ((c == '.' && s[i - 1] == '.') || (c == '{' && s[i - 1] == '@')))
			return false;
	}
	return true;
}

bool git_ref_name_ok(const char *s, size_t n)
{
	if (n <= 5 || n > 4000 || memcmp(s, "refs/", 5) != 0)
		return false;
	for (size_t at = 5; at <= n;) {
		const char *stop = at < n ? memchr(s + at, '/', n - at) : NULL;
		size_t len = stop ? (size_t)(stop - s) - at : n - at;

		if (!git_ref_component_ok(s + at, len))
			return false;
		at += len + 1;
	}
	return true;
}

enum git_ref_kind git_ref_read(const void *bytes, size_t n, unsigned hash, const char **ret,
			       size_t *ret_n)
{
	const char *text = bytes;

	if (n < 2 || text[n - 1] != '\n')
		return GIT_REF_BAD;
	n--;
	*ret = text;
	*ret_n = n;
	if (git_is_id(text, n, hash))
		return GIT_REF_ID;
	if (n <= 5 || memcmp(text, "ref: ", 5) != 0 || !git_ref_name_ok(text + 5, n - 5))
		return GIT_REF_BAD;
	*ret = text + 5;
	*ret_n = n - 5;
	return GIT_REF_SYMBOLIC;
}

enum git_ref_kind git_head_read(const void *bytes, size_t n, unsigned hash, const char **ret,
				size_t *ret_n)
{
	enum git_ref_kind kind = git_ref_read(bytes, n, hash, ret, ret_n);

	if (kind == GIT_REF_SYMBOLIC && (*ret_n <= 11 || memcmp(*ret, "refs/heads/", 11) != 0))
		return GIT_REF_BAD;
	return kind;
}

/* Takes the next line without its newline from *at; NULL: the rest has none. */
static const char *next_line(const char **at, const char *end, size_t *ret_n)
{
	const char *line = *at,
		   *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;

	if (!stop)
		return NULL;
	*ret_n = (size_t)(stop - line);
	*at = stop + 1;
	return line;
}

/* Whether a line is what git writes over packed-refs: "# pack-refs with:" and plain words. */
static bool is_header(const char *line, size_t n)
{
	static const char start[] = "# pack-refs with:";

	if (n < sizeof(start) - 1 || memcmp(line, start, sizeof(start) - 1) != 0)
		return false;
	for (size_t i = sizeof(start) - 1; i < n; i++)
		if (line[i] != ' ' && line[i] != '-' && !(line[i] >= 'a' && line[i] <= 'z'))
			return false;
	return true;
}

/* One line of packed-refs into *ref; what was in it goes to fn first. */
static int packed_line(const char *line, size_t n, unsigned hash, struct git_packed_ref *ref,
		       git_packed_fn *fn, void *ctx)
{
	size_t digits = (size_t)hash * 2;
	int status = 0;

	if (n == digits + 1 && *line == '^' && git_is_id(line + 1, digits, hash)) {
		if (!ref->name || ref->peeled)
			return -EINVAL;
		ref->peeled = line + 1;
		return 0;
	}
	if (n <= digits + 1 || !git_is_id(line, digits, hash) || line[digits] != ' ' ||
	    !git_ref_name_ok(line + digits + 1, n - digits - 1))
		return -EINVAL;
	if (ref->name && fn)
		status = fn(ctx, ref);
	*ref = (struct git_packed_ref){ .name = line + digits + 1,
					.name_n = n - digits - 1,
					.id = line };
	return status;
}

int git_packed_read(const void *bytes, size_t n, unsigned hash, git_packed_fn *fn, void *ctx,
		    const char **ret_why)
{
	const char *at = bytes, *end = at + n, *line;
	struct git_packed_ref ref = { 0 };
	size_t len;
	int status = 0;

	*ret_why = "packed-refs has a line that is not a ref";
	for (bool first = true; status == 0 && (line = next_line(&at, end, &len)); first = false)
		if (!first || !is_header(line, len))
			status = packed_line(line, len, hash, &ref, fn, ctx);
	if (status == 0 && at != end)
		return -EINVAL;
	if (status == 0 && ref.name && fn)
		status = fn(ctx, &ref);
	return status;
}

static bool fetch_line_ok(const char *line, size_t n, unsigned hash)
{
	static const char not_for_merge[] = "not-for-merge";
	size_t digits = (size_t)hash * 2, skip = sizeof(not_for_merge) - 1;

	if (n < digits + 2 || !git_is_id(line, digits, hash) || line[digits] != '\t')
		return false;
	line += digits + 1;
	n -= digits + 1;
	if (n > skip && memcmp(line, not_for_merge, skip) == 0) {
		line += skip;
		n -= skip;
	}
	if (!n || *line != '\t')
		return false;
	for (size_t i = 1; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			return false;
	return true;
}

bool git_fetch_head_ok(const void *bytes, size_t n, unsigned hash)
{
	const char *at = bytes, *end = at + n, *line;
	size_t len;

	while ((line = next_line(&at, end, &len)))
		if (!fetch_line_ok(line, len, hash))
			return false;
	return at == end;
}

bool git_id_lines_ok(const void *bytes, size_t n, unsigned hash, size_t least)
{
	const char *at = bytes, *end = at + n, *line;
	size_t len, count = 0;

	for (; (line = next_line(&at, end, &len)); count++)
		if (!git_is_id(line, len, hash))
			return false;
	return at == end && count >= least;
}
