/*
 * Answers for ignore_git.py: reads a pattern file (argument) and "f PATH" or "d PATH" records,
 * NUL-terminated, from stdin; writes "1" or "0" for each, parents first as a walk would: what lies
 * in an excluded directory is excluded.
 */
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "policy/ignore.h"

static bool excluded(const struct ignore *ig, char *path, bool is_dir)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool above;

		*slash = '\0';
		above = ignore_match(ig, path, true);
		*slash = '/';
		if (above)
			return true;
	}
	return ignore_match(ig, path, is_dir);
}

int main(int argc, char **argv)
{
	struct ignore *ig = NULL;
	auto_buf patterns = { 0 };
	auto_buf paths = { 0 };

	if (argc != 2 || io_read_file(-100, argv[1], 1 << 24, &patterns) < 0 ||
	    io_read_all(0, 1 << 24, &paths) < 0 || ignore_add(&ig, patterns.data, patterns.len) < 0)
		return 2;
	for (char *at = paths.data; at < paths.data + paths.len; at += strlen(at) + 1)
		putchar(excluded(ig, at + 2, *at == 'd') ? '1' : '0');
	ignore_free(ig);
	return 0;
}
