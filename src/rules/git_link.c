/*
 * Pointers between git's directories. In: the bytes of a .git file, of worktrees/ID/commondir or
 * worktrees/ID/gitdir. Out: the path, or a refusal. Pure; run by the importer and the sweep, in the
 * supervisor; fuzzed (fuzz/git_judge.c).
 *
 * git reads a .git file up to a NUL and drops any number of newlines and CRs at its end; a reader
 * that sees nothing where git sees a path is an escape. So one form passes, and everything else is
 * refused, not ignored.
 */
#include "rules/git_link.h"

#include <string.h>

/* Whether a path is plain: no control character, no blank at an end, not too long. */
static bool path_ok(const char *path, size_t n)
{
	if (!n || n > 4095 || *path == ' ' || path[n - 1] == ' ')
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f)
			return false;
	return true;
}

bool git_link_read(const void *bytes, size_t n, const char **ret, size_t *ret_n)
{
	static const char prefix[] = "gitdir: ";
	const size_t skip = sizeof(prefix) - 1;
	const char *text = bytes;

	if (n < skip + 2 || memcmp(text, prefix, skip) != 0 || text[n - 1] != '\n')
		return false;
	*ret = text + skip;
	*ret_n = n - skip - 1;
	return path_ok(*ret, *ret_n);
}

bool git_commondir_ok(const void *bytes, size_t n)
{
	return n == 6 && memcmp(bytes, "../..\n", 6) == 0;
}

bool git_worktree_gitdir_read(const void *bytes, size_t n, const char **ret, size_t *ret_n)
{
	static const char suffix[] = "/.git\n";
	const size_t tail = sizeof(suffix) - 1;
	const char *text = bytes;

	if (n <= tail + 1 || *text != '/' || memcmp(text + n - tail, suffix, tail) != 0)
		return false;
	*ret = text;
	*ret_n = n - tail;
	return path_ok(*ret, *ret_n);
}
