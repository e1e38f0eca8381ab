/*
 * What no answer can allow. In: approvals.never, and what somebody wants to be asked about. Out:
 * the entry that forbids it. * stands for any characters, also /. Asked before there is a question,
 * and again where an answer takes effect. Pure; runs in the supervisor.
 */
#include "rules/never.h"

#include <string.h>

#include "rules/http_path.h"

/* The pattern of an entry of that kind; NULL: it is of another. */
static const char *pattern_of(const char *entry, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(entry, kind, n) == 0 ? entry + n : NULL;
}

static bool is_match(const char *pattern, const char *text, size_t n)
{
	return http_glob(pattern, strlen(pattern), text, n);
}

/* The path itself, or a directory above it. */
static bool is_path_match(const char *pattern, const char *path)
{
	size_t n = strlen(path);

	for (const char *slash = path; (slash = strchr(slash + 1, '/'));)
		if (is_match(pattern, path, (size_t)(slash - path)))
			return true;
	return is_match(pattern, path, n);
}

const char *never_path(const struct strv *never, const char *path)
{
	for (size_t i = 0; i < never->len; i++) {
		const char *pattern = pattern_of(never->items[i], "path:");

		if (pattern && is_path_match(pattern, path))
			return never->items[i];
	}
	return NULL;
}

const char *never_tree(const struct strv *never, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < never->len; i++) {
		const char *pattern = pattern_of(never->items[i], "path:");
		size_t plain = pattern ? strcspn(pattern, "*\\") : 0;

		/* up to its first * it leads below the path, or no further than to it */
		if (pattern && (plain > n ? strncmp(pattern, path, n) == 0 && pattern[n] == '/'
					  : pattern[plain] && strncmp(pattern, path, plain) == 0))
			return never->items[i];
	}
	return never_path(never, path);
}

const char *never_program(const struct strv *never, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < never->len; i++) {
		const char *pattern = pattern_of(never->items[i], "program:");

		if (pattern && (is_match(pattern, path, strlen(path)) ||
				is_match(pattern, name, strlen(name))))
			return never->items[i];
	}
	return NULL;
}

const char *never_grants(const struct strv *never, const char *names)
{
	for (size_t i = 0; i < never->len; i++) {
		const char *pattern = pattern_of(never->items[i], "credential:");

		for (const char *at = names; pattern && *at;) {
			size_t n = strcspn(at, ",");

			if (is_match(pattern, at, n))
				return never->items[i];
			at += n;
			at += strspn(at, ", ");
		}
	}
	return NULL;
}
